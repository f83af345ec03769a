-- Which unit prices hold for each request: by its start, on UTC, and the size of its prompt.
-- grain:   one row a request
-- needs:   resolve_request, resolve_billed_tag, resolve_unit_price, source
-- param:   newest_ns = 1795910400000000000   -- 2026-11-29, the newest price that was checked: for a case without any time
-- returns: request_key BIGINT                -- the request
-- returns: price_id INTEGER                  -- row of resolve_unit_price
-- returns: is_dated BOOLEAN                  -- by its own time; else by the newest of the case
WITH lanes AS (
  SELECT
    q.request_key,
    coalesce(q.model, '') AS model,
    coalesce(q.provider, '') AS provider,
    coalesce(b.tier, q.service_tier, '') AS service_tier,
    coalesce(b.speed, q.speed, '') AS speed,
    coalesce(b.geo, '') AS geo,
    q.inner_vantage = 'engine' AS is_own,
    q.start_ns IS NOT NULL AS is_dated,
    coalesce(q.start_ns, w.last_ns, $newest_ns) AS at_ns,
    coalesce(q.input_tokens, 0) AS input_tokens
  FROM resolve_request AS q
  LEFT JOIN resolve_billed_tag AS b ON q.request_key = b.request_key
  CROSS JOIN (SELECT max(last_ns) AS last_ns FROM source) AS w
)
SELECT l.request_key, u.price_id, l.is_dated
FROM lanes AS l
JOIN resolve_unit_price AS u
  ON l.model = u.model AND l.provider = u.provider AND l.service_tier = u.service_tier
    AND l.speed = u.speed AND l.geo = u.geo AND l.is_own = u.is_own
    AND (u.from_ns IS NULL OR l.at_ns >= u.from_ns)
    AND (u.until_ns IS NULL OR l.at_ns < u.until_ns)
    AND l.at_ns % 86400000000000 >= u.from_of_day_ns
    AND l.at_ns % 86400000000000 < u.until_of_day_ns
    AND (u.above_input_tokens IS NULL OR l.input_tokens > u.above_input_tokens)
    AND (u.upto_input_tokens IS NULL OR l.input_tokens <= u.upto_input_tokens)
