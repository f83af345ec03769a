-- Which requests the logs track, and which of them were answers. What only the provider tells beside
-- logs of other vantages is its bill, and no part of what the logs track.
-- grain:   one row a request
-- needs:   resolve_request, resolve_on_bill, resolve_operation, cost_request, cost_twice
-- returns: request_key BIGINT       -- the request
-- returns: is_tracked BOOLEAN       -- in the logs, not on the bill alone, and no repeat
-- returns: is_repeat BOOLEAN        -- a log of another vantage tells the same call under another id: there it counts
-- returns: is_metered BOOLEAN       -- in the logs with its usage: what sums are made of
-- returns: is_answer BOOLEAN        -- the attempt that brought its operation's answer
WITH asked AS (
  SELECT
    q.request_key, q.failed, q.start_ns,
    coalesce(b.is_logged, TRUE) AND w.request_key IS NULL AS is_tracked,
    w.request_key IS NOT NULL AS is_repeat,
    -- A failed attempt whose tokens only the provider's bill tells is hidden, not tracked.
    q.failed AND NOT coalesce(b.log_has_usage, TRUE) AS is_hidden,
    o.operation
  FROM resolve_request AS q
  LEFT JOIN resolve_on_bill AS b ON q.request_key = b.request_key
  LEFT JOIN resolve_operation AS o ON q.request_key = o.request_key
  LEFT JOIN cost_twice AS w ON q.request_key = w.request_key
),
answers AS (
  SELECT
    request_key,
    row_number() OVER (
      PARTITION BY operation ORDER BY start_ns DESC NULLS LAST, request_key DESC
    ) AS nth
  FROM asked
  WHERE operation IS NOT NULL AND is_tracked AND NOT failed
)
SELECT
  a.request_key,
  a.is_tracked,
  a.is_repeat,
  a.is_tracked AND c.has_usage AND NOT a.is_hidden AS is_metered,
  a.is_tracked AND NOT a.failed AND (a.operation IS NULL OR coalesce(w.nth, 0) = 1) AS is_answer
FROM asked AS a
JOIN cost_request AS c ON a.request_key = c.request_key
LEFT JOIN answers AS w ON a.request_key = w.request_key
