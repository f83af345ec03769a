-- Which engine's samples tell of which deployment's requests: those that bear its name, or whose
-- file does; a deployment that none names may have been served by any engine without a name.
-- grain:   one row a deployment of requests and an engine that may have served it
-- needs:   latency_queue_stay, resolve_engine_sample, source
-- param:   name_chars = 3          -- shorter names stand in paths by chance
-- returns: server VARCHAR          -- deployment of the requests; empty = not told
-- returns: source_id INTEGER       -- file of the engine's samples
-- returns: engine VARCHAR          -- its name in that file
WITH engines AS (
  SELECT DISTINCT e.source_id, e.engine, s.path
  FROM resolve_engine_sample AS e
  JOIN source AS s ON e.source_id = s.source_id
),
servers AS (
  SELECT DISTINCT server FROM latency_queue_stay
),
pairs AS (
  SELECT
    v.server, e.source_id, e.engine,
    CASE
      WHEN v.server <> '' AND (e.engine = v.server OR e.engine LIKE v.server || '/%') THEN 1
      WHEN length(v.server) >= $name_chars AND e.path LIKE '%' || v.server || '%' THEN 1
      ELSE 0
    END AS is_named
  FROM servers AS v
  CROSS JOIN engines AS e
),
told AS (
  SELECT
    *,
    max(is_named) OVER (PARTITION BY server) AS server_named,
    max(is_named) OVER (PARTITION BY source_id, engine) AS engine_named
  FROM pairs
)
SELECT server, source_id, engine
FROM told
WHERE is_named = 1 OR (server_named = 0 AND engine_named = 0)
