-- Status of the model servers on the case's common time line, inside the time filter.
-- grain:   one row a sample
-- needs:   engine_sample
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
SELECT
  source_id, record, time_ns, coalesce(engine, '') AS engine, running, waiting, kv_used_ratio,
  prompt_tokens_per_s, generation_tokens_per_s, prefix_hit_ratio
FROM engine_sample
WHERE coalesce(clock, 'wall') = 'wall' AND time_ns IS NOT NULL
  AND (running IS NOT NULL OR waiting IS NOT NULL OR kv_used_ratio IS NOT NULL)
  AND ($since_ns IS NULL OR time_ns >= $since_ns)
  AND ($until_ns IS NULL OR time_ns < $until_ns)
