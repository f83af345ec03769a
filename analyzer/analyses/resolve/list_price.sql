-- What one token of each request costs, by its kind.
-- grain:   one row a request whose price is known
-- needs:   resolve_request, resolve_price_of, resolve_unit_price, resolve_token_price
-- returns: request_key BIGINT              -- the request
-- returns: input_usd DECIMAL(20,15)        -- prompt outside the cache
-- returns: read_usd DECIMAL(20,15)         -- read from the cache
-- returns: short_usd DECIMAL(20,15)        -- written to the short-lived cache, or to one whose lifetime is not told
-- returns: long_usd DECIMAL(20,15)         -- written to the long-lived cache
-- returns: unread_usd DECIMAL(20,15)       -- prompt that is not read from the cache: written to it, where the request writes, at the lifetime it writes most for
-- returns: output_usd DECIMAL(20,15)       -- output
SELECT
  p.request_key, t.fresh_usd AS input_usd, t.read_usd, t.short_usd, t.long_usd,
  CASE
    WHEN coalesce(q.cache_write_tokens, 0) = 0 THEN t.fresh_usd
    WHEN 2 * coalesce(q.cache_write_long_tokens, 0) > q.cache_write_tokens THEN t.long_usd
    ELSE t.short_usd
  END AS unread_usd,
  t.output_usd
FROM resolve_price_of AS p
JOIN resolve_request AS q ON p.request_key = q.request_key
JOIN resolve_unit_price AS u ON p.price_id = u.price_id
JOIN resolve_token_price AS t ON p.price_id = t.price_id
WHERE u.price_source IS NOT NULL
