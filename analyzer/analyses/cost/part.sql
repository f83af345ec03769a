-- What the parts of each prompt and answer cost. Tools stand first in a prompt, then the system prompt,
-- then the messages; what was read from the cache is its beginning, what was written follows, the rest
-- is fresh. Where all of the make-up is told, its characters share the tokens; else what is told counts
-- at its usual length, and the rest as not told. The parts of a request add up to its cost.
-- grain:   one row a request and part that has tokens or a cost
-- needs:   cost_tracked, cost_request, resolve_token_price, resolve_request, resolve_make_up
-- param:   token_chars = 4            -- characters of a token where the whole prompt is not told (English and code: 3.5 to 4.5)
-- returns: request_key BIGINT         -- the request
-- returns: part VARCHAR               -- tools, system, user, assistant, earlier reasoning, tool results, prompt not told apart, answer, reasoning, other
-- returns: fresh_tokens BIGINT        -- of it outside the cache
-- returns: read_tokens BIGINT         -- of it read from the cache
-- returns: write_tokens BIGINT        -- of it written to the cache
-- returns: output_tokens BIGINT       -- output, for the parts of an answer
-- returns: unpriced_tokens BIGINT     -- tokens whose price is not known
-- returns: usd DECIMAL(38,15)         -- what is priced of it
WITH told AS (
  SELECT
    t.request_key, c.usd, c.unpriced_tokens, c.price_id, c.visible_usd, c.reasoning_usd,
    least(coalesce(q.input_fresh_tokens, 0), 999999999) AS fresh,
    least(coalesce(q.cache_read_tokens, 0), 999999999) AS cached,
    least(coalesce(q.cache_write_long_tokens, 0), 999999999) AS long,
    least(
      coalesce(q.cache_write_short_tokens, 0) + coalesce(q.cache_write_unknown_tokens, 0),
      999999999
    ) AS short,
    coalesce(q.output_visible_tokens, 0) AS visible,
    coalesce(q.output_reasoning_tokens, 0) AS reasoned,
    coalesce(h.tools_chars, 0) AS tools, coalesce(h.system_chars, 0) AS system, coalesce(h.user_chars, 0) AS asked,
    coalesce(h.assistant_chars, 0) AS said, coalesce(h.reasoning_chars, 0) AS thought,
    coalesce(h.tool_result_chars, 0) AS results,
    h.user_chars IS NOT NULL AND (h.input_chars IS NOT NULL
      OR (h.tools_chars IS NOT NULL AND h.system_chars IS NOT NULL))
      AS is_whole
  FROM cost_tracked AS t
  JOIN cost_request AS c ON t.request_key = c.request_key
  JOIN resolve_request AS q ON t.request_key = q.request_key
  LEFT JOIN resolve_make_up AS h ON t.request_key = h.request_key
  WHERE t.is_metered
),
sized AS (
  SELECT
    *,
    fresh + cached + long + short AS prompt,
    asked + said + thought + results AS talk,
    CASE WHEN is_whole AND tools + system + asked + said + thought + results > 0
      THEN (fresh + cached + long + short)
        / CAST(tools + system + asked + said + thought + results AS DOUBLE)
      ELSE least(
        1.0 / $token_chars,
        (fresh + cached + long + short)
          / CAST(greatest(tools + system + asked + said + thought + results, 1) AS DOUBLE)
      ) END AS token_share
  FROM told
),
-- Ends of the zones, in tokens from the beginning of the prompt.
zoned AS (
  SELECT
    *,
    CAST(round(tools * token_share) AS BIGINT) AS tools_end,
    CAST(round((tools + system) * token_share) AS BIGINT) AS system_end,
    prompt - CAST(round((tools + system + talk) * token_share) AS BIGINT)
      + CAST(round((tools + system) * token_share) AS BIGINT) AS talk_start
  FROM sized
),
parts AS (
  SELECT 1 AS nth, 'tools' AS part UNION ALL SELECT 2, 'system'
  UNION ALL SELECT 3, 'prompt not told apart' UNION ALL SELECT 4, 'user'
  UNION ALL SELECT 5, 'assistant' UNION ALL SELECT 6, 'earlier reasoning'
  UNION ALL SELECT 7, 'tool results'
),
-- The messages share one zone: each kind has a stretch of its characters.
placed AS (
  SELECT
    z.request_key, z.price_id, p.part, z.cached, z.cached + z.long AS long_end,
    z.cached + z.long + z.short AS short_end, z.prompt,
    CASE p.nth WHEN 1 THEN 0 WHEN 2 THEN tools_end WHEN 3 THEN system_end ELSE talk_start END AS start,
    CASE p.nth WHEN 1 THEN tools_end WHEN 2 THEN system_end WHEN 3 THEN talk_start ELSE prompt END
      AS until,
    CASE WHEN p.nth <= 3 OR talk = 0 THEN 1 ELSE talk END AS whole,
    CASE p.nth WHEN 5 THEN asked WHEN 6 THEN asked + said WHEN 7 THEN asked + said + thought
      ELSE 0 END AS from_char,
    CASE p.nth WHEN 4 THEN asked WHEN 5 THEN asked + said WHEN 6 THEN asked + said + thought
      WHEN 7 THEN talk ELSE 1 END AS to_char
  FROM zoned AS z
  CROSS JOIN parts AS p
),
within AS (
  SELECT
    *,
    greatest(least(until, cached) - start, 0) AS read_zone,
    greatest(least(until, long_end) - greatest(start, cached), 0) AS long_zone,
    greatest(least(until, short_end) - greatest(start, long_end), 0) AS short_zone,
    greatest(least(until, prompt) - greatest(start, short_end), 0) AS fresh_zone
  FROM placed
),
-- Whole tokens: what ends before the stretch does, less what ends before it begins.
counted AS (
  SELECT
    request_key, price_id, part,
    CAST((read_zone * to_char - (read_zone * to_char) % whole) / whole
      - (read_zone * from_char - (read_zone * from_char) % whole) / whole AS BIGINT) AS cached,
    CAST((long_zone * to_char - (long_zone * to_char) % whole) / whole
      - (long_zone * from_char - (long_zone * from_char) % whole) / whole AS BIGINT) AS long,
    CAST((short_zone * to_char - (short_zone * to_char) % whole) / whole
      - (short_zone * from_char - (short_zone * from_char) % whole) / whole AS BIGINT) AS short,
    CAST((fresh_zone * to_char - (fresh_zone * to_char) % whole) / whole
      - (fresh_zone * from_char - (fresh_zone * from_char) % whole) / whole AS BIGINT) AS fresh
  FROM within
),
prompts AS (
  SELECT
    c.request_key, c.part, c.fresh, c.cached, c.long + c.short AS written,
    CASE WHEN u.fresh_usd IS NULL THEN c.fresh ELSE 0 END
      + CASE WHEN u.read_usd IS NULL THEN c.cached ELSE 0 END
      + CASE WHEN u.short_usd IS NULL THEN c.short ELSE 0 END
      + CASE WHEN u.long_usd IS NULL THEN c.long ELSE 0 END AS unpriced,
    CAST(coalesce(CAST(c.fresh AS DECIMAL(12,0)) * u.fresh_usd, 0)
      + coalesce(CAST(c.cached AS DECIMAL(12,0)) * u.read_usd, 0)
      + coalesce(CAST(c.short AS DECIMAL(12,0)) * u.short_usd, 0)
      + coalesce(CAST(c.long AS DECIMAL(12,0)) * u.long_usd, 0) AS DECIMAL(38,15)) AS usd
  FROM counted AS c
  LEFT JOIN resolve_token_price AS u ON c.price_id = u.price_id
  WHERE c.fresh + c.cached + c.long + c.short > 0
),
summed AS (
  SELECT request_key, CAST(sum(usd) AS DECIMAL(38,15)) AS usd FROM prompts GROUP BY request_key
)
SELECT
  request_key, part, fresh AS fresh_tokens, cached AS read_tokens, written AS write_tokens,
  CAST(0 AS BIGINT) AS output_tokens, CAST(unpriced AS BIGINT) AS unpriced_tokens, usd
FROM prompts
UNION ALL
SELECT
  t.request_key, 'answer', 0, 0, 0, t.visible,
  CASE WHEN u.output_usd IS NULL THEN t.visible ELSE 0 END,
  CAST(coalesce(t.visible_usd, 0) AS DECIMAL(38,15))
FROM told AS t
LEFT JOIN resolve_token_price AS u ON t.price_id = u.price_id
WHERE t.visible > 0
UNION ALL
SELECT
  t.request_key, 'reasoning', 0, 0, 0, t.reasoned,
  CASE WHEN u.reasoning_usd IS NULL THEN t.reasoned ELSE 0 END,
  CAST(coalesce(t.reasoning_usd, 0) AS DECIMAL(38,15))
FROM told AS t
LEFT JOIN resolve_token_price AS u ON t.price_id = u.price_id
WHERE t.reasoned > 0
UNION ALL
-- Searches, what a request costs by itself, sound and pictures beyond their tokens' price.
SELECT
  t.request_key, 'other', 0, 0, 0, 0, 0,
  CAST(t.usd - coalesce(s.usd, 0) - coalesce(t.visible_usd, 0) - coalesce(t.reasoning_usd, 0)
    AS DECIMAL(38,15))
FROM told AS t
LEFT JOIN summed AS s ON t.request_key = s.request_key
WHERE t.usd - coalesce(s.usd, 0) - coalesce(t.visible_usd, 0) - coalesce(t.reasoning_usd, 0) <> 0
