-- Requests of the periods and models at which the bill and the logs differ; where the logs tell none
-- there, all that they track: the bill tells of usage that none of them holds.
-- grain:   one row a tracked request
-- needs:   cost_reconciled, cost_tracked, resolve_request
-- returns: request_key BIGINT      -- the request
-- returns: usd DOUBLE              -- its part of the money by which they differ, whichever side tells more
WITH lines AS (
  SELECT
    period_start_ns, period_end_ns, model,
    sum(abs(coalesce(CAST(difference_usd AS DOUBLE), 0))) AS usd
  FROM cost_reconciled
  WHERE counts AND is_material AND NOT is_harmless
  GROUP BY period_start_ns, period_end_ns, model
),
whole AS (
  SELECT count(*) AS lines, coalesce(sum(usd), 0) AS usd FROM lines
),
tracked AS (
  SELECT q.request_key, q.start_ns, q.model
  FROM cost_tracked AS t
  JOIN resolve_request AS q ON t.request_key = q.request_key
  WHERE t.is_metered
),
within AS (
  SELECT DISTINCT t.request_key
  FROM tracked AS t
  JOIN lines AS l
    ON t.start_ns >= l.period_start_ns AND t.start_ns < l.period_end_ns
    AND (l.model IS NULL OR l.model = t.model)
),
counted AS (
  SELECT count(*) AS requests FROM within
)
SELECT t.request_key, w.usd / count(*) OVER () AS usd
FROM tracked AS t
CROSS JOIN whole AS w
CROSS JOIN counted AS c
LEFT JOIN within AS i ON t.request_key = i.request_key
WHERE w.lines > 0 AND (i.request_key IS NOT NULL OR c.requests = 0)
