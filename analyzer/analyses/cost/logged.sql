-- What the logs track of tokens and their cost, in half hours: the grain at which bills are held
-- against them, whatever zone their days are of.
-- grain:   one row a half hour, model, vendor, tier and kind of token
-- needs:   cost_tracked, cost_request, resolve_request, resolve_token_price, resolve_billed_tag, resolve_instance, resolve_told, request_tag
-- param:   bin_ns = 1800000000000        -- days of some zones begin at half an hour
-- returns: bin_ns BIGINT                 -- the half hour begins, by when its requests began, ns UTC
-- returns: model VARCHAR                 -- model
-- returns: provider VARCHAR              -- vendor
-- returns: service_tier VARCHAR          -- tier; byok = paid to the vendor with a key of one's own
-- returns: token_kind VARCHAR            -- as in bills: input_fresh, cache_read, cache_write_short, _long, _unknown, output_visible, output_reasoning
-- returns: requests BIGINT               -- requests that began then, whether or not with that kind
-- returns: tokens BIGINT                 -- their tokens
-- returns: usd DECIMAL(38,15)            -- what they cost by our prices
-- returns: unpriced_tokens BIGINT        -- of them without a price
WITH own_key AS (
  SELECT DISTINCT i.request_key
  FROM request_tag AS g
  JOIN resolve_told AS t ON g.source_id = t.source_id AND g.record = t.record
  JOIN resolve_instance AS i ON t.row_id = i.row_id
  WHERE g.name = 'is_byok' AND g.value IN ('true', 'True', '1')
),
parted AS (
  SELECT
    q.start_ns - q.start_ns % $bin_ns AS bin_ns, q.model, q.provider,
    CASE WHEN k.request_key IS NOT NULL THEN 'byok' ELSE coalesce(b.tier, q.service_tier) END
      AS service_tier,
    coalesce(q.input_fresh_tokens, 0) AS fresh, coalesce(q.cache_read_tokens, 0) AS cached,
    coalesce(q.cache_write_short_tokens, 0) AS short,
    coalesce(q.cache_write_long_tokens, 0) AS long,
    coalesce(q.cache_write_unknown_tokens, 0) AS unknown,
    coalesce(q.output_visible_tokens, 0) AS visible,
    coalesce(q.output_reasoning_tokens, 0) AS reasoned,
    c.fresh_usd, c.read_usd, c.write_usd, c.visible_usd, c.reasoning_usd,
    CASE
      WHEN coalesce(q.cache_write_long_tokens, 0) = 0 THEN CAST(0 AS DECIMAL(38,15))
      WHEN coalesce(q.cache_write_short_tokens, 0) + coalesce(q.cache_write_unknown_tokens, 0) = 0
        THEN c.write_usd
      ELSE CAST(CAST(least(q.cache_write_long_tokens, 999999999999) AS DECIMAL(12,0)) * u.long_usd
        AS DECIMAL(38,15))
    END AS long_usd
  FROM cost_tracked AS t
  JOIN cost_request AS c ON t.request_key = c.request_key
  JOIN resolve_request AS q ON t.request_key = q.request_key
  LEFT JOIN resolve_token_price AS u ON c.price_id = u.price_id
  LEFT JOIN resolve_billed_tag AS b ON t.request_key = b.request_key
  LEFT JOIN own_key AS k ON t.request_key = k.request_key
  WHERE t.is_metered AND q.start_ns IS NOT NULL
),
summed AS (
  SELECT
    bin_ns, model, provider, service_tier, count(*) AS requests,
    sum(fresh) AS fresh, sum(cached) AS cached, sum(short) AS short, sum(long) AS long,
    sum(unknown) AS unknown, sum(visible) AS visible, sum(reasoned) AS reasoned,
    sum(fresh_usd) AS fresh_usd, sum(read_usd) AS read_usd,
    sum(CASE WHEN unknown = 0 THEN write_usd - long_usd END) AS short_usd,
    sum(long_usd) AS long_usd,
    sum(CASE WHEN unknown > 0 THEN write_usd - long_usd END) AS unknown_usd,
    sum(visible_usd) AS visible_usd, sum(reasoning_usd) AS reasoning_usd,
    sum(CASE WHEN fresh_usd IS NULL THEN fresh ELSE 0 END) AS fresh_unpriced,
    sum(CASE WHEN read_usd IS NULL THEN cached ELSE 0 END) AS read_unpriced,
    sum(CASE WHEN write_usd IS NULL THEN short ELSE 0 END) AS short_unpriced,
    sum(CASE WHEN write_usd IS NULL THEN long ELSE 0 END) AS long_unpriced,
    sum(CASE WHEN write_usd IS NULL THEN unknown ELSE 0 END) AS unknown_unpriced,
    sum(CASE WHEN visible_usd IS NULL THEN visible ELSE 0 END) AS visible_unpriced,
    sum(CASE WHEN reasoning_usd IS NULL THEN reasoned ELSE 0 END) AS reasoning_unpriced
  FROM parted
  GROUP BY bin_ns, model, provider, service_tier
),
told AS (
  SELECT bin_ns, model, provider, service_tier, 'input_fresh' AS token_kind, requests,
    fresh AS tokens, fresh_usd AS usd, fresh_unpriced AS unpriced
  FROM summed
  UNION ALL
  SELECT bin_ns, model, provider, service_tier, 'cache_read', requests, cached, read_usd,
    read_unpriced
  FROM summed WHERE cached > 0
  UNION ALL
  SELECT bin_ns, model, provider, service_tier, 'cache_write_short', requests, short, short_usd,
    short_unpriced
  FROM summed WHERE short > 0
  UNION ALL
  SELECT bin_ns, model, provider, service_tier, 'cache_write_long', requests, long, long_usd,
    long_unpriced
  FROM summed WHERE long > 0
  UNION ALL
  SELECT bin_ns, model, provider, service_tier, 'cache_write_unknown', requests, unknown,
    unknown_usd, unknown_unpriced
  FROM summed WHERE unknown > 0
  UNION ALL
  SELECT bin_ns, model, provider, service_tier, 'output_visible', requests, visible, visible_usd,
    visible_unpriced
  FROM summed
  UNION ALL
  SELECT bin_ns, model, provider, service_tier, 'output_reasoning', requests, reasoned,
    reasoning_usd, reasoning_unpriced
  FROM summed WHERE reasoned > 0
)
SELECT
  bin_ns, model, provider, service_tier, token_kind, requests,
  CAST(tokens AS BIGINT) AS tokens,
  CAST(usd AS DECIMAL(38,15)) AS usd,
  CAST(unpriced AS BIGINT) AS unpriced_tokens
FROM told
