-- Requests that used the prompt cache, and whether what they read and wrote has a price of its own:
-- none is known, or the source's own cost is what they would be at the full price of input.
-- grain:   one row a request that read from a cache or wrote to one
-- needs:   cost_request, cost_tracked, resolve_request, resolve_token_price
-- param:   smallest_gap = 0.02               -- of the cost: a smaller difference of both prices cannot be told apart
-- param:   tolerance = 0.005                 -- sources round to a fraction of a cent
-- returns: request_key BIGINT                -- the request
-- returns: model VARCHAR                     -- model; empty = not told
-- returns: cached_tokens BIGINT              -- read from the cache
-- returns: input_tokens BIGINT               -- its prompt
-- returns: unpriced_tokens BIGINT            -- read or written without a known price, though fresh input has one
-- returns: is_full_price BOOLEAN             -- its source charges what was read as fresh input
-- returns: can_compare BOOLEAN               -- its source tells a cost that could show that
-- returns: usd DECIMAL(38,15)                -- what it costs here
-- returns: reported_usd DECIMAL(18,9)        -- what its source says
-- returns: excess_usd DECIMAL(38,15)         -- what the source charges too much; NULL = no such
WITH used AS (
  SELECT
    c.request_key, coalesce(q.model, '') AS model, q.input_tokens, c.usd, c.reported_usd,
    c.unpriced_tokens AS all_unpriced,
    least(coalesce(q.cache_read_tokens, 0), 999999999999) AS cached,
    coalesce(q.cache_write_short_tokens, 0) + coalesce(q.cache_write_unknown_tokens, 0) AS short,
    coalesce(q.cache_write_long_tokens, 0) AS long,
    p.fresh_usd, p.read_usd, p.short_usd, p.long_usd,
    CAST(p.fresh_usd - p.read_usd AS DECIMAL(20,15)) AS less_usd
  FROM cost_request AS c
  JOIN cost_tracked AS t ON c.request_key = t.request_key
  JOIN resolve_request AS q ON c.request_key = q.request_key
  JOIN resolve_token_price AS p ON c.price_id = p.price_id
  WHERE t.is_metered AND c.price_source IS NOT NULL
    AND (q.cache_read_tokens > 0 OR q.cache_write_tokens > 0)
),
held AS (
  SELECT
    *,
    usd + CAST(cached AS DECIMAL(12,0)) * less_usd AS full_usd,
    reported_usd > 0 AND all_unpriced = 0 AND less_usd > 0 AND cached > 0
      AND CAST(cached AS DECIMAL(12,0)) * less_usd >= $smallest_gap * usd AS can_compare
  FROM used
)
SELECT
  request_key,
  model,
  CAST(cached AS BIGINT) AS cached_tokens,
  input_tokens,
  CAST(CASE WHEN fresh_usd IS NULL THEN 0
    ELSE CASE WHEN read_usd IS NULL THEN cached ELSE 0 END
      + CASE WHEN short_usd IS NULL THEN short ELSE 0 END
      + CASE WHEN long_usd IS NULL THEN long ELSE 0 END END AS BIGINT) AS unpriced_tokens,
  coalesce(can_compare AND abs(reported_usd - full_usd) <= $tolerance * full_usd, FALSE)
    AS is_full_price,
  coalesce(can_compare, FALSE) AS can_compare,
  usd,
  reported_usd,
  CASE WHEN can_compare AND abs(reported_usd - full_usd) <= $tolerance * full_usd
    THEN CAST(reported_usd - usd AS DECIMAL(38,15)) END AS excess_usd
FROM held
