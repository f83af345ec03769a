-- Requests that waited for the model server, and the state of the server meanwhile.
-- A wait is 'admission limit' when requests queued while the batch stood at its limit and the KV
-- cache had room; 'capacity' when the cache was full; 'prefill work' when other prompts were being
-- processed for most of the wait; 'unknown' when no sample tells.
-- grain:   one row a request that waited
-- needs:   resolve_request, latency_segment, resolve_engine_sample
-- param:   free_wait_ns = 50000000    -- up to this an unloaded scheduler may take
-- param:   long_wait_ns = 100000000   -- shorter waits are no finding
-- param:   wait_share = 0.2           -- of the time to first token that a wait must make up
-- param:   room_ratio = 0.8           -- below this the KV cache has room
-- param:   full_ratio = 0.9           -- from here on it is full: the next prompt does not fit
-- param:   at_limit_share = 0.8       -- of the largest batch seen while requests queued
-- param:   busy_share = 0.5           -- of the wait that other prompts' prefill must fill to explain it
-- returns: request_key BIGINT         -- the request
-- returns: start_ns BIGINT            -- its start on the server's clock, ns UTC
-- returns: queue_ns BIGINT            -- its wait, ns
-- returns: excess_ns BIGINT           -- wait beyond the case's own baseline, ns
-- returns: whole_ns BIGINT            -- its time to first token, or e2e, ns
-- returns: samples BIGINT             -- server samples during the wait with requests queued
-- returns: kv_used_ratio DOUBLE       -- highest KV use in them, 0 to 1
-- returns: running DOUBLE             -- mean batch in them
-- returns: waiting BIGINT             -- most requests queued in them
-- returns: busy_ratio DOUBLE          -- share of the wait with another prompt in prefill, 0 to 1
-- returns: cause VARCHAR              -- admission limit, capacity, prefill work or unknown
WITH waits AS (
  SELECT
    s.request_key, coalesce(s.server_start_ns, r.start_ns) AS start_ns, s.queue_ns, s.prefill_ns,
    coalesce(s.ttft_ns, s.e2e_ns) AS whole_ns
  FROM latency_segment AS s
  JOIN resolve_request AS r ON s.request_key = r.request_key
  WHERE s.queue_ns IS NOT NULL
),
baseline AS (
  SELECT
    least(
      CAST(percentile_cont(0.1) WITHIN GROUP (ORDER BY queue_ns) AS BIGINT), $free_wait_ns
    ) AS usual_ns
  FROM waits
),
long_waits AS (
  SELECT w.*, w.queue_ns - b.usual_ns AS excess_ns
  FROM waits AS w
  CROSS JOIN baseline AS b
  WHERE w.queue_ns - b.usual_ns >= $long_wait_ns
    AND w.queue_ns - b.usual_ns >= $wait_share * w.whole_ns
),
sampled AS (
  SELECT
    time_ns, engine, running, waiting, kv_used_ratio,
    time_ns - lag(time_ns) OVER (PARTITION BY engine ORDER BY time_ns, source_id, record) AS step_ns
  FROM resolve_engine_sample
),
cadence AS (
  SELECT coalesce(CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY step_ns) AS BIGINT), 0) AS step_ns
  FROM sampled
  WHERE step_ns > 0
),
queued AS (
  SELECT s.*, c.step_ns AS reach_ns
  FROM sampled AS s
  CROSS JOIN cadence AS c
  WHERE s.waiting > 0
),
state AS (
  SELECT
    w.request_key,
    count(*) AS samples,
    max(q.kv_used_ratio) AS kv_used_ratio,
    CAST(SUM(q.running) AS DOUBLE) / count(*) AS running,
    max(q.waiting) AS waiting
  FROM long_waits AS w
  JOIN queued AS q
    ON q.time_ns >= w.start_ns - q.reach_ns AND q.time_ns <= w.start_ns + w.queue_ns + q.reach_ns
  GROUP BY w.request_key
),
largest AS (
  SELECT max(running) AS running FROM queued
),
prefill_edges AS (
  SELECT
    start_ns + queue_ns AS from_ns,
    start_ns + queue_ns + prefill_ns AS until_ns,
    max(start_ns + queue_ns + prefill_ns) OVER (
      ORDER BY start_ns + queue_ns, request_key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS reach_ns,
    request_key
  FROM waits
  WHERE prefill_ns > 0 AND start_ns IS NOT NULL
),
prefill_blocks AS (
  SELECT
    *,
    SUM(CASE WHEN reach_ns IS NULL OR from_ns > reach_ns THEN 1 ELSE 0 END)
      OVER (ORDER BY from_ns, request_key) AS block
  FROM prefill_edges
),
busy AS (
  SELECT block, min(from_ns) AS from_ns, max(until_ns) AS until_ns
  FROM prefill_blocks
  GROUP BY block
),
busy_wait AS (
  SELECT
    w.request_key,
    CAST(SUM(least(b.until_ns, w.start_ns + w.queue_ns) - greatest(b.from_ns, w.start_ns)) AS DOUBLE)
      / max(w.queue_ns) AS busy_ratio
  FROM long_waits AS w
  JOIN busy AS b ON b.from_ns < w.start_ns + w.queue_ns AND b.until_ns > w.start_ns
  GROUP BY w.request_key
)
SELECT
  w.request_key,
  w.start_ns,
  w.queue_ns,
  w.excess_ns,
  w.whole_ns,
  coalesce(s.samples, 0) AS samples,
  s.kv_used_ratio,
  s.running,
  s.waiting,
  coalesce(b.busy_ratio, CAST(0 AS DOUBLE)) AS busy_ratio,
  CASE
    WHEN s.samples IS NULL OR s.kv_used_ratio IS NULL THEN 'unknown'
    WHEN s.kv_used_ratio >= $full_ratio THEN 'capacity'
    WHEN coalesce(b.busy_ratio, CAST(0 AS DOUBLE)) >= $busy_share THEN 'prefill work'
    WHEN s.kv_used_ratio < $room_ratio AND s.running >= $at_limit_share * l.running
      THEN 'admission limit'
    ELSE 'unknown'
  END AS cause
FROM long_waits AS w
LEFT JOIN state AS s ON w.request_key = s.request_key
LEFT JOIN busy_wait AS b ON w.request_key = b.request_key
CROSS JOIN largest AS l
