-- What went on beside each stall: other streams of its client and of its server, prompts in work,
-- heartbeats of the client, status of the server. One sweep over time for each of them: what had
-- added up at the end of a stall less what had at its start.
-- grain:   one row a stall of a request where it was seen best: at the client, else at the engine
-- needs:   resolve_request, client_tick, resolve_engine_sample, stream_stall, stream_pace, stream_server, stream_prompt, stream_silence
-- param:   soon = 0.1                    -- of a stall, or two usual gaps, is soon after its begin
-- returns: request_key BIGINT            -- the request
-- returns: nth BIGINT                    -- its stall, from 1
-- returns: vantage VARCHAR               -- client or engine: where it was seen
-- returns: unit VARCHAR                  -- its server, as far as that is told
-- returns: start_ns BIGINT               -- begin, ns UTC on the clock of the streams
-- returns: end_ns BIGINT                 -- end, ns UTC
-- returns: client_others DOUBLE          -- other streams of that client meanwhile, on average
-- returns: client_stopped_ratio DOUBLE   -- share of their time that they stalled too; NULL = none
-- returns: server_others DOUBLE          -- other streams of that server meanwhile, on average
-- returns: server_stopped_ratio DOUBLE   -- share of their time that they stalled too; NULL = none
-- returns: prompt_first BOOLEAN          -- a prompt was in work soon after its begin
-- returns: prefill_ns BIGINT             -- some prompt was in work, ns
-- returns: prompt_tokens DOUBLE          -- prompt tokens computed meanwhile, as requests tell
-- returns: life_tokens DOUBLE            -- the same over the whole life of the stream
-- returns: life_ns BIGINT                -- first token to last of the stream, ns
-- returns: logged_tokens DOUBLE          -- the same, as status lines of servers tell
-- returns: has_ticks BOOLEAN             -- the client wrote heartbeats then
-- returns: late_ns BIGINT                -- its heartbeats were overdue, ns
-- returns: silent_ns BIGINT              -- status lines of the server were overdue or said it made nothing, ns
WITH ticking AS (
  SELECT source_id, min(time_ns) AS first_ns, max(time_ns) AS last_ns
  FROM client_tick
  GROUP BY source_id
),
ticked AS (SELECT min(first_ns) AS first_ns, max(last_ns) AS last_ns FROM ticking),
streams AS (
  SELECT
    p.request_key, p.vantage, v.unit, CAST(p.source_id AS VARCHAR) AS source,
    -- A client whose log has no heartbeats may write them elsewhere.
    CASE WHEN t.source_id IS NULL THEN '' ELSE CAST(p.source_id AS VARCHAR) END AS beat,
    CASE WHEN p.vantage = 'engine' THEN v.shift_ns ELSE 0 END AS shift_ns,
    p.first_ns, p.last_ns, p.is_judged,
    coalesce(t.first_ns, a.first_ns) AS tick_first_ns,
    coalesce(t.last_ns, a.last_ns) AS tick_last_ns,
    row_number() OVER (PARTITION BY p.request_key ORDER BY p.vantage) AS choice
  FROM stream_pace AS p
  JOIN resolve_request AS r ON p.request_key = r.request_key
  JOIN stream_server AS v ON coalesce(r.deployment, '') = v.deployment
  CROSS JOIN ticked AS a
  LEFT JOIN ticking AS t ON p.source_id = t.source_id
),
stalls AS (
  SELECT
    s.request_key, s.nth, s.vantage, m.unit, m.source, m.beat,
    m.first_ns + m.shift_ns AS first_ns, m.last_ns + m.shift_ns AS last_ns,
    s.start_ns + m.shift_ns AS start_ns,
    s.end_ns + m.shift_ns AS end_ns,
    s.start_ns + m.shift_ns
      + CAST(greatest(2 * s.usual_gap_ns, $soon * (s.end_ns - s.start_ns)) AS BIGINT) AS soon_ns,
    coalesce(
      m.vantage = 'client' AND m.tick_first_ns <= s.start_ns AND m.tick_last_ns >= s.end_ns, FALSE
    ) AS has_ticks
  FROM stream_stall AS s
  JOIN streams AS m ON s.request_key = m.request_key AND s.vantage = m.vantage AND m.choice = 1
),
samples AS (
  SELECT
    s.time_ns + v.shift_ns AS end_ns, s.prompt_tokens_per_s,
    s.time_ns - lag(s.time_ns) OVER (
      PARTITION BY s.engine ORDER BY s.time_ns, s.source_id, s.record
    ) AS step_ns
  FROM resolve_engine_sample AS s
  JOIN stream_server AS v ON v.deployment = ''
),
stretches AS (
  SELECT
    concat('client ', source) AS lane, first_ns + shift_ns AS begin_ns, last_ns + shift_ns AS end_ns,
    CAST(0 AS DOUBLE) AS tokens
  FROM streams
  WHERE choice = 1 AND is_judged
  UNION ALL
  SELECT concat('server ', unit), first_ns + shift_ns, last_ns + shift_ns, 0
  FROM streams
  WHERE choice = 1 AND is_judged
  UNION ALL
  SELECT concat('stopped client ', source), start_ns, end_ns, 0 FROM stalls
  UNION ALL
  SELECT concat('stopped server ', unit), start_ns, end_ns, 0 FROM stalls
  UNION ALL
  SELECT concat('prompt ', unit), begin_ns, end_ns, CAST(coalesce(tokens, 0) AS DOUBLE)
  FROM stream_prompt
  UNION ALL
  SELECT 'logged', end_ns - step_ns, end_ns,
    coalesce(prompt_tokens_per_s, 0) * step_ns / 1000000000
  FROM samples
  WHERE step_ns > 0
  UNION ALL
  SELECT concat('late ', CAST(source_id AS VARCHAR)), begin_ns, end_ns, 0
  FROM stream_silence
  WHERE side = 'client'
  UNION ALL
  SELECT 'late ', begin_ns, end_ns, 0 FROM stream_silence WHERE side = 'client'
  UNION ALL
  SELECT 'silent', begin_ns, end_ns, 0 FROM stream_silence WHERE side = 'server'
),
lanes AS (
  SELECT request_key, nth, 'client' AS kind, concat('client ', source) AS lane, start_ns, end_ns
  FROM stalls
  UNION ALL
  SELECT request_key, nth, 'server', concat('server ', unit), start_ns, end_ns FROM stalls
  UNION ALL
  SELECT request_key, nth, 'stopped client', concat('stopped client ', source), start_ns, end_ns
  FROM stalls
  UNION ALL
  SELECT request_key, nth, 'stopped server', concat('stopped server ', unit), start_ns, end_ns
  FROM stalls
  UNION ALL
  SELECT request_key, nth, 'prompt', concat('prompt ', unit), start_ns, end_ns FROM stalls
  UNION ALL
  SELECT request_key, nth, 'life', concat('prompt ', unit), first_ns, last_ns FROM stalls
  UNION ALL
  SELECT request_key, nth, 'logged', 'logged', start_ns, end_ns FROM stalls
  UNION ALL
  SELECT request_key, nth, 'late', concat('late ', beat), start_ns, end_ns FROM stalls
  UNION ALL
  SELECT request_key, nth, 'silent', 'silent', start_ns, end_ns FROM stalls
),
asked AS (
  SELECT request_key, nth, kind, lane, start_ns AS at_ns, -1 AS sign FROM lanes
  UNION ALL
  SELECT request_key, nth, kind, lane, end_ns, 1 FROM lanes
  UNION ALL
  SELECT request_key, nth, 'soon', concat('prompt ', unit), soon_ns, 0 FROM stalls
),
changes AS (
  SELECT lane, begin_ns AS at_ns, 1 AS step, tokens / (end_ns - begin_ns) AS rate
  FROM stretches
  WHERE end_ns > begin_ns
  UNION ALL
  SELECT lane, end_ns, -1, -tokens / (end_ns - begin_ns) FROM stretches WHERE end_ns > begin_ns
  UNION ALL
  SELECT DISTINCT lane, at_ns, 0, CAST(0 AS DOUBLE) FROM asked
),
moments AS (
  SELECT lane, at_ns, CAST(SUM(step) AS BIGINT) AS step, SUM(rate) AS rate
  FROM changes
  GROUP BY lane, at_ns
),
levels AS (
  SELECT
    lane, at_ns,
    coalesce(at_ns - lag(at_ns) OVER lane_time, 0) AS since_ns,
    SUM(step) OVER lane_time - step AS level,
    SUM(rate) OVER lane_time - rate AS rate
  FROM moments
  WINDOW lane_time AS (PARTITION BY lane ORDER BY at_ns)
),
added AS (
  SELECT
    lane, at_ns, level,
    SUM(CASE WHEN level > 0 THEN since_ns ELSE 0 END) OVER lane_time AS covered_ns,
    SUM(level * since_ns) OVER lane_time AS area_ns,
    SUM(rate * since_ns) OVER lane_time AS tokens
  FROM levels
  WINDOW lane_time AS (PARTITION BY lane ORDER BY at_ns)
),
meanwhile AS (
  SELECT
    q.request_key, q.nth,
    CAST(SUM(q.sign * a.area_ns) FILTER (WHERE q.kind = 'client') AS DOUBLE) AS client_ns,
    CAST(SUM(q.sign * a.area_ns) FILTER (WHERE q.kind = 'stopped client') AS DOUBLE)
      AS client_stopped_ns,
    CAST(SUM(q.sign * a.area_ns) FILTER (WHERE q.kind = 'server') AS DOUBLE) AS server_ns,
    CAST(SUM(q.sign * a.area_ns) FILTER (WHERE q.kind = 'stopped server') AS DOUBLE)
      AS server_stopped_ns,
    count(*) FILTER (WHERE q.kind = 'soon' AND a.level > 0) > 0 AS prompt_first,
    CAST(SUM(q.sign * a.covered_ns) FILTER (WHERE q.kind = 'prompt') AS BIGINT) AS prefill_ns,
    SUM(q.sign * a.tokens) FILTER (WHERE q.kind = 'prompt') AS prompt_tokens,
    SUM(q.sign * a.tokens) FILTER (WHERE q.kind = 'life') AS life_tokens,
    SUM(q.sign * a.tokens) FILTER (WHERE q.kind = 'logged') AS logged_tokens,
    CAST(SUM(q.sign * a.covered_ns) FILTER (WHERE q.kind = 'late') AS BIGINT) AS late_ns,
    CAST(SUM(q.sign * a.covered_ns) FILTER (WHERE q.kind = 'silent') AS BIGINT) AS silent_ns
  FROM asked AS q
  JOIN added AS a ON q.lane = a.lane AND q.at_ns = a.at_ns
  GROUP BY q.request_key, q.nth
)
SELECT
  s.request_key, s.nth, s.vantage, s.unit, s.start_ns, s.end_ns,
  m.client_ns / (s.end_ns - s.start_ns) - 1 AS client_others,
  (m.client_stopped_ns - (s.end_ns - s.start_ns))
    / CASE WHEN m.client_ns > s.end_ns - s.start_ns THEN m.client_ns - (s.end_ns - s.start_ns) END
    AS client_stopped_ratio,
  m.server_ns / (s.end_ns - s.start_ns) - 1 AS server_others,
  (m.server_stopped_ns - (s.end_ns - s.start_ns))
    / CASE WHEN m.server_ns > s.end_ns - s.start_ns THEN m.server_ns - (s.end_ns - s.start_ns) END
    AS server_stopped_ratio,
  m.prompt_first, m.prefill_ns, m.prompt_tokens, m.life_tokens,
  s.last_ns - s.first_ns AS life_ns, m.logged_tokens, s.has_ticks, m.late_ns, m.silent_ns
FROM stalls AS s
JOIN meanwhile AS m ON s.request_key = m.request_key AND s.nth = m.nth
