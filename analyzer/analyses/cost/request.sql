-- What each request costs by the list or contract that held when it began, part by part. Unknown
-- prices stay unknown: their tokens are counted, and no part is zero that is not.
-- grain:   one row a request
-- needs:   resolve_request, resolve_billed_tag, resolve_price_of, resolve_unit_price, resolve_token_price
-- returns: request_key BIGINT                 -- the request
-- returns: fresh_usd DECIMAL(38,15)           -- prompt outside the cache
-- returns: read_usd DECIMAL(38,15)            -- read from the cache
-- returns: write_usd DECIMAL(38,15)           -- written to the cache
-- returns: visible_usd DECIMAL(38,15)         -- output the user sees
-- returns: reasoning_usd DECIMAL(38,15)       -- output spent on reasoning
-- returns: tools_usd DECIMAL(38,15)           -- searches by the vendor, and what a request costs by itself
-- returns: usd DECIMAL(38,15)                 -- what is priced of it; NULL = nothing is
-- returns: unpriced_tokens BIGINT             -- tokens whose price is not known
-- returns: unpriced_searches BIGINT           -- searches whose price is not known
-- returns: price_id INTEGER                   -- row of resolve_unit_price
-- returns: price_source VARCHAR               -- price file, override, genai-prices or litellm; NULL = no price
-- returns: price_version VARCHAR              -- version of the catalog, or path of the file
-- returns: price_date VARCHAR                 -- day from which it holds; NULL = always
-- returns: price_note VARCHAR                 -- what was corrected, or why there is no price
-- returns: has_usage BOOLEAN                  -- any of its tokens are told
-- returns: is_long_context BOOLEAN            -- at the price of long prompts
-- returns: is_lower_bound BOOLEAN             -- cache writes of unknown lifetime count as short-lived
-- returns: is_dated BOOLEAN                   -- priced by its own time
-- returns: is_subscription BOOLEAN            -- a plan may include it: what the API would cost, not a bill
-- returns: reported_usd DECIMAL(18,9)         -- what the source itself says it cost
WITH counted AS (
  SELECT
    q.request_key, p.price_id, p.is_dated, q.reader, q.reported_cost_usd, b.is_included,
    q.input_fresh_tokens IS NOT NULL OR q.cache_read_tokens IS NOT NULL
      OR q.cache_write_tokens IS NOT NULL OR q.output_tokens IS NOT NULL AS has_usage,
    coalesce(q.cache_write_unknown_tokens, 0) > 0 AS has_unknown_writes,
    -- No request is larger, and products stay exact.
    CAST(least(coalesce(q.input_fresh_tokens, 0), 999999999999) AS BIGINT) AS fresh,
    CAST(least(coalesce(q.cache_read_tokens, 0), 999999999999) AS BIGINT) AS cached,
    CAST(least(
      coalesce(q.cache_write_short_tokens, 0) + coalesce(q.cache_write_unknown_tokens, 0),
      999999999999) AS BIGINT) AS short,
    CAST(least(coalesce(q.cache_write_long_tokens, 0), 999999999999) AS BIGINT) AS long,
    CAST(least(coalesce(q.output_visible_tokens, 0), 999999999999) AS BIGINT) AS visible,
    CAST(least(coalesce(q.output_reasoning_tokens, 0), 999999999999) AS BIGINT) AS reasoning,
    CAST(least(coalesce(b.web_searches, 0), 999999999999) AS BIGINT) AS searches,
    coalesce(b.read_audio_tokens, 0) AS read_audio,
    coalesce(b.read_image_tokens, 0) AS read_image,
    greatest(coalesce(b.input_audio_tokens, 0) - coalesce(b.read_audio_tokens, 0), 0) AS in_audio,
    greatest(coalesce(b.input_image_tokens, 0) - coalesce(b.read_image_tokens, 0), 0) AS in_image,
    coalesce(b.output_audio_tokens, 0) AS out_audio,
    coalesce(b.output_image_tokens, 0) AS out_image
  FROM resolve_request AS q
  LEFT JOIN resolve_billed_tag AS b ON q.request_key = b.request_key
  LEFT JOIN resolve_price_of AS p ON q.request_key = p.request_key
),
-- Sound and pictures are among the tokens, unless the counts contradict each other.
parted AS (
  SELECT
    *,
    CASE WHEN in_audio + in_image <= fresh THEN in_audio ELSE 0 END AS fresh_audio,
    CASE WHEN in_audio + in_image <= fresh THEN in_image ELSE 0 END AS fresh_image,
    CASE WHEN read_audio + read_image <= cached THEN read_audio ELSE 0 END AS cached_audio,
    CASE WHEN read_audio + read_image <= cached THEN read_image ELSE 0 END AS cached_image,
    CASE WHEN out_audio + out_image <= visible THEN out_audio ELSE 0 END AS made_audio,
    CASE WHEN out_audio + out_image <= visible THEN out_image ELSE 0 END AS made_image
  FROM counted
),
-- Of one token.
unit AS (
  SELECT
    u.price_id, u.price_source, u.price_version, u.price_date, u.price_note,
    u.above_input_tokens IS NOT NULL AS is_long_context,
    t.fresh_usd, t.read_usd, t.short_usd, t.long_usd, t.output_usd, t.reasoning_usd,
    CAST((u.input_audio_usd - u.fresh_usd) * 0.000001 AS DECIMAL(20,15)) AS input_audio_usd,
    CAST((u.read_audio_usd - u.read_usd) * 0.000001 AS DECIMAL(20,15)) AS read_audio_usd,
    CAST((u.output_audio_usd - u.output_usd) * 0.000001 AS DECIMAL(20,15)) AS output_audio_usd,
    CAST((u.input_image_usd - u.fresh_usd) * 0.000001 AS DECIMAL(20,15)) AS input_image_usd,
    CAST((u.read_image_usd - u.read_usd) * 0.000001 AS DECIMAL(20,15)) AS read_image_usd,
    CAST((u.output_image_usd - u.output_usd) * 0.000001 AS DECIMAL(20,15)) AS output_image_usd,
    CAST(u.web_search_usd * 0.001 AS DECIMAL(20,15)) AS web_search_usd,
    CAST(u.each_usd * 0.001 AS DECIMAL(20,15)) AS each_usd,
    t.short_usd <> t.long_usd AS lifetimes_differ
  FROM resolve_unit_price AS u
  JOIN resolve_token_price AS t ON u.price_id = t.price_id
),
priced AS (
  SELECT
    c.*, u.price_source, u.price_version, u.price_date, u.price_note, u.is_long_context,
    u.lifetimes_differ,
    CAST(CASE WHEN fresh = 0 THEN 0 ELSE CAST(fresh AS DECIMAL(12,0)) * u.fresh_usd
      + CAST(fresh_audio AS DECIMAL(12,0)) * coalesce(u.input_audio_usd, 0)
      + CAST(fresh_image AS DECIMAL(12,0)) * coalesce(u.input_image_usd, 0) END
      AS DECIMAL(30,15)) AS fresh_part,
    CAST(CASE WHEN cached = 0 THEN 0 ELSE CAST(cached AS DECIMAL(12,0)) * u.read_usd
      + CAST(cached_audio AS DECIMAL(12,0)) * coalesce(u.read_audio_usd, 0)
      + CAST(cached_image AS DECIMAL(12,0)) * coalesce(u.read_image_usd, 0) END
      AS DECIMAL(30,15)) AS read_part,
    CAST(CASE WHEN short = 0 THEN 0 ELSE CAST(short AS DECIMAL(12,0)) * u.short_usd END
      AS DECIMAL(30,15)) AS short_part,
    CAST(CASE WHEN long = 0 THEN 0 ELSE CAST(long AS DECIMAL(12,0)) * u.long_usd END
      AS DECIMAL(30,15)) AS long_part,
    CAST(CASE WHEN visible = 0 THEN 0 ELSE CAST(visible AS DECIMAL(12,0)) * u.output_usd
      + CAST(made_audio AS DECIMAL(12,0)) * coalesce(u.output_audio_usd, 0)
      + CAST(made_image AS DECIMAL(12,0)) * coalesce(u.output_image_usd, 0) END
      AS DECIMAL(30,15)) AS visible_part,
    CAST(CASE WHEN reasoning = 0 THEN 0 ELSE CAST(reasoning AS DECIMAL(12,0)) * u.reasoning_usd END
      AS DECIMAL(30,15)) AS reasoning_part,
    CAST(CASE WHEN searches = 0 THEN 0 ELSE CAST(searches AS DECIMAL(12,0)) * u.web_search_usd END
      AS DECIMAL(30,15)) AS search_part,
    CAST(CASE WHEN has_usage THEN u.each_usd END AS DECIMAL(30,15)) AS each_part
  FROM parted AS c
  LEFT JOIN unit AS u ON c.price_id = u.price_id
),
summed AS (
  SELECT
    *,
    fresh + cached + short + long + visible + reasoning AS all_tokens,
    CASE WHEN fresh_part IS NULL THEN fresh ELSE 0 END
      + CASE WHEN read_part IS NULL THEN cached ELSE 0 END
      + CASE WHEN short_part IS NULL THEN short ELSE 0 END
      + CASE WHEN long_part IS NULL THEN long ELSE 0 END
      + CASE WHEN visible_part IS NULL THEN visible ELSE 0 END
      + CASE WHEN reasoning_part IS NULL THEN reasoning ELSE 0 END AS unpriced_tokens
  FROM priced
)
SELECT
  request_key,
  CAST(CASE WHEN has_usage THEN fresh_part END AS DECIMAL(38,15)) AS fresh_usd,
  CAST(CASE WHEN has_usage THEN read_part END AS DECIMAL(38,15)) AS read_usd,
  CAST(CASE
    WHEN NOT has_usage OR (short_part IS NULL AND (long = 0 OR long_part IS NULL))
      OR (long_part IS NULL AND short = 0) THEN NULL
    ELSE coalesce(short_part, 0) + coalesce(long_part, 0) END AS DECIMAL(38,15)) AS write_usd,
  CAST(CASE WHEN has_usage THEN visible_part END AS DECIMAL(38,15)) AS visible_usd,
  CAST(CASE WHEN has_usage THEN reasoning_part END AS DECIMAL(38,15)) AS reasoning_usd,
  CAST(CASE WHEN has_usage OR searches > 0 THEN search_part + coalesce(each_part, 0) END
    AS DECIMAL(38,15)) AS tools_usd,
  CAST(CASE
    WHEN price_source IS NULL OR NOT (has_usage OR searches > 0)
      OR (unpriced_tokens > 0 AND unpriced_tokens = all_tokens) THEN NULL
    ELSE coalesce(fresh_part, 0) + coalesce(read_part, 0) + coalesce(short_part, 0)
      + coalesce(long_part, 0) + coalesce(visible_part, 0) + coalesce(reasoning_part, 0)
      + coalesce(search_part + coalesce(each_part, 0), 0) END AS DECIMAL(38,15)) AS usd,
  CAST(unpriced_tokens AS BIGINT) AS unpriced_tokens,
  CASE WHEN search_part IS NULL THEN searches ELSE CAST(0 AS BIGINT) END AS unpriced_searches,
  price_id, price_source, price_version, price_date, price_note, has_usage,
  coalesce(is_long_context, FALSE) AS is_long_context,
  has_unknown_writes AND coalesce(lifetimes_differ, FALSE) AS is_lower_bound,
  coalesce(is_dated, FALSE) AS is_dated,
  coalesce(is_included, reader IN (
    'claude_code', 'codex_rollout', 'copilot_cli', 'cursor_usage_csv', 'cursor_usage_events',
    'gemini_cli', 'kimi_wire', 'qwen_code'
  )) AS is_subscription,
  reported_cost_usd AS reported_usd
FROM summed
