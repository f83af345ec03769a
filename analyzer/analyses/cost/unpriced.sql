-- What has no known price: of models that are not served by an engine of one's own. A missing price of
-- cached tokens alone is another matter (cost_cache_price).
-- grain:   one row a metered request that no engine of one's own served
-- needs:   cost_tracked, cost_request, cost_cache_price, resolve_request
-- returns: request_key BIGINT          -- the request
-- returns: model VARCHAR               -- model; NULL = not told
-- returns: tokens BIGINT               -- its tokens, prompt and output
-- returns: unpriced_tokens BIGINT      -- of them without a known price
-- returns: usd DECIMAL(38,15)          -- what is priced of it
SELECT
  c.request_key,
  q.model,
  CAST(coalesce(q.input_tokens, 0) + coalesce(q.output_tokens, 0) AS BIGINT) AS tokens,
  CAST(c.unpriced_tokens - coalesce(k.unpriced_tokens, 0) AS BIGINT) AS unpriced_tokens,
  c.usd
FROM cost_tracked AS t
JOIN cost_request AS c ON t.request_key = c.request_key
JOIN resolve_request AS q ON t.request_key = q.request_key
LEFT JOIN cost_cache_price AS k ON t.request_key = k.request_key
WHERE t.is_metered AND q.inner_vantage <> 'engine'
