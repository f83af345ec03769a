-- Requests that waited for the model server, and the state of the server meanwhile.
-- A wait is 'capacity' when the KV cache could not take another request, 'prefill work' when the
-- batch spent its time on prompts, 'admission limit' when the batch stood at its limit although the
-- cache had room for more, and 'unknown' when no sample tells.
-- grain:   one row a request that waited
-- needs:   resolve_request, latency_segment, resolve_engine_sample, resolve_capacity
-- param:   free_wait_ns = 50000000    -- up to this an unloaded scheduler may take
-- param:   long_wait_ns = 100000000   -- shorter waits are no finding
-- param:   wait_share = 0.2           -- of the time to first token that a wait must make up
-- param:   full_ratio = 0.95          -- from here on the cache is full whatever a request takes
-- param:   at_limit_share = 0.9       -- of the largest batch that engine ran at about that time
-- param:   standing_share = 0.7       -- of the samples in which the batch must stand there
-- param:   prompt_share = 0.5         -- of the batch's time that prefill must take to explain a wait
-- param:   nearby_ns = 30000000000    -- a wait that its own samples do not explain is like its neighbours this near
-- returns: request_key BIGINT         -- the request
-- returns: start_ns BIGINT            -- its start on the server's clock, ns UTC
-- returns: queue_ns BIGINT            -- its wait, ns
-- returns: excess_ns BIGINT           -- wait beyond the case's own baseline, ns
-- returns: whole_ns BIGINT            -- its time to first token, or e2e, ns
-- returns: samples BIGINT             -- server samples during the wait with requests queued
-- returns: kv_used_ratio DOUBLE       -- highest KV use in them, 0 to 1
-- returns: kv_next_ratio DOUBLE       -- KV use if one more request had been let in, 0 to 1 and above
-- returns: running DOUBLE             -- mean batch in them
-- returns: waiting BIGINT             -- most requests queued in them
-- returns: prompt_ratio DOUBLE        -- share of the batch's time spent on prefill meanwhile, 0 to 1
-- returns: cause VARCHAR              -- admission limit, capacity, prefill work or unknown
WITH waits AS (
  SELECT
    s.request_key, coalesce(s.server_start_ns, r.start_ns) AS start_ns, s.queue_ns, s.prefill_ns,
    coalesce(s.ttft_ns, s.e2e_ns) AS whole_ns, r.input_tokens
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
  SELECT
    s.time_ns, s.engine, s.running, s.waiting, s.kv_used_ratio, c.step_ns AS reach_ns,
    max(s.running) OVER (
      PARTITION BY s.engine ORDER BY s.time_ns
      RANGE BETWEEN $nearby_ns PRECEDING AND $nearby_ns FOLLOWING
    ) AS largest
  FROM sampled AS s
  CROSS JOIN cadence AS c
  WHERE s.waiting > 0
),
state AS (
  SELECT
    w.request_key,
    q.engine,
    count(*) AS samples,
    max(q.kv_used_ratio) AS kv_used_ratio,
    -- What it would take to let this one in: its prompt where the pool's size is told, else as much
    -- as the running ones take on average.
    max(q.kv_used_ratio + coalesce(
      CAST(w.input_tokens AS DOUBLE) / p.capacity_tokens,
      q.kv_used_ratio / CASE WHEN q.running > 0 THEN q.running END, 0)) AS kv_next_ratio,
    CAST(SUM(q.running) AS DOUBLE) / count(*) AS running,
    CAST(count(*) FILTER (WHERE q.running >= $at_limit_share * q.largest) AS DOUBLE) / count(*)
      AS standing_ratio,
    max(q.waiting) AS waiting
  FROM long_waits AS w
  CROSS JOIN resolve_capacity AS p
  JOIN queued AS q
    ON q.time_ns >= w.start_ns - q.reach_ns AND q.time_ns <= w.start_ns + w.queue_ns + q.reach_ns
  GROUP BY w.request_key, q.engine
),
-- Prompts in prefill over time: a sweep over their starts and ends, and the area below it.
edges AS (
  SELECT start_ns + queue_ns AS at_ns, 1 AS step FROM waits
  WHERE prefill_ns > 0 AND start_ns IS NOT NULL
  UNION ALL
  SELECT start_ns + queue_ns + prefill_ns, -1 FROM waits
  WHERE prefill_ns > 0 AND start_ns IS NOT NULL
),
moments AS (
  SELECT at_ns, SUM(step) AS step FROM edges GROUP BY at_ns
  UNION ALL
  SELECT start_ns, 0 FROM long_waits WHERE start_ns IS NOT NULL
  UNION ALL
  SELECT start_ns + queue_ns, 0 FROM long_waits WHERE start_ns IS NOT NULL
),
points AS (
  SELECT at_ns, SUM(step) AS step FROM moments GROUP BY at_ns
),
levels AS (
  SELECT
    at_ns,
    SUM(step) OVER (ORDER BY at_ns) - step AS level_before,
    at_ns - lag(at_ns) OVER (ORDER BY at_ns) AS since_ns
  FROM points
),
areas AS (
  SELECT
    at_ns,
    SUM(coalesce(CAST(level_before AS DOUBLE) * since_ns, CAST(0 AS DOUBLE)))
      OVER (ORDER BY at_ns) AS area
  FROM levels
),
busy AS (
  SELECT w.request_key, b.area - a.area AS prefill_area
  FROM long_waits AS w
  JOIN areas AS a ON w.start_ns = a.at_ns
  JOIN areas AS b ON w.start_ns + w.queue_ns = b.at_ns
),
weighed AS (
  SELECT
    s.*,
    least(
      coalesce(b.prefill_area / (w.queue_ns * CASE WHEN s.running > 0 THEN s.running END), 0),
      CAST(1 AS DOUBLE)
    ) AS prompt_ratio
  FROM state AS s
  JOIN long_waits AS w ON s.request_key = w.request_key
  LEFT JOIN busy AS b ON s.request_key = b.request_key
),
judged AS (
  SELECT
    *,
    CASE
      WHEN kv_used_ratio IS NULL THEN NULL
      WHEN kv_used_ratio >= $full_ratio OR kv_next_ratio > 1 THEN 'capacity'
      WHEN prompt_ratio >= $prompt_share THEN 'prefill work'
      WHEN standing_ratio >= $standing_share THEN 'admission limit'
    END AS engine_cause
  FROM weighed
),
-- Which engine served a request is not told: engines that queued meanwhile must agree.
agreed AS (
  SELECT
    request_key,
    SUM(samples) AS samples,
    max(kv_used_ratio) AS kv_used_ratio,
    max(kv_next_ratio) AS kv_next_ratio,
    CAST(SUM(running * samples) AS DOUBLE) / SUM(samples) AS running,
    max(waiting) AS waiting,
    max(prompt_ratio) AS prompt_ratio,
    count(*) AS engines,
    count(engine_cause) AS judged,
    CASE WHEN count(DISTINCT engine_cause) = 1 THEN min(engine_cause) END AS own_cause
  FROM judged
  GROUP BY request_key
),
explained AS (
  SELECT
    w.request_key, w.start_ns, w.queue_ns, w.excess_ns, w.whole_ns,
    CAST(coalesce(a.samples, 0) AS BIGINT) AS samples,
    a.kv_used_ratio, a.kv_next_ratio, a.running, a.waiting,
    coalesce(a.prompt_ratio, CAST(0 AS DOUBLE)) AS prompt_ratio,
    -- Engines that disagree leave it unknown; a wait without an answer is like its neighbours.
    CASE WHEN a.judged > 0 AND a.own_cause IS NULL THEN 'unknown' ELSE a.own_cause END AS own_cause
  FROM long_waits AS w
  LEFT JOIN agreed AS a ON w.request_key = a.request_key
),
neighbours AS (
  SELECT
    *,
    last_value(own_cause IGNORE NULLS) OVER before AS cause_before,
    last_value(CASE WHEN own_cause IS NOT NULL THEN start_ns END IGNORE NULLS) OVER before
      AS judged_before_ns,
    first_value(own_cause IGNORE NULLS) OVER behind AS cause_behind,
    first_value(CASE WHEN own_cause IS NOT NULL THEN start_ns END IGNORE NULLS) OVER behind
      AS judged_behind_ns
  FROM explained
  WINDOW
    before AS (
      ORDER BY start_ns, request_key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ),
    behind AS (
      ORDER BY start_ns, request_key ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
    )
)
SELECT
  request_key, start_ns, queue_ns, excess_ns, whole_ns, samples, kv_used_ratio, kv_next_ratio,
  running, waiting, prompt_ratio,
  coalesce(
    own_cause,
    CASE
      WHEN judged_behind_ns - start_ns <= $nearby_ns
        AND (judged_before_ns IS NULL OR judged_behind_ns - start_ns <= start_ns - judged_before_ns)
        THEN cause_behind
      WHEN start_ns - judged_before_ns <= $nearby_ns THEN cause_before
    END,
    'unknown'
  ) AS cause
FROM neighbours
