-- Why each stream stalled, one cause a stall. What is proven goes first, and what nothing proves stays
-- unexplained: a stall is never blamed on the likeliest suspect.
--   client blocked   its heartbeats came late too, and its other streams stopped with it
--   preemption       the server put this request out, others went on: logged, or the KV cache was full,
--                    the batch smaller and somebody waited
--   prefill          prompts of others were in work from before it to its end, large enough for it
--   process pause    all streams of the server stopped, and its own emission or status with them
--   connection       tokens had piled up behind it while other streams went on: this path alone
--   delivery         tokens had piled up on all streams: the client, or the path they share
--   unexplained      none of these
-- grain:   one row a stall of a request where it was seen best
-- needs:   stream_stall, stream_pace, stream_beside, stream_memory, stream_prompt, resolve_engine_sample, latency_token
-- param:   most = 0.5                    -- of a stall that a sign must cover
-- param:   all_stop = 0.8                -- of the others' time: all streams stop together
-- param:   whole = 0.7                   -- of a stall in which prompts must be in work, the first from its beginning on
-- param:   unusual = 2                   -- times the prompt work that goes on beside the stream when it does not stall
-- param:   leeway = 2                    -- a token costs so many times as much as in the case's longer prompts at most
-- param:   full_ratio = 0.95             -- the KV cache is full
-- param:   quiet = 0.2                   -- of a stall that heartbeats may be late without being its cause
-- param:   busiest = 0.5                 -- of the most prompt tokens a second that a log must show during a stall
-- param:   like = 0.3                    -- a pause of one stream is like the usual pause, so much longer or shorter
-- returns: request_key BIGINT            -- the request
-- returns: nth BIGINT                    -- its stall, from 1
-- returns: vantage VARCHAR               -- client or engine: where it was seen
-- returns: unit VARCHAR                  -- its server, as far as that is told
-- returns: start_ns BIGINT               -- begin, ns UTC
-- returns: end_ns BIGINT                 -- end, ns UTC
-- returns: gaps BIGINT                   -- gaps it holds
-- returns: longest_gap_ns BIGINT         -- longest of them, ns
-- returns: usual_gap_ns DOUBLE           -- usual gap of the stream, ns
-- returns: excess_ns BIGINT              -- beyond what its gaps usually take, ns
-- returns: tokens_before BIGINT          -- output tokens the stream had given; NULL = not told
-- returns: prompt_tokens DOUBLE          -- prompt tokens of others computed meanwhile
-- returns: kv_used_ratio DOUBLE          -- highest KV use around it, 0 to 1
-- returns: server_stopped_ratio DOUBLE   -- share of the other streams' time that they stalled too
-- returns: emission_known BOOLEAN        -- the engine's own emission of this request is logged
-- returns: lacks VARCHAR                 -- what would tell the cause of an unexplained one: ticks, emission, engine log or nothing
-- returns: cause VARCHAR                 -- client blocked, preemption, prefill, process pause, connection, delivery or unexplained
WITH longer AS (
  SELECT percentile_cont(0.75) WITHIN GROUP (ORDER BY tokens) AS tokens
  FROM stream_prompt
  WHERE tokens > 0
),
cost AS (
  SELECT
    percentile_cont(0.5) WITHIN GROUP (ORDER BY CAST(p.end_ns - p.begin_ns AS DOUBLE) / p.tokens)
      AS token_ns
  FROM stream_prompt AS p
  CROSS JOIN longer AS l
  WHERE p.tokens >= l.tokens
),
samples AS (
  SELECT
    engine, running, prompt_tokens_per_s,
    time_ns - lag(time_ns) OVER (PARTITION BY engine ORDER BY time_ns, source_id, record) AS step_ns
  FROM resolve_engine_sample
),
logged AS (
  SELECT
    max(prompt_tokens_per_s) AS fastest,
    percentile_cont(0.25) WITHIN GROUP (ORDER BY prompt_tokens_per_s) AS calm,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY step_ns) AS step_ns,
    count(DISTINCT engine) AS engines
  FROM samples
  WHERE running > 0
),
-- How far the client's clock and the network are behind the engine's own emission.
emitting AS (
  SELECT
    e.request_key,
    least(c.first_ns - e.first_ns, c.last_ns - e.last_ns) AS shift_ns
  FROM stream_pace AS e
  JOIN stream_pace AS c ON e.request_key = c.request_key AND c.vantage = 'client'
  WHERE e.vantage = 'engine' AND e.is_judged
),
emitted AS (
  SELECT
    b.request_key, b.nth,
    coalesce(SUM(
      CASE WHEN s.start_ns + p.shift_ns < b.end_ns AND s.end_ns + p.shift_ns > b.start_ns
        THEN s.excess_ns END
    ), 0) AS stopped_ns
  FROM stream_beside AS b
  JOIN emitting AS p ON b.request_key = p.request_key
  LEFT JOIN stream_stall AS s ON b.request_key = s.request_key AND s.vantage = 'engine'
  WHERE b.vantage = 'client'
  GROUP BY b.request_key, b.nth
),
signs AS (
  SELECT
    b.request_key, b.nth, b.vantage, b.unit, b.start_ns, b.end_ns, b.end_ns - b.start_ns AS lasts_ns,
    s.gaps, s.longest_gap_ns, s.usual_gap_ns, s.excess_ns, s.caught_ratio,
    CASE WHEN b.vantage = 'client' THEN
      CAST(round(CAST(s.chunks_before AS DOUBLE) * coalesce(t.streamed_tokens, t.output_tokens) / p.chunks) AS BIGINT)
      ELSE s.chunks_before END AS tokens_before,
    b.client_others, b.client_stopped_ratio, b.server_others, b.server_stopped_ratio,
    b.prompt_first, b.prefill_ns, b.prompt_tokens, b.life_tokens, b.life_ns, b.logged_tokens, b.has_ticks, b.late_ns, b.silent_ns,
    m.request_key IS NOT NULL AS has_samples,
    m.kv_used_ratio, m.inside, m.waiting, m.waiting_near, m.running_before, m.running, m.counted, m.named,
    c.token_ns, l.fastest, l.calm, l.step_ns,
    l.engines > 1 AND b.unit = '' AS mixed,
    b.vantage = 'engine' OR e.request_key IS NOT NULL AS emission_known,
    b.vantage = 'engine' OR coalesce(e.stopped_ns >= $most * s.excess_ns, FALSE) AS emission_stopped
  FROM stream_beside AS b
  JOIN stream_stall AS s
    ON b.request_key = s.request_key AND b.nth = s.nth AND b.vantage = s.vantage
  JOIN stream_pace AS p ON b.request_key = p.request_key AND b.vantage = p.vantage
  JOIN latency_token AS t ON b.request_key = t.request_key
  CROSS JOIN cost AS c
  CROSS JOIN logged AS l
  LEFT JOIN stream_memory AS m ON b.request_key = m.request_key AND b.nth = m.nth
  LEFT JOIN emitted AS e ON b.request_key = e.request_key AND b.nth = e.nth
),
-- Prompts that are in work all the time explain no stall: what went on beside the stream otherwise.
compared AS (
  SELECT
    *,
    greatest(life_tokens - SUM(prompt_tokens) OVER stream, 0)
      / greatest(life_ns - SUM(lasts_ns) OVER stream, 1) AS other_rate
  FROM signs
  WINDOW stream AS (PARTITION BY request_key)
),
read AS (
  SELECT
    *,
    CASE WHEN emission_known THEN NOT emission_stopped ELSE caught_ratio >= $most END AS piled_up,
    emission_stopped OR coalesce(caught_ratio < $most, FALSE) AS made_late,
    -- Full, or without room for one more like those that run.
    kv_used_ratio >= $full_ratio OR kv_used_ratio * (running_before + 1) >= running_before AS is_tight,
    has_ticks AND late_ns >= $most * lasts_ns AS ticks_late,
    has_ticks AND late_ns < $quiet * lasts_ns AS ticks_steady,
    longest_gap_ns >= $most * lasts_ns AS is_one_gap,
    server_others >= $most AND (
      server_stopped_ratio >= $all_stop OR (mixed AND server_others * server_stopped_ratio >= 1)
    ) AS all_stopped,
    coalesce(server_others >= $most AND server_stopped_ratio < $all_stop, FALSE) AS others_went_on,
    coalesce(
      (prompt_first AND prefill_ns >= $whole * lasts_ns
        AND prompt_tokens * token_ns * $leeway >= excess_ns
        AND prompt_tokens >= $unusual * other_rate * lasts_ns)
      -- A status line tells of a stall only if it is about as long as the line's interval.
      OR (logged_tokens >= $busiest * fastest / 1000000000 * lasts_ns AND lasts_ns >= 2 * step_ns
        AND calm <= $quiet * fastest),
      FALSE
    ) AS prompts_explain
  FROM compared
),
judged AS (
  SELECT
    *,
    CASE
      WHEN ticks_late AND NOT emission_stopped
        AND (client_others < $most OR client_stopped_ratio >= $whole) THEN 'client blocked'
      WHEN piled_up AND client_others >= $most AND client_stopped_ratio < $all_stop THEN 'connection'
      WHEN piled_up THEN 'delivery'
      WHEN named > 0 THEN 'preemption'
      WHEN is_one_gap AND others_went_on AND (
        counted > 0
        OR (inside > 0 AND is_tight AND waiting > 0 AND (running < running_before OR made_late))
        OR (inside = 0 AND is_tight AND waiting_near > 0 AND made_late)
        OR (inside = 0 AND kv_used_ratio >= $full_ratio)
      ) THEN 'preemption'
      WHEN prompts_explain AND (all_stopped OR server_others < $most) THEN 'prefill'
      WHEN all_stopped AND is_one_gap AND (
        emission_stopped OR silent_ns >= $most * lasts_ns
        OR (ticks_steady AND caught_ratio < $most)
      ) THEN 'process pause'
      ELSE 'unexplained'
    END AS own_cause
  FROM read
),
-- A stream that ran alone stopped like all others do when the process pauses, or the status lines of
-- its server say so.
paused AS (
  SELECT
    unit, percentile_cont(0.5) WITHIN GROUP (ORDER BY excess_ns) AS usual_pause_ns
  FROM judged
  WHERE own_cause = 'process pause'
  GROUP BY unit
)
SELECT
  j.request_key, j.nth, j.vantage, j.unit, j.start_ns, j.end_ns, j.gaps, j.longest_gap_ns,
  j.usual_gap_ns, j.excess_ns, j.tokens_before,
  greatest(j.prompt_tokens, j.logged_tokens) AS prompt_tokens,
  j.kv_used_ratio, j.server_stopped_ratio, j.emission_known,
  CASE
    WHEN coalesce(j.piled_up, FALSE) THEN 'ticks'
    WHEN j.others_went_on AND NOT j.has_samples THEN 'engine log'
    WHEN j.all_stopped AND NOT j.emission_known THEN 'emission'
    ELSE 'nothing'
  END AS lacks,
  CASE
    WHEN j.own_cause = 'unexplained' AND j.server_others < $most AND j.is_one_gap AND j.made_late
      AND j.silent_ns >= $most * j.lasts_ns THEN 'process pause'
    WHEN j.own_cause = 'unexplained' AND j.server_others < $most AND j.is_one_gap
      AND (j.emission_stopped OR (j.ticks_steady AND j.caught_ratio < $most)) AND j.excess_ns >= (1 - $like) * p.usual_pause_ns
      AND j.excess_ns <= (1 + $like) * p.usual_pause_ns THEN 'process pause'
    ELSE j.own_cause
  END AS cause
FROM judged AS j
LEFT JOIN paused AS p ON j.unit = p.unit
