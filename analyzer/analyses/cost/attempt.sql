-- What part of its operation each attempt is: an operation of three attempts that were billed counts
-- a third for each, so that operations add up, whatever the attempts are grouped by.
-- grain:   one row a metered request whose operation has more than one
-- needs:   cost_tracked, cost_request, resolve_request
-- param:   whole = 720720             -- parts of an operation: every count of attempts up to 16 divides it
-- returns: request_key BIGINT         -- the request
-- returns: attempts BIGINT            -- metered attempts of its operation
-- returns: parts BIGINT               -- parts of the operation that count for it
WITH named_by AS (
  SELECT DISTINCT operation_id FROM resolve_request WHERE operation_id IS NOT NULL
),
asked AS (
  -- Many clients name an operation by the id of its first attempt, on the later ones only.
  SELECT
    q.request_key,
    coalesce(q.operation_id, n.operation_id, CASE WHEN q.attempt IS NOT NULL THEN q.id END)
      AS operation
  FROM resolve_request AS q
  JOIN cost_tracked AS t ON q.request_key = t.request_key
  JOIN cost_request AS c ON q.request_key = c.request_key
  LEFT JOIN named_by AS n ON q.id = n.operation_id
  WHERE t.is_metered AND c.usd IS NOT NULL
),
counted AS (
  SELECT request_key, count(*) OVER (PARTITION BY operation) AS attempts
  FROM asked
  WHERE operation IS NOT NULL
)
SELECT
  request_key, attempts,
  CAST(($whole - $whole % attempts) / attempts AS BIGINT) AS parts
FROM counted
WHERE attempts > 1
