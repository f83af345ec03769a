-- Requests of models whose price rises with the size of the prompt: what those beyond the step pay
-- because the whole request is at the higher price, and how far beyond they are.
-- grain:   one row a request whose price has such a step
-- needs:   cost_request, cost_tracked, resolve_request, resolve_unit_price, resolve_token_price, source
-- param:   newest_ns = 1795910400000000000    -- as in resolve_price_of: for a case without any time
-- param:   near = 1.1                        -- a prompt up to this much longer than the step is one that trimming helps
-- returns: request_key BIGINT                -- the request
-- returns: model VARCHAR                     -- model; empty = not told
-- returns: step_tokens BIGINT                -- prompts strictly above pay the higher price for all of it
-- returns: input_tokens BIGINT               -- its prompt
-- returns: is_above BOOLEAN                  -- at the higher price
-- returns: is_near BOOLEAN                   -- at it, and little beyond the step
-- returns: usd DECIMAL(38,15)                -- what it costs
-- returns: excess_usd DECIMAL(38,15)         -- beyond the same tokens at the price below the step; NULL = a price is missing
-- returns: trimmed_usd DECIMAL(38,15)        -- what it saves to end the prompt at the step; NULL = a price is missing
WITH stepped AS (
  SELECT
    u.*,
    coalesce(u.from_ns, -9000000000000000000) AS begins_ns,
    coalesce(u.until_ns, 9000000000000000000) AS ends_ns
  FROM resolve_unit_price AS u
  WHERE u.price_source IS NOT NULL
),
-- The price below each step, of the same lane and as long as both hold.
below AS (
  SELECT
    h.price_id,
    greatest(h.begins_ns, l.begins_ns) AS begins_ns,
    least(h.ends_ns, l.ends_ns) AS ends_ns,
    greatest(h.from_of_day_ns, l.from_of_day_ns) AS from_of_day_ns,
    least(h.until_of_day_ns, l.until_of_day_ns) AS until_of_day_ns,
    CAST(hp.fresh_usd - lp.fresh_usd AS DECIMAL(20,15)) AS fresh_more,
    CAST(hp.read_usd - lp.read_usd AS DECIMAL(20,15)) AS read_more,
    CAST(hp.short_usd - lp.short_usd AS DECIMAL(20,15)) AS short_more,
    CAST(hp.long_usd - lp.long_usd AS DECIMAL(20,15)) AS long_more,
    CAST(hp.output_usd - lp.output_usd AS DECIMAL(20,15)) AS output_more,
    CAST(hp.reasoning_usd - lp.reasoning_usd AS DECIMAL(20,15)) AS reasoning_more,
    lp.fresh_usd AS fresh_low, lp.read_usd AS read_low
  FROM stepped AS h
  JOIN stepped AS l
    ON h.above_input_tokens = l.upto_input_tokens AND h.model = l.model AND h.provider = l.provider
      AND h.service_tier = l.service_tier AND h.speed = l.speed AND h.geo = l.geo
      AND h.is_own = l.is_own AND h.begins_ns < l.ends_ns AND l.begins_ns < h.ends_ns
      AND h.from_of_day_ns < l.until_of_day_ns AND l.from_of_day_ns < h.until_of_day_ns
  JOIN resolve_token_price AS hp ON h.price_id = hp.price_id
  JOIN resolve_token_price AS lp ON l.price_id = lp.price_id
  WHERE h.fresh_usd > l.fresh_usd
),
asked AS (
  SELECT
    c.request_key, coalesce(q.model, '') AS model, q.input_tokens, c.usd, c.price_id,
    coalesce(q.start_ns, w.last_ns, $newest_ns) AS at_ns,
    coalesce(s.above_input_tokens, s.upto_input_tokens) AS step_tokens,
    least(coalesce(q.input_fresh_tokens, 0), 999999999999) AS fresh,
    least(coalesce(q.cache_read_tokens, 0), 999999999999) AS cached,
    least(
      coalesce(q.cache_write_short_tokens, 0) + coalesce(q.cache_write_unknown_tokens, 0),
      999999999999
    ) AS short,
    least(coalesce(q.cache_write_long_tokens, 0), 999999999999) AS long,
    least(coalesce(q.output_visible_tokens, 0), 999999999999) AS visible,
    least(coalesce(q.output_reasoning_tokens, 0), 999999999999) AS reasoned
  FROM cost_request AS c
  JOIN cost_tracked AS t ON c.request_key = t.request_key
  JOIN resolve_request AS q ON c.request_key = q.request_key
  JOIN stepped AS s ON c.price_id = s.price_id
  CROSS JOIN (SELECT max(last_ns) AS last_ns FROM source) AS w
  WHERE t.is_metered AND q.input_tokens IS NOT NULL
    AND (s.above_input_tokens IS NOT NULL OR s.upto_input_tokens IS NOT NULL)
),
dearer AS (
  SELECT
    a.*, b.price_id IS NOT NULL AS is_above, b.fresh_low, b.read_low,
    CASE WHEN b.price_id IS NOT NULL THEN CAST(
      CAST(a.fresh AS DECIMAL(12,0)) * b.fresh_more
      + CASE WHEN a.cached = 0 THEN 0 ELSE CAST(a.cached AS DECIMAL(12,0)) * b.read_more END
      + CASE WHEN a.short = 0 THEN 0 ELSE CAST(a.short AS DECIMAL(12,0)) * b.short_more END
      + CASE WHEN a.long = 0 THEN 0 ELSE CAST(a.long AS DECIMAL(12,0)) * b.long_more END
      + CASE WHEN a.visible = 0 THEN 0 ELSE CAST(a.visible AS DECIMAL(12,0)) * b.output_more END
      + CASE WHEN a.reasoned = 0 THEN 0
        ELSE CAST(a.reasoned AS DECIMAL(12,0)) * b.reasoning_more END
      AS DECIMAL(38,15)) END AS excess_usd
  FROM asked AS a
  LEFT JOIN below AS b
    ON a.price_id = b.price_id AND a.at_ns >= b.begins_ns AND a.at_ns < b.ends_ns
      AND a.at_ns % 86400000000000 >= b.from_of_day_ns
      AND a.at_ns % 86400000000000 < b.until_of_day_ns
)
SELECT
  request_key,
  model,
  step_tokens,
  input_tokens,
  is_above,
  is_above AND input_tokens <= $near * step_tokens AS is_near,
  usd,
  excess_usd,
  -- At least: what is left out is taken from the cheapest part of the prompt.
  CAST(excess_usd + CAST(input_tokens - step_tokens AS DECIMAL(12,0))
    * CASE WHEN cached > 0 THEN least(read_low, fresh_low) ELSE fresh_low END AS DECIMAL(38,15))
    AS trimmed_usd
FROM dearer
