-- What each remedy would have saved in this very log: prompt tokens to compute, time to first token, money.
-- The remedies overlap: their savings do not add up.
-- grain:   one row a remedy and model
-- needs:   turns_call, turns_history, turns_growth, turns_seen, turns_same, turns_kept, turns_rate, turns_inflated, resolve_request, resolve_list_price
-- param:   budget_tokens = 8000              -- history that is kept where it is trimmed
-- returns: remedy VARCHAR                    -- session caching, shared prefix, trimmed history or fewer tools
-- returns: model VARCHAR                     -- model; empty = not told
-- returns: calls BIGINT                      -- calls it would have touched
-- returns: untold_calls BIGINT               -- of them, with nothing told of a cache: all of their prompt counts as computed
-- returns: now_tokens BIGINT                 -- prompt tokens computed for them now
-- returns: then_tokens BIGINT                -- with the remedy
-- returns: saved_tokens BIGINT               -- the difference
-- returns: one_now_tokens DOUBLE             -- median of a call now
-- returns: one_then_tokens DOUBLE            -- with the remedy
-- returns: saved_ns BIGINT                   -- time to first token saved, all calls together, ns; NULL = no rate
-- returns: saved_usd DECIMAL(38,15)          -- money saved; NULL = a price is missing
WITH called AS (
  SELECT
    c.request_key, c.model, c.nth, c.prior_key, c.input_tokens,
    c.input_tokens - coalesce(c.read_tokens, 0) AS now_tokens, coalesce(c.read_tokens, 0) AS read_tokens,
    CASE
      -- Another model has a cache of its own, and a compacted history is another prompt.
      WHEN c.prior_key IS NULL OR c.event = 'model switch' THEN 0
      WHEN s.same_tokens IS NOT NULL AND NOT coalesce(s.is_whole, FALSE) THEN s.same_tokens
      WHEN c.event = 'compaction' THEN 0
      WHEN k.answers_kept THEN c.prior_input_tokens + coalesce(c.prior_output_tokens, 0)
      ELSE c.prior_input_tokens
    END AS left_tokens,
    coalesce(n.common_tokens, 0) AS common_tokens,
    row_number() OVER (PARTITION BY c.clock, c.model ORDER BY c.at_ns, c.request_key) AS nth_of_model,
    h.history_tokens,
    CASE WHEN g.cache IN ('told', 'none') THEN h.again_tokens ELSE 0 END AS again_tokens,
    CASE WHEN c.read_tokens IS NULL AND coalesce(g.cache, 'untold') <> 'none' THEN 1 ELSE 0 END
      AS is_untold,
    i.excess_tokens
  FROM turns_call AS c
  JOIN turns_kept AS k ON c.model = k.model
  LEFT JOIN turns_growth AS g ON c.clock = g.clock AND c.thread = g.thread
  LEFT JOIN turns_history AS h ON c.request_key = h.request_key
  LEFT JOIN turns_same AS s ON c.request_key = s.request_key
  LEFT JOIN turns_seen AS n ON c.request_key = n.request_key
  LEFT JOIN turns_inflated AS i ON c.request_key = i.request_key AND i.is_inflated
),
bounded AS (
  SELECT
    *,
    -- A prompt is never read to its end: its last token is always computed.
    CASE WHEN left_tokens < input_tokens THEN left_tokens ELSE input_tokens - 1 END AS can_tokens,
    CASE WHEN nth_of_model = 1 THEN 0
      WHEN common_tokens < input_tokens THEN common_tokens ELSE input_tokens - 1 END
      AS shared_tokens
  FROM called
),
saved AS (
  SELECT
    'session caching' AS remedy, request_key, model, now_tokens, is_untold, 1 AS is_read,
    CASE WHEN can_tokens > read_tokens THEN can_tokens - read_tokens ELSE 0 END AS saved_tokens
  FROM bounded
  WHERE prior_key IS NOT NULL
  UNION ALL
  SELECT
    'shared prefix', request_key, model, now_tokens, is_untold, 1,
    CASE WHEN shared_tokens > read_tokens THEN shared_tokens - read_tokens ELSE 0 END
  FROM bounded
  WHERE common_tokens > 0
  UNION ALL
  SELECT
    'trimmed history', request_key, model, now_tokens, is_untold, 0,
    CASE WHEN history_tokens <= $budget_tokens THEN 0
      WHEN history_tokens - $budget_tokens < again_tokens THEN history_tokens - $budget_tokens
      ELSE again_tokens END
  FROM bounded
  WHERE history_tokens IS NOT NULL
  UNION ALL
  SELECT
    'fewer tools', request_key, model, now_tokens, is_untold, 0,
    CASE WHEN excess_tokens <= 0 THEN 0
      WHEN excess_tokens < now_tokens THEN CAST(round(excess_tokens) AS BIGINT) ELSE now_tokens END
  FROM bounded
  WHERE excess_tokens IS NOT NULL
),
-- A token read from the cache has its price; one that is left out has none.
priced AS (
  SELECT
    s.*, r.token_ns,
    CASE
      WHEN s.saved_tokens = 0 THEN CAST(0 AS DECIMAL(20,15))
      WHEN s.is_read = 1 THEN p.unread_usd - p.read_usd
      ELSE p.unread_usd
    END AS usd
  FROM saved AS s
  JOIN resolve_request AS q ON s.request_key = q.request_key
  LEFT JOIN turns_rate AS r ON s.model = r.model AND coalesce(q.route, '') = r.route
  LEFT JOIN resolve_list_price AS p ON s.request_key = p.request_key
)
SELECT
  remedy, model, count(*) AS calls, CAST(SUM(is_untold) AS BIGINT) AS untold_calls,
  CAST(SUM(now_tokens) AS BIGINT) AS now_tokens,
  CAST(SUM(now_tokens - saved_tokens) AS BIGINT) AS then_tokens,
  CAST(SUM(saved_tokens) AS BIGINT) AS saved_tokens,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY now_tokens) AS one_now_tokens,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY now_tokens - saved_tokens) AS one_then_tokens,
  CAST(round(SUM(saved_tokens * token_ns)) AS BIGINT) AS saved_ns,
  CAST(CASE WHEN count(*) = count(usd)
    THEN SUM(CAST(saved_tokens AS DECIMAL(17,0)) * usd) END AS DECIMAL(38,15)) AS saved_usd
FROM priced
GROUP BY remedy, model
