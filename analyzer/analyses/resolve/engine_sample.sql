-- Status of the model servers on the case's common time line, inside the time filter. A log that
-- writes the time of another zone is put right.
-- grain:   one row a sample
-- needs:   engine_sample, resolve_sample_zone
-- param:   since_ns = NULL                    -- only samples at or after
-- param:   until_ns = NULL                    -- only samples before
-- returns: source_id INTEGER                  -- where it was read
-- returns: record BIGINT                      -- record of that source
-- returns: time_ns BIGINT                     -- when, ns UTC
-- returns: engine VARCHAR                     -- engine that reports
-- returns: running BIGINT                     -- requests in the batch
-- returns: waiting BIGINT                     -- requests that wait
-- returns: kv_used_ratio DOUBLE               -- KV cache in use, 0 to 1
-- returns: prompt_tokens_per_s DOUBLE         -- prompt tokens processed a second
-- returns: generation_tokens_per_s DOUBLE     -- tokens generated a second
-- returns: prefix_hit_ratio DOUBLE            -- the engine's own moving hit rate, 0 to 1
-- returns: preemptions BIGINT                 -- preemptions since the sample before, where counted
WITH zoned AS (
  SELECT s.*, s.time_ns - coalesce(z.zone_ns, 0) AS at_ns
  FROM engine_sample AS s
  LEFT JOIN resolve_sample_zone AS z ON s.source_id = z.source_id
)
SELECT
  source_id, record, at_ns AS time_ns, coalesce(engine, '') AS engine, running, waiting, kv_used_ratio,
  prompt_tokens_per_s, generation_tokens_per_s, prefix_hit_ratio, preemptions
FROM zoned
WHERE coalesce(clock, 'wall') = 'wall' AND at_ns IS NOT NULL
  AND (running IS NOT NULL OR waiting IS NOT NULL OR kv_used_ratio IS NOT NULL)
  AND ($since_ns IS NULL OR at_ns >= $since_ns)
  AND ($until_ns IS NULL OR at_ns < $until_ns)
