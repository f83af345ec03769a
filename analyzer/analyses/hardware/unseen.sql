-- Whether engines report more running requests than the case has: then the batch that overlaps tell
-- is too small, and so is its bound. Both are counted at the same moments, those of the samples.
-- grain:   one row
-- needs:   hardware_interval, resolve_engine_sample
-- param:   more = 1.5                   -- so many times as many as are seen; clocks and prompts cost less
-- param:   besides = 1.5                -- and so many more: one other request is no traffic
-- returns: seen DOUBLE                  -- requests in work at the samples, mean
-- returns: reported DOUBLE              -- running as the engines report them, all together, mean
-- returns: is_unseen BOOLEAN            -- others ran beside these requests
WITH events AS (
  SELECT prefill_begin_ns AS at_ns, 1 AS more, '' AS engine, NULL AS running FROM hardware_interval
  UNION ALL
  SELECT last_ns, -1, '', NULL FROM hardware_interval
  UNION ALL
  SELECT time_ns, 0, engine, running FROM resolve_engine_sample WHERE running IS NOT NULL
),
counted AS (
  SELECT
    engine, running,
    SUM(more) OVER (ORDER BY at_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS seen
  FROM events
),
sampled AS (
  SELECT engine, avg(CAST(running AS DOUBLE)) AS running, avg(CAST(seen AS DOUBLE)) AS seen
  FROM counted
  WHERE running IS NOT NULL AND seen > 0
  GROUP BY engine
),
means AS (SELECT avg(seen) AS seen, SUM(running) AS reported FROM sampled)
SELECT
  seen, reported,
  coalesce(reported > $more * seen AND reported > seen + $besides, FALSE) AS is_unseen
FROM means
