-- Where a second catalog says another price than the one that was used, and what that is worth.
-- Only for prices that hold today: the second catalog has no history.
-- grain:   one row a model, vendor, prompt step and kind of token that was used, where they differ
-- needs:   resolve_price_of, resolve_unit_price, resolve_request
-- returns: model VARCHAR                -- model
-- returns: provider VARCHAR             -- vendor; empty = not told
-- returns: above_input_tokens BIGINT    -- prompts strictly above; NULL = from 0
-- returns: token_kind VARCHAR           -- input, cache_read, cache_write_short, cache_write_long, output
-- returns: price_source VARCHAR         -- source of the price that was used
-- returns: price_version VARCHAR        -- its version
-- returns: usd DECIMAL(18,9)            -- a million tokens, as used
-- returns: other_source VARCHAR         -- the other catalog
-- returns: other_usd DECIMAL(18,9)      -- a million tokens, as the other says
-- returns: requests BIGINT              -- requests with such tokens
-- returns: tokens BIGINT                -- their tokens of that kind
-- returns: difference_usd DECIMAL(38,15) -- the other less the one used, over them
WITH used AS (
  SELECT
    p.price_id,
    count(CASE WHEN q.input_fresh_tokens > 0 THEN 1 END) AS fresh_requests,
    count(CASE WHEN q.cache_read_tokens > 0 THEN 1 END) AS read_requests,
    count(CASE WHEN q.cache_write_short_tokens > 0 OR q.cache_write_unknown_tokens > 0 THEN 1 END)
      AS short_requests,
    count(CASE WHEN q.cache_write_long_tokens > 0 THEN 1 END) AS long_requests,
    count(CASE WHEN q.output_tokens > 0 THEN 1 END) AS output_requests,
    sum(coalesce(q.input_fresh_tokens, 0)) AS fresh,
    sum(coalesce(q.cache_read_tokens, 0)) AS cached,
    sum(coalesce(q.cache_write_short_tokens, 0) + coalesce(q.cache_write_unknown_tokens, 0))
      AS short,
    sum(coalesce(q.cache_write_long_tokens, 0)) AS long,
    sum(coalesce(q.output_tokens, 0)) AS made
  FROM resolve_price_of AS p
  JOIN resolve_request AS q ON p.request_key = q.request_key
  GROUP BY p.price_id
),
differing AS (
  SELECT
    u.price_id, 'input' AS token_kind, u.fresh_usd AS usd, u.other_fresh_usd AS other_usd,
    s.fresh AS tokens, s.fresh_requests AS requests
  FROM resolve_unit_price AS u JOIN used AS s ON u.price_id = s.price_id
  UNION ALL
  SELECT u.price_id, 'cache_read', u.read_usd, u.other_read_usd, s.cached, s.read_requests
  FROM resolve_unit_price AS u JOIN used AS s ON u.price_id = s.price_id
  UNION ALL
  SELECT u.price_id, 'cache_write_short', u.short_usd, u.other_short_usd, s.short, s.short_requests
  FROM resolve_unit_price AS u JOIN used AS s ON u.price_id = s.price_id
  UNION ALL
  SELECT u.price_id, 'cache_write_long', u.long_usd, u.other_long_usd, s.long, s.long_requests
  FROM resolve_unit_price AS u JOIN used AS s ON u.price_id = s.price_id
  UNION ALL
  SELECT u.price_id, 'output', u.output_usd, u.other_output_usd, s.made, s.output_requests
  FROM resolve_unit_price AS u JOIN used AS s ON u.price_id = s.price_id
)
SELECT
  u.model, u.provider, u.above_input_tokens, d.token_kind, u.price_source, u.price_version,
  d.usd, u.other_source, d.other_usd, d.requests,
  CAST(d.tokens AS BIGINT) AS tokens,
  CAST(CAST(d.tokens AS DECIMAL(18,0))
    * CAST((d.other_usd - d.usd) * 0.000001 AS DECIMAL(20,15)) AS DECIMAL(38,15)) AS difference_usd
FROM differing AS d
JOIN resolve_unit_price AS u ON d.price_id = u.price_id
WHERE d.other_usd IS NOT NULL AND d.tokens > 0
