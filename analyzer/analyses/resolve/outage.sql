-- Moments at which a model server lost what it had in its cache. Where a log tells the size of the cache
-- again (engines do when they start), that is a restart, too.
-- grain:   one row a restart, load, unload, crash or start
-- needs:   engine_event, engine_sample
-- param:   one_start_ns = 120000000000  -- several ranks of one start tell it within two minutes
-- returns: time_ns BIGINT     -- when, ns UTC
-- returns: kind VARCHAR       -- restart, load, unload, crash, out_of_memory or start
WITH sized AS (
  SELECT time_ns, min(time_ns) OVER (PARTITION BY source_id) AS first_ns
  FROM engine_sample
  WHERE time_ns IS NOT NULL AND capacity_tokens > 0 AND running IS NULL AND kv_used_ratio IS NULL
)
SELECT time_ns, kind
FROM engine_event
WHERE time_ns IS NOT NULL AND kind IN ('restart', 'load', 'unload', 'crash', 'out_of_memory')
UNION ALL
SELECT time_ns, 'start' AS kind
FROM sized
WHERE time_ns > first_ns + $one_start_ns
