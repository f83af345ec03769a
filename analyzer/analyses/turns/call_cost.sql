-- What each call cost, where all of its tokens have a price.
-- grain:   one row a request with prompt tokens
-- needs:   resolve_request, cost_request
-- returns: request_key BIGINT         -- the request
-- returns: usd DECIMAL(38,15)         -- its cost; NULL = a price is missing
SELECT
  q.request_key,
  CASE WHEN c.unpriced_tokens = 0 THEN c.usd END AS usd
FROM resolve_request AS q
JOIN cost_request AS c ON q.request_key = c.request_key
WHERE q.input_tokens IS NOT NULL
