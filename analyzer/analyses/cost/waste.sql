-- Money that bought nothing, or more than was needed: failed attempts, tokens lost by the cache, writes
-- nobody read, first prompts that grew, reasoning. No token stands in two lines: what failed is counted
-- whole and nowhere else, and what grew only where the cache lost nothing.
-- grain:   one row a request and kind
-- needs:   cost_tracked, cost_request, resolve_request, turns_loss, turns_loss_cost, turns_unused, turns_inflated
-- returns: request_key BIGINT       -- the request
-- returns: kind VARCHAR             -- failed attempts, aborted answers, cache losses, unused cache writes, larger first prompts or reasoning
-- returns: why VARCHAR              -- reason of a loss, what was added, or what is not told
-- returns: confidence VARCHAR       -- measured, derived or suspected
-- returns: tokens BIGINT            -- tokens it concerns; NULL = not told
-- returns: usd DECIMAL(38,15)       -- paid for nothing; NULL = a price or the usage is missing
WITH sent AS (
  SELECT
    q.request_key, q.failed, t.is_metered, c.usd, c.unpriced_tokens, c.reasoning_usd,
    coalesce(q.input_tokens, 0) + coalesce(q.output_tokens, 0) AS tokens,
    coalesce(q.output_reasoning_tokens, 0) AS reasoning_tokens,
    coalesce(q.finish_reason, '') IN ('abort', 'cancelled') OR coalesce(q.error, '') = 'cancelled'
      OR coalesce(q.status, 0) = 499 AS is_aborted
  FROM cost_tracked AS t
  JOIN cost_request AS c ON t.request_key = c.request_key
  JOIN resolve_request AS q ON t.request_key = q.request_key
  WHERE t.is_tracked
),
lost AS (
  SELECT l.request_key, l.reason, l.confidence, k.lost_tokens, k.excess_usd
  FROM turns_loss AS l
  JOIN turns_loss_cost AS k ON l.request_key = k.request_key
  JOIN sent AS s ON l.request_key = s.request_key
  WHERE NOT s.failed
),
unread AS (
  SELECT u.request_key, u.unused_tokens, u.fee_usd
  FROM turns_unused AS u
  JOIN sent AS s ON u.request_key = s.request_key
  WHERE u.unused_tokens > 0 AND NOT s.failed
)
SELECT
  request_key,
  CASE WHEN is_aborted THEN 'aborted answers' ELSE 'failed attempts' END AS kind,
  CASE WHEN is_metered THEN CAST(NULL AS VARCHAR) ELSE 'usage not told' END AS why,
  'measured' AS confidence,
  CASE WHEN is_metered THEN CAST(tokens AS BIGINT) END AS tokens,
  CASE WHEN is_metered THEN usd END AS usd
FROM sent
WHERE failed
UNION ALL
SELECT
  request_key, 'cache losses', CASE reason WHEN 'off' THEN 'nothing is cached' ELSE reason END,
  confidence, CAST(lost_tokens AS BIGINT), excess_usd
FROM lost
UNION ALL
SELECT request_key, 'unused cache writes', NULL, 'derived', CAST(unused_tokens AS BIGINT), fee_usd
FROM unread
UNION ALL
SELECT
  i.request_key, 'larger first prompts', i.cause,
  CASE WHEN i.cause = 'unknown' THEN 'derived' ELSE 'measured' END,
  CAST(round(i.excess_tokens) AS BIGINT), i.excess_usd
FROM turns_inflated AS i
JOIN sent AS s ON i.request_key = s.request_key
LEFT JOIN lost AS l ON i.request_key = l.request_key
LEFT JOIN unread AS u ON i.request_key = u.request_key
WHERE i.is_inflated AND NOT s.failed AND l.request_key IS NULL AND u.request_key IS NULL
UNION ALL
SELECT
  request_key, 'reasoning', NULL, 'measured', CAST(reasoning_tokens AS BIGINT), reasoning_usd
FROM sent
WHERE reasoning_tokens > 0 AND NOT failed
