-- Sources whose records are the bill of what other sources log: a provider's own record of single
-- calls, beside logs of the same model. Where nothing else tells requests, it is the log.
-- grain:   one row a source of that kind
-- needs:   request, source
-- returns: source_id INTEGER    -- the source
WITH log_models AS (
  SELECT DISTINCT model FROM request WHERE vantage <> 'provider' AND model IS NOT NULL
),
any_log AS (
  SELECT count(*) AS requests FROM request WHERE vantage <> 'provider'
)
SELECT DISTINCT r.source_id
FROM request AS r
JOIN source AS s ON r.source_id = s.source_id
CROSS JOIN any_log AS o
LEFT JOIN log_models AS m ON r.model = m.model
WHERE r.vantage = 'provider' AND o.requests > 0
  AND (s.reader = 'billing_records' OR m.model IS NOT NULL)
