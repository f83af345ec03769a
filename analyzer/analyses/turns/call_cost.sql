-- What each call cost by the prices of the case: every bucket at its own price.
-- grain:   one row a request with prompt tokens
-- needs:   resolve_request, resolve_conversation, resolve_list_price
-- returns: request_key BIGINT         -- the request
-- returns: usd DECIMAL(38,15)         -- its cost; NULL = a price is missing
WITH told AS (
  SELECT
    q.request_key, q.input_fresh_tokens, q.output_tokens, q.cache_read_tokens,
    coalesce(v.write_short_tokens, 0) + coalesce(v.write_unknown_tokens, 0) AS short_tokens,
    coalesce(v.write_long_tokens, 0) AS long_tokens, p.input_usd, p.read_usd, p.short_usd,
    p.long_usd, p.output_usd
  FROM resolve_request AS q
  JOIN resolve_conversation AS v ON q.request_key = v.request_key
  LEFT JOIN resolve_list_price AS p ON q.request_key = p.request_key
  -- No request is larger, and products stay exact.
  WHERE q.input_tokens + coalesce(q.output_tokens, 0) <= 1000000000000
)
SELECT
  request_key,
  CAST((CAST(input_fresh_tokens AS DECIMAL(17,0)) * input_usd
    + CASE WHEN coalesce(cache_read_tokens, 0) = 0 THEN 0
      ELSE CAST(cache_read_tokens AS DECIMAL(17,0)) * read_usd END
    + CASE WHEN short_tokens = 0 THEN 0 ELSE CAST(short_tokens AS DECIMAL(17,0)) * short_usd END
    + CASE WHEN long_tokens = 0 THEN 0 ELSE CAST(long_tokens AS DECIMAL(17,0)) * long_usd END
    + CASE WHEN coalesce(output_tokens, 0) = 0 THEN 0
      ELSE CAST(output_tokens AS DECIMAL(17,0)) * output_usd END) * 0.000001 AS DECIMAL(38,15))
    AS usd
FROM told
