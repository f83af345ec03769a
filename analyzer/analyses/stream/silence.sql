-- Stretches in which a client's loop or a model server did not do what it does all the time:
-- heartbeats of the client that came late, status lines of a server with work that came late or say
-- that it made nothing.
-- grain:   one row a stretch
-- needs:   client_tick, resolve_engine_sample, stream_server
-- param:   late_ns = 50000000            -- a heartbeat may be so late
-- param:   late_share = 0.5              -- and so much of its interval
-- param:   nothing = 0.25                -- of the usual tokens a second that is next to nothing
-- param:   busy_share = 0.25             -- of the most prompt tokens a second that are work on prompts instead
-- param:   missing = 2.5                 -- status lines this many intervals apart lack one, whole seconds allowed for
-- returns: side VARCHAR                  -- client or server
-- returns: source_id INTEGER             -- source of the heartbeats; NULL for servers
-- returns: begin_ns BIGINT               -- last sign before it, ns UTC on the clock of the streams
-- returns: end_ns BIGINT                 -- first sign after it, ns UTC
-- returns: excess_ns BIGINT              -- how late that came, ns
WITH beats AS (
  SELECT
    source_id, coalesce(client, '') AS client, time_ns,
    time_ns - lag(time_ns) OVER (
      PARTITION BY source_id, client ORDER BY time_ns, record
    ) AS step_ns
  FROM client_tick
  WHERE time_ns IS NOT NULL
),
rhythm AS (
  SELECT
    source_id, client,
    CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY step_ns) AS BIGINT) AS usual_ns
  FROM beats
  WHERE step_ns IS NOT NULL
  GROUP BY source_id, client
),
samples AS (
  SELECT
    engine, time_ns, running, generation_tokens_per_s, prompt_tokens_per_s,
    lag(running) OVER line AS running_before,
    time_ns - lag(time_ns) OVER line AS step_ns
  FROM resolve_engine_sample
  WINDOW line AS (PARTITION BY engine ORDER BY time_ns, source_id, record)
),
usual AS (
  SELECT
    engine,
    CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY step_ns) FILTER (WHERE step_ns > 0) AS BIGINT)
      AS step_ns,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY generation_tokens_per_s / running)
      FILTER (WHERE running > 0 AND generation_tokens_per_s > 0) AS tokens_per_s,
    max(prompt_tokens_per_s) AS prompt_tokens_per_s
  FROM samples
  GROUP BY engine
)
SELECT
  'client' AS side, b.source_id, b.time_ns - b.step_ns AS begin_ns, b.time_ns AS end_ns,
  b.step_ns - r.usual_ns AS excess_ns
FROM beats AS b
JOIN rhythm AS r ON b.source_id = r.source_id AND b.client = r.client
WHERE b.step_ns - r.usual_ns >= $late_ns AND b.step_ns - r.usual_ns >= $late_share * r.usual_ns
UNION ALL
SELECT
  'server', CAST(NULL AS INTEGER), s.time_ns - s.step_ns + v.shift_ns, s.time_ns + v.shift_ns,
  CASE WHEN s.step_ns > $missing * u.step_ns THEN s.step_ns - u.step_ns ELSE s.step_ns END
FROM samples AS s
JOIN usual AS u ON s.engine = u.engine
JOIN stream_server AS v ON v.deployment = ''
WHERE s.running_before > 0 AND s.step_ns > 0
  AND (
    s.step_ns > $missing * u.step_ns
    OR (s.running > 0 AND s.generation_tokens_per_s < $nothing * u.tokens_per_s * s.running
      AND coalesce(s.prompt_tokens_per_s, 0) <= $busy_share * coalesce(u.prompt_tokens_per_s, 0))
  )
