-- What two windows used, by model, row of the price list and attempts of an operation: in all, and of each kind of group those
-- whose cost differs most. The windows are those of the lasting rise of cost, unless others are given.
-- grain:   one row a window, kind of group, group, model, row of the price list and count of attempts
-- needs:   cost_change, cost_tracked, cost_request, cost_attempt, cost_spender, resolve_request, resolve_unit_price, resolve_token_price
-- param:   baseline_from_ns = NULL         -- a baseline that is given: from
-- param:   baseline_until_ns = NULL        -- to
-- param:   window_from_ns = NULL           -- a window that is given: from
-- param:   window_until_ns = NULL          -- to
-- param:   shown = 40                      -- groups of a kind that are told; the others are what is left of all
-- returns: is_window BOOLEAN               -- of the window; else of the baseline
-- returns: from_ns BIGINT                  -- its beginning, ns UTC
-- returns: until_ns BIGINT                 -- its end, exclusive, ns UTC
-- returns: kind VARCHAR                    -- all, route, user, key, team or session
-- returns: name VARCHAR                    -- the group; NULL = all
-- returns: model VARCHAR                   -- model; empty = not told
-- returns: lane VARCHAR                    -- what its price depends on beside the date: vendor, tier, speed, place, step of prompt sizes, time of day
-- returns: requests BIGINT                 -- priced requests
-- returns: attempts BIGINT                 -- attempts of each of their operations: as many of them are one
-- returns: fresh_tokens BIGINT             -- prompt outside the cache, where its price is known; the others likewise
-- returns: read_tokens BIGINT              -- read from the cache
-- returns: short_tokens BIGINT             -- written to the short-lived cache
-- returns: long_tokens BIGINT              -- written to the long-lived cache
-- returns: visible_tokens BIGINT           -- output the user sees
-- returns: reasoning_tokens BIGINT         -- reasoning
-- returns: fresh_usd DECIMAL(20,15)        -- list price of a token
-- returns: read_usd DECIMAL(20,15)         -- of one read from the cache
-- returns: short_usd DECIMAL(20,15)        -- of one written to the short-lived cache
-- returns: long_usd DECIMAL(20,15)         -- of one written to the long-lived cache
-- returns: visible_usd DECIMAL(20,15)      -- of one of output
-- returns: reasoning_usd DECIMAL(20,15)    -- of one of reasoning
-- returns: tools_usd DECIMAL(38,15)        -- searches, and what requests cost by themselves
-- returns: usd DECIMAL(38,15)              -- all that is priced
-- returns: unpriced_requests BIGINT        -- requests without any price, in no other column
-- returns: unpriced_tokens BIGINT          -- tokens without a price
WITH windows AS (
  SELECT
    FALSE AS is_window, CAST($baseline_from_ns AS BIGINT) AS from_ns,
    CAST($baseline_until_ns AS BIGINT) AS until_ns
  WHERE CAST($window_from_ns AS BIGINT) IS NOT NULL
  UNION ALL
  SELECT TRUE, CAST($window_from_ns AS BIGINT), CAST($window_until_ns AS BIGINT)
  WHERE CAST($window_from_ns AS BIGINT) IS NOT NULL
  UNION ALL
  SELECT FALSE, baseline_from_ns, baseline_until_ns
  FROM cost_change
  WHERE CAST($window_from_ns AS BIGINT) IS NULL
  UNION ALL
  SELECT TRUE, window_from_ns, window_until_ns
  FROM cost_change
  WHERE CAST($window_from_ns AS BIGINT) IS NULL
),
used AS (
  SELECT
    w.is_window, coalesce(q.model, '') AS model, c.price_id, q.route, q.session_id, s.user_name,
    s.key_name, s.team, coalesce(a.attempts, 1) AS attempts,
    CAST(count(c.usd) AS BIGINT) AS requests,
    CAST(sum(CASE WHEN c.usd IS NOT NULL THEN coalesce(q.input_fresh_tokens, 0) ELSE 0 END) AS BIGINT)
      AS fresh,
    CAST(sum(CASE WHEN c.usd IS NOT NULL THEN coalesce(q.cache_read_tokens, 0) ELSE 0 END) AS BIGINT)
      AS cached,
    CAST(sum(CASE WHEN c.usd IS NOT NULL THEN coalesce(q.cache_write_short_tokens, 0)
      + coalesce(q.cache_write_unknown_tokens, 0) ELSE 0 END) AS BIGINT) AS short,
    CAST(sum(CASE WHEN c.usd IS NOT NULL THEN coalesce(q.cache_write_long_tokens, 0) ELSE 0 END) AS BIGINT)
      AS long,
    CAST(sum(CASE WHEN c.usd IS NOT NULL THEN coalesce(q.output_visible_tokens, 0) ELSE 0 END) AS BIGINT)
      AS visible,
    CAST(sum(CASE WHEN c.usd IS NOT NULL THEN coalesce(q.output_reasoning_tokens, 0) ELSE 0 END)
      AS BIGINT) AS reasoning,
    sum(CASE WHEN c.usd IS NOT NULL THEN c.tools_usd END) AS tools_usd,
    sum(c.usd) AS usd,
    count(*) - count(c.usd) AS unpriced_requests,
    CAST(sum(c.unpriced_tokens) AS BIGINT) AS unpriced_tokens
  FROM windows AS w
  JOIN resolve_request AS q ON q.start_ns >= w.from_ns AND q.start_ns < w.until_ns
  JOIN cost_tracked AS t ON q.request_key = t.request_key
  JOIN cost_request AS c ON q.request_key = c.request_key
  LEFT JOIN cost_attempt AS a ON q.request_key = a.request_key
  LEFT JOIN cost_spender AS s ON q.request_key = s.request_key
  WHERE t.is_metered
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
),
moved AS (
  SELECT 'route' AS kind, route AS name,
    sum(CASE WHEN is_window THEN usd ELSE -usd END) AS usd
  FROM used WHERE route IS NOT NULL GROUP BY route
  UNION ALL
  SELECT 'user', user_name, sum(CASE WHEN is_window THEN usd ELSE -usd END)
  FROM used WHERE user_name IS NOT NULL GROUP BY user_name
  UNION ALL
  SELECT 'key', key_name, sum(CASE WHEN is_window THEN usd ELSE -usd END)
  FROM used WHERE key_name IS NOT NULL GROUP BY key_name
  UNION ALL
  SELECT 'team', team, sum(CASE WHEN is_window THEN usd ELSE -usd END)
  FROM used WHERE team IS NOT NULL GROUP BY team
  UNION ALL
  SELECT 'session', session_id, sum(CASE WHEN is_window THEN usd ELSE -usd END)
  FROM used WHERE session_id IS NOT NULL GROUP BY session_id
),
ranked AS (
  SELECT
    kind, name,
    row_number() OVER (PARTITION BY kind ORDER BY abs(coalesce(usd, 0)) DESC, name) AS place
  FROM moved
),
shown AS (
  SELECT kind, name FROM ranked WHERE place <= $shown
),
named AS (
  SELECT 'all' AS kind, CAST(NULL AS VARCHAR) AS name, u.* FROM used AS u
  UNION ALL
  SELECT s.kind, s.name, u.* FROM used AS u JOIN shown AS s ON s.kind = 'route' AND u.route = s.name
  UNION ALL
  SELECT s.kind, s.name, u.*
  FROM used AS u JOIN shown AS s ON s.kind = 'user' AND u.user_name = s.name
  UNION ALL
  SELECT s.kind, s.name, u.* FROM used AS u JOIN shown AS s ON s.kind = 'key' AND u.key_name = s.name
  UNION ALL
  SELECT s.kind, s.name, u.* FROM used AS u JOIN shown AS s ON s.kind = 'team' AND u.team = s.name
  UNION ALL
  SELECT s.kind, s.name, u.*
  FROM used AS u JOIN shown AS s ON s.kind = 'session' AND u.session_id = s.name
),
summed AS (
  SELECT
    kind, name, is_window, model, price_id, attempts,
    CAST(sum(requests) AS BIGINT) AS requests,
    CAST(sum(fresh) AS BIGINT) AS fresh, CAST(sum(cached) AS BIGINT) AS cached,
    CAST(sum(short) AS BIGINT) AS short, CAST(sum(long) AS BIGINT) AS long,
    CAST(sum(visible) AS BIGINT) AS visible, CAST(sum(reasoning) AS BIGINT) AS reasoning,
    sum(tools_usd) AS tools_usd, sum(usd) AS usd,
    CAST(sum(unpriced_requests) AS BIGINT) AS unpriced_requests,
    CAST(sum(unpriced_tokens) AS BIGINT) AS unpriced_tokens
  FROM named
  GROUP BY kind, name, is_window, model, price_id, attempts
)
SELECT
  n.is_window, w.from_ns, w.until_ns, n.kind, n.name, n.model,
  concat(
    p.provider, ' | ', p.service_tier, ' | ', p.speed, ' | ', p.geo, ' | ',
    CASE WHEN p.is_own THEN 'own' ELSE '' END, ' | ',
    coalesce(CAST(p.above_input_tokens AS VARCHAR), ''), ' | ',
    coalesce(CAST(p.from_of_day_ns AS VARCHAR), '')
  ) AS lane,
  n.requests, n.attempts,
  CASE WHEN t.fresh_usd IS NOT NULL THEN n.fresh ELSE 0 END AS fresh_tokens,
  CASE WHEN t.read_usd IS NOT NULL THEN n.cached ELSE 0 END AS read_tokens,
  CASE WHEN t.short_usd IS NOT NULL THEN n.short ELSE 0 END AS short_tokens,
  CASE WHEN t.long_usd IS NOT NULL THEN n.long ELSE 0 END AS long_tokens,
  CASE WHEN t.output_usd IS NOT NULL THEN n.visible ELSE 0 END AS visible_tokens,
  CASE WHEN t.reasoning_usd IS NOT NULL THEN n.reasoning ELSE 0 END AS reasoning_tokens,
  t.fresh_usd, t.read_usd, t.short_usd, t.long_usd, t.output_usd AS visible_usd, t.reasoning_usd,
  CAST(coalesce(n.tools_usd, 0) AS DECIMAL(38,15)) AS tools_usd,
  CAST(coalesce(n.usd, 0) AS DECIMAL(38,15)) AS usd,
  n.unpriced_requests, n.unpriced_tokens
FROM summed AS n
JOIN windows AS w ON n.is_window = w.is_window
LEFT JOIN resolve_unit_price AS p ON n.price_id = p.price_id
LEFT JOIN resolve_token_price AS t ON n.price_id = t.price_id
ORDER BY n.kind, n.name, n.model, n.price_id, n.attempts, n.is_window
