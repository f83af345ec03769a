-- How much of each prompt a cache without an end could have served: the longest beginning that an
-- earlier request of the same model had, and how much of that was used within two lifetimes.
-- grain:   one row a request whose prompt is known as hashes
-- needs:   resolve_prefix, resolve_conversation, resolve_request
-- param:   short_ns = 300000000000       -- the shorter lifetime that providers sell
-- param:   long_ns = 3600000000000       -- the longer one
-- param:   common = 0.9                  -- a beginning of this share of all requests is everybody's
-- returns: request_key BIGINT            -- the request
-- returns: block_tokens BIGINT           -- tokens a block covers
-- returns: blocks BIGINT                 -- blocks of its prompt
-- returns: prompt_tokens BIGINT          -- tokens they cover
-- returns: seen_tokens BIGINT            -- of them, in a beginning that came before
-- returns: short_tokens BIGINT           -- of those, used within the shorter lifetime
-- returns: long_tokens BIGINT            -- of those, used within the longer lifetime
-- returns: common_tokens BIGINT          -- beginning that nearly all requests of the model share
-- returns: seen_key BIGINT               -- the request that last had the whole of that beginning
-- returns: seen_ns BIGINT                -- its start, on the same clock, ns
WITH placed AS (
  SELECT
    p.request_key, c.clock, coalesce(q.model, '') AS model, c.at_ns, c.end_ns, c.block_tokens,
    p.block_index, p.prefix_hash, p.end_tokens
  FROM resolve_prefix AS p
  JOIN resolve_conversation AS c ON p.request_key = c.request_key
  JOIN resolve_request AS q ON p.request_key = q.request_key
  WHERE c.at_ns IS NOT NULL
),
sized AS (
  SELECT clock, model, count(DISTINCT request_key) AS requests
  FROM placed
  GROUP BY clock, model
),
met AS (
  SELECT
    p.*, s.requests,
    lag(p.at_ns) OVER same AS used_ns,
    max(p.end_ns) OVER (
      PARTITION BY p.clock, p.model, p.prefix_hash ORDER BY p.at_ns, p.request_key
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS used_end_ns,
    lag(p.request_key) OVER same AS used_key,
    count(*) OVER (PARTITION BY p.clock, p.model, p.prefix_hash) AS uses
  FROM placed AS p
  JOIN sized AS s ON p.clock = s.clock AND p.model = s.model
  WINDOW same AS (
    PARTITION BY p.clock, p.model, p.prefix_hash ORDER BY p.at_ns, p.request_key
  )
)
SELECT
  request_key,
  max(block_tokens) AS block_tokens,
  count(*) AS blocks,
  max(end_tokens) AS prompt_tokens,
  max(CASE WHEN used_ns IS NULL THEN 0 ELSE end_tokens END) AS seen_tokens,
  max(CASE WHEN at_ns - used_end_ns <= $short_ns THEN end_tokens ELSE 0 END) AS short_tokens,
  max(CASE WHEN at_ns - used_end_ns <= $long_ns THEN end_tokens ELSE 0 END) AS long_tokens,
  max(CASE WHEN requests > 1 AND uses >= $common * requests THEN end_tokens ELSE 0 END)
    AS common_tokens,
  max_by(used_key, block_index) FILTER (WHERE used_ns IS NOT NULL) AS seen_key,
  max_by(used_ns, block_index) FILTER (WHERE used_ns IS NOT NULL) AS seen_ns
FROM met
GROUP BY request_key
