-- State of the model servers around each stall that left other streams of its server running: what a
-- full KV cache leaves behind when it puts requests out.
-- grain:   one row a stall of some streams only that a status line or event speaks of
-- needs:   resolve_request, resolve_engine_sample, engine_event, stream_beside, stream_server
-- param:   all_stop = 0.8               -- where so much of the others stopped too, nobody was put out
-- param:   second_ns = 1000000000        -- logs of engines stamp whole seconds
-- returns: request_key BIGINT            -- the request
-- returns: nth BIGINT                    -- its stall, from 1
-- returns: samples BIGINT                -- status lines from just before it to its end
-- returns: inside BIGINT                 -- of them during it, for certain
-- returns: kv_used_ratio DOUBLE          -- highest KV use in them, 0 to 1
-- returns: waiting BIGINT                -- most requests waiting during it
-- returns: waiting_near BIGINT           -- most waiting just before it to its end
-- returns: running_before BIGINT         -- largest batch just before and at its beginning
-- returns: running BIGINT                -- smallest batch during it
-- returns: counted BIGINT                -- preemptions that a server counted then
-- returns: named BIGINT                  -- preemptions of this request that a server logged then
WITH partial AS (
  SELECT b.request_key, b.nth, b.start_ns, b.end_ns, r.id
  FROM stream_beside AS b
  JOIN resolve_request AS r ON b.request_key = r.request_key
  WHERE coalesce(b.server_stopped_ratio, 0) < $all_stop
),
sampled AS (
  SELECT
    s.engine, s.time_ns + v.shift_ns AS time_ns, v.shift_ns, s.running, s.waiting, s.kv_used_ratio, s.preemptions,
    s.time_ns - lag(s.time_ns) OVER (
      PARTITION BY s.engine ORDER BY s.time_ns, s.source_id, s.record
    ) AS step_ns
  FROM resolve_engine_sample AS s
  JOIN stream_server AS v ON v.deployment = ''
),
cadence AS (
  SELECT
    -- A line stamped with a whole second was written within it.
    CASE WHEN count(*) FILTER (WHERE (time_ns - shift_ns) % $second_ns <> 0) = 0
      THEN $second_ns ELSE 0 END AS grain_ns,
    greatest(
      coalesce(CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY step_ns) AS BIGINT), 0), $second_ns
    ) AS reach_ns
  FROM sampled
  WHERE step_ns > 0
),
around AS (
  SELECT
    p.request_key, p.nth, s.engine,
    count(*) AS samples,
    count(*) FILTER (WHERE s.time_ns > p.start_ns AND s.time_ns + c.grain_ns < p.end_ns) AS inside,
    max(s.kv_used_ratio) AS kv_used_ratio,
    max(s.waiting) FILTER (WHERE s.time_ns > p.start_ns AND s.time_ns + c.grain_ns < p.end_ns) AS waiting,
    max(s.waiting) AS waiting_near,
    max(s.running) FILTER (WHERE s.time_ns <= p.start_ns + c.reach_ns) AS running_before,
    min(s.running) FILTER (WHERE s.time_ns > p.start_ns AND s.time_ns + c.grain_ns < p.end_ns) AS running,
    CAST(coalesce(SUM(s.preemptions) FILTER (
      WHERE s.time_ns >= p.start_ns - $second_ns AND s.time_ns - s.step_ns <= p.start_ns + $second_ns
    ), 0) AS BIGINT) AS counted
  FROM partial AS p
  CROSS JOIN cadence AS c
  JOIN sampled AS s
    ON s.time_ns >= p.start_ns - c.reach_ns AND s.time_ns <= p.end_ns + c.reach_ns
  GROUP BY p.request_key, p.nth, p.start_ns, p.end_ns, s.engine
),
-- Which engine served a request is not told: the one with the fullest cache is looked at.
fullest AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY request_key, nth ORDER BY kv_used_ratio DESC NULLS LAST, engine
    ) AS choice
  FROM around
),
events AS (
  SELECT
    e.time_ns + v.shift_ns AS time_ns,
    -- The engine's prefix of ids, as in resolve_told.
    CASE
      WHEN e.request_id LIKE 'chatcmpl-%' THEN substr(e.request_id, 10)
      WHEN e.request_id LIKE 'cmpl-%-0' THEN substr(e.request_id, 6, length(e.request_id) - 7)
      WHEN e.request_id LIKE 'cmpl-%' THEN substr(e.request_id, 6)
      ELSE e.request_id
    END AS id
  FROM engine_event AS e
  JOIN stream_server AS v ON v.deployment = ''
  WHERE e.kind = 'preemption' AND e.time_ns IS NOT NULL
),
told AS (
  SELECT
    p.request_key, p.nth,
    count(*) FILTER (WHERE e.id = p.id) AS named,
    count(*) FILTER (WHERE e.id IS NULL) AS unnamed
  FROM partial AS p
  JOIN events AS e
    ON e.time_ns >= p.start_ns - 2 * $second_ns AND e.time_ns <= p.start_ns + 2 * $second_ns
  GROUP BY p.request_key, p.nth
)
SELECT
  p.request_key, p.nth,
  coalesce(f.samples, 0) AS samples,
  coalesce(f.inside, 0) AS inside,
  f.kv_used_ratio, f.waiting, f.waiting_near, f.running_before, f.running,
  coalesce(f.counted, 0) + coalesce(t.unnamed, 0) AS counted,
  coalesce(t.named, 0) AS named
FROM partial AS p
LEFT JOIN fullest AS f ON p.request_key = f.request_key AND p.nth = f.nth AND f.choice = 1
LEFT JOIN told AS t ON p.request_key = t.request_key AND p.nth = t.nth
WHERE f.request_key IS NOT NULL OR t.request_key IS NOT NULL
