-- Cache writes that nobody read again within their lifetime: of calls that continue no other and that
-- none continues. What a later call lost for a reason (turns_loss) is not counted here, nor the last call
-- of a conversation. A prefix that ends where the reads of another conversation end counts as read.
-- A call too near the end of the log could still be read and is not judged.
-- grain:   one row a call that wrote to the cache, continues none and is continued by none
-- needs:   turns_call, resolve_conversation, resolve_cache_rule, resolve_list_price
-- param:   life_ns = 1800000000000      -- where no lifetime is promised, the longest that is given unasked
-- param:   fewest_tokens = 1024         -- a question written with its prompt is no waste
-- returns: request_key BIGINT           -- the call
-- returns: at_ns BIGINT                 -- its start, ns
-- returns: model VARCHAR                -- its model; empty = not told
-- returns: read_tokens BIGINT           -- what it read from the cache
-- returns: written_tokens BIGINT        -- what it wrote to it
-- returns: used_tokens BIGINT           -- of that, the most that others may have read
-- returns: unused_tokens BIGINT         -- the rest; 0 where it is too little to matter
-- returns: is_judged BOOLEAN            -- the log goes on for as long as it is kept
-- returns: life_ns BIGINT               -- how long it is kept, ns
-- returns: fee_usd DECIMAL(38,15)       -- paid for the unused beyond plain input; NULL = a price is missing
WITH lives AS (
  SELECT
    model,
    CASE WHEN max(CASE WHEN life_unknown THEN 1 ELSE 0 END) = 1
      THEN greatest(coalesce(max(short_life_ns), $life_ns), $life_ns)
      ELSE coalesce(max(short_life_ns), $life_ns) END AS short_life_ns,
    coalesce(max(long_life_ns), max(short_life_ns), $life_ns) AS long_life_ns,
    min(short_write_factor) AS short_write_factor
  FROM resolve_cache_rule
  GROUP BY model
),
ends AS (
  SELECT clock, max(at_ns) AS last_ns FROM turns_call GROUP BY clock
),
continued AS (
  SELECT DISTINCT prior_key AS request_key FROM turns_call WHERE prior_key IS NOT NULL
),
alone AS (
  SELECT
    c.request_key, c.at_ns, c.model, coalesce(c.read_tokens, 0) AS read_tokens,
    c.write_tokens AS written_tokens, coalesce(v.write_long_tokens, 0) AS long_tokens,
    CASE WHEN v.write_long_tokens > 0 THEN l.long_life_ns ELSE l.short_life_ns END AS life_ns,
    e.last_ns
  FROM turns_call AS c
  JOIN resolve_conversation AS v ON c.request_key = v.request_key
  JOIN lives AS l ON c.model = l.model
  JOIN ends AS e ON c.clock = e.clock
  LEFT JOIN continued AS n ON c.request_key = n.request_key
  WHERE c.write_tokens > 0 AND c.prior_key IS NULL AND n.request_key IS NULL
    AND coalesce(l.short_write_factor, 2) <> 1
),
-- The longest read of a call that begins a conversation, that is no longer than this prompt.
sized AS (
  SELECT request_key, model, read_tokens + written_tokens AS size_tokens, 1 AS asks FROM alone
  UNION ALL
  SELECT request_key, model, read_tokens AS size_tokens, 0 AS asks
  FROM turns_call
  WHERE prior_key IS NULL AND read_tokens > 0
),
met AS (
  SELECT
    request_key, asks,
    max(CASE WHEN asks = 0 THEN size_tokens END) OVER (
      PARTITION BY model ORDER BY size_tokens, asks, request_key
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS reached_tokens
  FROM sized
),
used AS (
  SELECT
    a.*,
    CASE
      WHEN m.reached_tokens IS NULL OR m.reached_tokens <= a.read_tokens THEN 0
      WHEN m.reached_tokens - a.read_tokens > a.written_tokens THEN a.written_tokens
      ELSE m.reached_tokens - a.read_tokens
    END AS used_tokens
  FROM alone AS a
  JOIN met AS m ON a.request_key = m.request_key AND m.asks = 1
),
left_over AS (
  SELECT
    *,
    CASE WHEN written_tokens - used_tokens >= $fewest_tokens AND at_ns + life_ns <= last_ns
      THEN written_tokens - used_tokens ELSE 0 END AS unused_tokens
  FROM used
),
split AS (
  SELECT
    *, CASE WHEN long_tokens < unused_tokens THEN long_tokens ELSE unused_tokens END AS dear_tokens
  FROM left_over
)
SELECT
  s.request_key, s.at_ns, s.model, s.read_tokens, s.written_tokens, s.used_tokens, s.unused_tokens,
  s.at_ns + s.life_ns <= s.last_ns AS is_judged, s.life_ns,
  CAST(CASE WHEN s.dear_tokens = 0 THEN 0
      ELSE CAST(s.dear_tokens AS DECIMAL(17,0)) * (p.long_usd - p.input_usd) END
    + CASE WHEN s.unused_tokens = s.dear_tokens THEN 0
      ELSE CAST(s.unused_tokens - s.dear_tokens AS DECIMAL(17,0)) * (p.short_usd - p.input_usd) END
    AS DECIMAL(38,15)) AS fee_usd
FROM split AS s
LEFT JOIN resolve_list_price AS p ON s.request_key = p.request_key
