-- What the attempts of one user intent have in common, where the log tells it. Many clients name an
-- operation by the id of its first attempt, on the later ones only.
-- grain:   one row a request whose operation is told
-- needs:   resolve_request
-- returns: request_key BIGINT      -- the request
-- returns: operation VARCHAR       -- its operation
WITH named_by AS (
  SELECT DISTINCT operation_id FROM resolve_request WHERE operation_id IS NOT NULL
),
called AS (
  SELECT
    q.request_key,
    coalesce(q.operation_id, n.operation_id, CASE WHEN q.attempt IS NOT NULL THEN q.id END)
      AS operation
  FROM resolve_request AS q
  LEFT JOIN named_by AS n ON q.id = n.operation_id
)
SELECT request_key, operation FROM called WHERE operation IS NOT NULL
