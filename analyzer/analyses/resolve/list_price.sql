-- What the tokens of each request cost, a million of each kind.
-- grain:   one row a request whose price is known
-- needs:   resolve_price_of, resolve_unit_price
-- returns: request_key BIGINT             -- the request
-- returns: input_usd DECIMAL(18,9)        -- a million prompt tokens outside the cache
-- returns: read_usd DECIMAL(18,9)         -- a million tokens read from the cache
-- returns: short_usd DECIMAL(18,9)        -- a million tokens written to the short-lived cache
-- returns: long_usd DECIMAL(18,9)         -- a million tokens written to the long-lived cache
-- returns: output_usd DECIMAL(18,9)       -- a million output tokens
SELECT p.request_key, u.fresh_usd AS input_usd, u.read_usd, u.short_usd, u.long_usd, u.output_usd
FROM resolve_price_of AS p
JOIN resolve_unit_price AS u ON p.price_id = u.price_id
WHERE u.price_source IS NOT NULL
