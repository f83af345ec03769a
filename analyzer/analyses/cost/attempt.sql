-- Of how many attempts with a price an operation is: each of three counts a third, so that operations
-- add up, whatever the attempts are grouped by.
-- grain:   one row a metered request whose operation has more than one
-- needs:   cost_tracked, cost_request, resolve_operation
-- returns: request_key BIGINT         -- the request
-- returns: attempts BIGINT            -- metered attempts of its operation that have a price
WITH counted AS (
  SELECT o.request_key, count(*) OVER (PARTITION BY o.operation) AS attempts
  FROM resolve_operation AS o
  JOIN cost_tracked AS t ON o.request_key = t.request_key
  JOIN cost_request AS c ON o.request_key = c.request_key
  WHERE t.is_metered AND c.usd IS NOT NULL
)
SELECT request_key, attempts FROM counted WHERE attempts > 1
