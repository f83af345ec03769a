-- What tokens cost, by what decides it: model, vendor, tier, speed, place, time, size of the prompt.
-- The user's price files come first, then dated overrides, then genai-prices (its bundled data).
-- grain:   one row a lane (model, provider, tier, speed, place as logs tell them) and stretch of
--          time, of the day and of prompt sizes
-- needs:   resolve_request, resolve_billed_tag, price, source
-- python:  unit_price -- looks each lane up in the price book, once
-- param:   most_rows = 100000                   -- price rows and lanes that are handed on; a case has dozens of lanes
-- returns: price_id INTEGER                     -- the row's number
-- returns: model VARCHAR                        -- model; empty = not told
-- returns: provider VARCHAR                     -- vendor; empty = not told
-- returns: service_tier VARCHAR                 -- tier; empty = not told
-- returns: speed VARCHAR                        -- speed; empty = not told
-- returns: geo VARCHAR                          -- place; empty = not told
-- returns: is_own BOOLEAN                       -- an engine of one's own served it
-- returns: from_ns BIGINT                       -- holds from, ns UTC
-- returns: until_ns BIGINT                      -- holds before, ns UTC
-- returns: from_of_day_ns BIGINT                -- holds from this time of each day, ns after midnight UTC
-- returns: until_of_day_ns BIGINT               -- holds before this time of the day, ns after midnight UTC
-- returns: above_input_tokens BIGINT            -- holds for prompts strictly above; NULL = from 0
-- returns: upto_input_tokens BIGINT             -- holds for prompts up to, inclusive; NULL = all
-- returns: fresh_usd DECIMAL(18,9)              -- a million prompt tokens outside the cache
-- returns: read_usd DECIMAL(18,9)               -- a million read from the cache
-- returns: short_usd DECIMAL(18,9)              -- a million written to the short-lived cache
-- returns: long_usd DECIMAL(18,9)               -- a million written to the long-lived cache
-- returns: output_usd DECIMAL(18,9)             -- a million visible output tokens
-- returns: reasoning_usd DECIMAL(18,9)          -- a million reasoning tokens
-- returns: input_audio_usd DECIMAL(18,9)        -- a million prompt tokens of sound
-- returns: read_audio_usd DECIMAL(18,9)         -- a million of those, read from the cache
-- returns: output_audio_usd DECIMAL(18,9)       -- a million output tokens of sound
-- returns: input_image_usd DECIMAL(18,9)        -- a million prompt tokens of pictures
-- returns: read_image_usd DECIMAL(18,9)         -- a million of those, read from the cache
-- returns: output_image_usd DECIMAL(18,9)       -- a million output tokens of pictures
-- returns: web_search_usd DECIMAL(18,9)         -- a thousand searches
-- returns: each_usd DECIMAL(18,9)               -- a thousand requests, where a request costs by itself
-- returns: price_source VARCHAR                 -- price file, override, genai-prices or litellm; NULL = no price
-- returns: price_version VARCHAR                -- version of the catalog, or path of the file
-- returns: price_date VARCHAR                   -- day from which it holds; NULL = always
-- returns: price_note VARCHAR                   -- what was corrected, or why there is no price
-- returns: other_source VARCHAR                 -- second catalog, where it says something else today
-- returns: other_fresh_usd DECIMAL(18,9)        -- what it says, where that differs
-- returns: other_read_usd DECIMAL(18,9)         -- what it says, where that differs
-- returns: other_short_usd DECIMAL(18,9)        -- what it says, where that differs
-- returns: other_long_usd DECIMAL(18,9)         -- what it says, where that differs
-- returns: other_output_usd DECIMAL(18,9)       -- what it says, where that differs
SELECT
  'lane' AS kind,
  coalesce(q.model, '') AS model,
  coalesce(q.provider, '') AS provider,
  coalesce(b.tier, q.service_tier, '') AS service_tier,
  coalesce(b.speed, q.speed, '') AS speed,
  coalesce(b.geo, '') AS geo,
  q.inner_vantage = 'engine' AS is_own,
  CAST(NULL AS VARCHAR) AS token_kind,
  CAST(NULL AS BIGINT) AS above_input_tokens,
  CAST(NULL AS DECIMAL(18,9)) AS usd,
  CAST(NULL AS DECIMAL(18,9)) AS factor,
  CAST(NULL AS BIGINT) AS valid_from_ns,
  CAST(NULL AS VARCHAR) AS catalog,
  CAST(NULL AS VARCHAR) AS currency,
  CAST(NULL AS VARCHAR) AS path,
  CAST(0 AS BIGINT) AS source_id,
  CAST(0 AS BIGINT) AS record
FROM resolve_request AS q
LEFT JOIN resolve_billed_tag AS b ON q.request_key = b.request_key
GROUP BY 2, 3, 4, 5, 6, 7
UNION ALL
SELECT
  'price', p.model, p.provider, p.service_tier, NULL, NULL, FALSE, p.token_kind,
  p.above_input_tokens, p.usd_per_million_tokens, p.factor, p.valid_from_ns, p.catalog,
  coalesce(p.currency, 'USD'), s.path,
  CAST(p.source_id AS BIGINT), p.record
FROM price AS p
JOIN source AS s ON p.source_id = s.source_id
ORDER BY 1 DESC, 16, 17, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11
LIMIT $most_rows
