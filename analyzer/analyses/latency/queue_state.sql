-- What the engine's own samples say of each long wait: capacity, where the KV cache could not take
-- another request; prefill work, where the batch spent its time on prompts; admission limit, where
-- the batch stood at its limit although the cache had room for more.
-- grain:   one row a request that waited long while an engine told of requests queued
-- needs:   latency_queue_stay, latency_queue_ahead, latency_queue_engine, resolve_engine_sample, resolve_capacity
-- param:   full_ratio = 0.95          -- from here on the cache is full whatever a request takes
-- param:   large_share = 0.9          -- served in order, all wait for what a large one of those queued needs
-- param:   room_ratio = 0.9           -- with less, that large one fits: sizes are known that well
-- param:   at_limit_share = 0.9       -- of the largest batch that engine ran at about that time
-- param:   standing_share = 0.7       -- of the samples in which the batch must stand there
-- param:   little_share = 0.3         -- of the wait at the largest batch by the requests' own stays: it stood nowhere
-- param:   seen_share = 0.7           -- of the batch that the stays must show to speak of it
-- param:   prompted_share = 0.9       -- of the wait with prompts in work, while the batch could be larger
-- param:   prompt_share = 0.5         -- of the batch's time that prefill must take to explain a wait
-- param:   nearby_ns = 30000000000    -- the largest batch within this of a sample is what it could run then
-- returns: request_key BIGINT         -- the request
-- returns: samples BIGINT             -- samples during the wait with requests queued
-- returns: kv_used_ratio DOUBLE       -- highest KV use in them, 0 to 1
-- returns: kv_next_ratio DOUBLE       -- KV use if one more had been let in, 0 to 1 and above
-- returns: running DOUBLE             -- mean batch in them
-- returns: waiting BIGINT             -- most requests queued in them
-- returns: prompt_ratio DOUBLE        -- share of the batch's time spent on prefill meanwhile, 0 to 1
-- returns: engine_cause VARCHAR       -- admission limit, capacity, prefill work; unknown = engines disagree; NULL = none of them
WITH sampled AS (
  SELECT
    time_ns, source_id, engine, running, waiting, kv_used_ratio,
    max(running) OVER (
      PARTITION BY source_id, engine ORDER BY time_ns
      RANGE BETWEEN $nearby_ns PRECEDING AND $nearby_ns FOLLOWING
    ) AS largest,
    time_ns - lag(time_ns) OVER (PARTITION BY source_id, engine ORDER BY time_ns, record) AS step_ns
  FROM resolve_engine_sample
),
cadence AS (
  SELECT coalesce(CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY step_ns) AS BIGINT), 0) AS step_ns
  FROM sampled
  WHERE step_ns > 0
),
queued AS (
  SELECT
    s.time_ns, s.source_id, s.engine, s.running, s.waiting, s.kv_used_ratio, s.largest,
    c.step_ns AS reach_ns
  FROM sampled AS s
  CROSS JOIN cadence AS c
  WHERE s.waiting > 0
),
-- Who is served in order waits for the first of the queue: one as large as the large ones of them.
needs AS (
  SELECT
    server,
    percentile_cont($large_share) WITHIN GROUP (ORDER BY input_tokens) AS input_tokens
  FROM latency_queue_stay
  WHERE is_long
  GROUP BY server
),
state AS (
  SELECT
    w.request_key, q.source_id, q.engine,
    count(*) AS samples,
    max(q.kv_used_ratio) AS kv_used_ratio,
    -- What it would take to let this one in: its prompt where the pool's size is told, else as much
    -- as the running ones take on average.
    max(q.kv_used_ratio + coalesce(
      greatest(CAST(w.input_tokens AS DOUBLE), n.input_tokens) / p.capacity_tokens,
      q.kv_used_ratio / CASE WHEN q.running > 0 THEN q.running END, 0)) AS kv_next_ratio,
    CAST(SUM(q.running) AS DOUBLE) / count(*) AS running,
    CAST(count(*) FILTER (WHERE q.running >= $at_limit_share * q.largest) AS DOUBLE) / count(*)
      AS standing_ratio,
    max(q.waiting) AS waiting,
    max(a.prompt_ns) / max(w.queue_ns) AS prompts, max(a.in_service) AS in_service,
    max(a.standing_ratio) AS stood_ratio, max(a.prompted_ratio) AS prompted_ratio
  FROM latency_queue_stay AS w
  JOIN latency_queue_ahead AS a ON w.request_key = a.request_key
  CROSS JOIN resolve_capacity AS p
  JOIN needs AS n ON w.server = n.server
  JOIN latency_queue_engine AS e ON w.server = e.server
  JOIN queued AS q
    ON e.source_id = q.source_id AND e.engine = q.engine
      AND q.time_ns >= w.start_ns - q.reach_ns AND q.time_ns <= w.admit_ns + q.reach_ns
  WHERE w.is_long
  GROUP BY w.request_key, q.source_id, q.engine
),
weighed AS (
  SELECT
    *,
    least(coalesce(prompts / CASE WHEN running > 0 THEN running END, 0), CAST(1 AS DOUBLE))
      AS prompt_ratio
  FROM state
),
judged AS (
  SELECT
    *,
    CASE
      WHEN kv_used_ratio IS NULL THEN NULL
      WHEN kv_used_ratio >= $full_ratio OR kv_next_ratio > $room_ratio THEN 'capacity'
      WHEN prompt_ratio >= $prompt_share OR (prompted_ratio >= $prompted_share
        AND stood_ratio < $little_share AND in_service >= $seen_share * running) THEN 'prefill work'
      WHEN standing_ratio >= $standing_share
        AND NOT coalesce(stood_ratio < $little_share AND in_service >= $seen_share * running, FALSE)
        THEN 'admission limit'
    END AS engine_cause
  FROM weighed
)
-- Where several engines may have served it, those that queued meanwhile must agree.
SELECT
  request_key,
  CAST(SUM(samples) AS BIGINT) AS samples,
  max(kv_used_ratio) AS kv_used_ratio,
  max(kv_next_ratio) AS kv_next_ratio,
  CAST(SUM(running * samples) AS DOUBLE) / SUM(samples) AS running,
  max(waiting) AS waiting,
  max(prompt_ratio) AS prompt_ratio,
  CASE
    WHEN count(DISTINCT engine_cause) = 1 THEN min(engine_cause)
    WHEN count(engine_cause) > 0 THEN 'unknown'
  END AS engine_cause
FROM judged
GROUP BY request_key
