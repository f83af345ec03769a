-- Which logs of a model server write the time of another zone: their status lines show no work when the
-- requests ran, and all of it when they are moved by whole half hours.
-- grain:   one row a source of status lines that is off by a zone
-- needs:   resolve_told, engine_sample
-- python:  sample_zone -- the same minutes at every possible zone
-- param:   minute_ns = 60000000000     -- zones are whole minutes apart
-- param:   most_rows = 400000          -- minutes of all sources
-- returns: source_id INTEGER           -- the source
-- returns: zone_ns BIGINT              -- its times are ahead by this, ns
WITH innermost AS (
  SELECT max(vantage_rank) AS vantage_rank FROM resolve_told WHERE start_ns IS NOT NULL
),
asked AS (
  SELECT
    CAST(-1 AS INTEGER) AS source_id, t.start_ns - t.start_ns % $minute_ns AS at_ns,
    CAST(SUM(greatest(t.end_ns - t.start_ns, 1000000)) AS DOUBLE) AS work
  FROM resolve_told AS t
  JOIN innermost AS i ON t.vantage_rank = i.vantage_rank
  WHERE t.start_ns IS NOT NULL
  GROUP BY t.start_ns - t.start_ns % $minute_ns
),
shown AS (
  SELECT
    source_id, time_ns - time_ns % $minute_ns AS at_ns,
    avg(CAST(coalesce(running, 0) + coalesce(waiting, 0) AS DOUBLE)) AS work
  FROM engine_sample
  WHERE time_ns IS NOT NULL AND coalesce(clock, 'wall') = 'wall'
    AND (running IS NOT NULL OR waiting IS NOT NULL)
  GROUP BY source_id, time_ns - time_ns % $minute_ns
)
SELECT source_id, at_ns, work FROM asked
UNION ALL
SELECT source_id, at_ns, work FROM shown
ORDER BY 1, 2
LIMIT $most_rows
