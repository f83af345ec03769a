-- Which clock stamped the rows of a source: one a file, vantage and engine. Files of few rows are
-- taken together with their like, which are mostly logs of the same machine.
-- grain:   one row a source, vantage and deployment
-- needs:   request, source
-- param:   own_rows = 20                  -- rows from which a file is judged by itself
-- returns: source_id INTEGER              -- the source
-- returns: vantage VARCHAR                -- client, gateway, provider or engine
-- returns: deployment VARCHAR             -- engine instance; empty = not told
-- returns: clock VARCHAR                  -- name of its clock
-- returns: vantage_rank INTEGER           -- 1 outermost (client) to 4 innermost (engine)
-- returns: rows_told BIGINT               -- request rows with a time
-- returns: first_ns BIGINT                -- first time on that clock, ns
-- returns: last_ns BIGINT                 -- last time on that clock, ns
-- returns: grain_ns BIGINT                -- stamps are cut to this: 1 s, 1 ms or 1 ns
WITH told AS (
  SELECT
    source_id, vantage,
    CASE WHEN vantage IN ('engine', 'provider') THEN coalesce(deployment, '') ELSE '' END
      AS deployment,
    CASE vantage WHEN 'client' THEN 1 WHEN 'gateway' THEN 2 WHEN 'provider' THEN 3 ELSE 4 END
      AS vantage_rank,
    start_ns,
    start_ns + coalesce(e2e_ns, ttft_ns, 0) AS end_ns,
    -- A source that states durations stamps one moment; one that lists events stamps each.
    CASE WHEN coalesce(timing, 'stated') = 'stated' THEN 1 ELSE 2 END AS stamps
  FROM request
  WHERE start_ns IS NOT NULL AND coalesce(clock, 'wall') = 'wall'
),
cut AS (
  SELECT
    *,
    CASE WHEN start_ns % 1000000000 = 0 THEN 1 ELSE 0 END
      + CASE WHEN end_ns % 1000000000 = 0 THEN 1 ELSE 0 END AS whole_seconds,
    CASE WHEN start_ns % 1000000 = 0 THEN 1 ELSE 0 END
      + CASE WHEN end_ns % 1000000 = 0 THEN 1 ELSE 0 END AS whole_ms
  FROM told
),
grouped AS (
  SELECT
    source_id, vantage, deployment,
    min(vantage_rank) AS vantage_rank,
    count(*) AS rows_told,
    min(start_ns) AS first_ns,
    max(end_ns) AS last_ns,
    CASE
      WHEN count(*) FILTER (WHERE whole_seconds >= stamps) = count(*) THEN 1000000000
      WHEN count(*) FILTER (WHERE whole_ms >= stamps) = count(*) THEN 1000000
      ELSE 1
    END AS grain_ns
  FROM cut
  GROUP BY source_id, vantage, deployment
)
SELECT
  g.source_id, g.vantage, g.deployment,
  concat(
    g.vantage, ' ',
    CASE WHEN g.rows_told >= $own_rows THEN s.path ELSE coalesce(s.reader, s.path) END,
    CASE WHEN g.deployment = '' THEN '' ELSE ' ' END, g.deployment
  ) AS clock,
  CAST(g.vantage_rank AS INTEGER) AS vantage_rank,
  g.rows_told, g.first_ns, g.last_ns, CAST(g.grain_ns AS BIGINT) AS grain_ns
FROM grouped AS g
JOIN source AS s ON g.source_id = s.source_id
