-- What each loss cost: the tokens computed again instead of read, the time they added until the first
-- token, and the money beyond reading them.
-- grain:   one row a call that lost tokens it could have read
-- needs:   turns_loss, turns_rate, resolve_request, resolve_conversation, resolve_list_price, latency_segment
-- returns: request_key BIGINT           -- the call
-- returns: lost_tokens BIGINT           -- tokens it read less than it could
-- returns: rewritten_tokens BIGINT      -- of them written to the cache again
-- returns: extra_ns BIGINT              -- time to first token that they added, ns; NULL = no rate
-- returns: ttft_ns BIGINT               -- its time to first token, ns
-- returns: excess_usd DECIMAL(38,15)    -- paid for them beyond the price of reading; NULL = a price is missing
WITH told AS (
  SELECT
    l.request_key, l.lost_tokens, s.ttft_ns, r.token_ns, p.input_usd, p.read_usd,
    p.short_usd, p.long_usd,
    coalesce(v.write_short_tokens, 0) + coalesce(v.write_unknown_tokens, 0) AS short_tokens,
    coalesce(v.write_long_tokens, 0) AS long_tokens
  FROM turns_loss AS l
  JOIN resolve_request AS q ON l.request_key = q.request_key
  JOIN resolve_conversation AS v ON l.request_key = v.request_key
  LEFT JOIN latency_segment AS s ON l.request_key = s.request_key
  LEFT JOIN turns_rate AS r
    ON coalesce(q.model, '') = r.model AND coalesce(q.route, '') = r.route
  LEFT JOIN resolve_list_price AS p ON l.request_key = p.request_key
),
-- Of what was written, the lost tokens came first; the long-lived writes are taken before the others.
split AS (
  SELECT
    *,
    CASE WHEN long_tokens < lost_tokens THEN long_tokens ELSE lost_tokens END AS lost_long_tokens
  FROM told
),
parted AS (
  SELECT
    *,
    CASE WHEN short_tokens < lost_tokens - lost_long_tokens THEN short_tokens
      ELSE lost_tokens - lost_long_tokens END AS lost_short_tokens
  FROM split
)
SELECT
  request_key,
  lost_tokens,
  lost_long_tokens + lost_short_tokens AS rewritten_tokens,
  CAST(CASE WHEN lost_tokens * token_ns > ttft_ns THEN CAST(ttft_ns AS DOUBLE)
    ELSE lost_tokens * token_ns END AS BIGINT) AS extra_ns,
  ttft_ns,
  CAST(CASE WHEN lost_long_tokens = 0 THEN 0
      ELSE CAST(lost_long_tokens AS DECIMAL(17,0)) * (long_usd - read_usd) END
    + CASE WHEN lost_short_tokens = 0 THEN 0
      ELSE CAST(lost_short_tokens AS DECIMAL(17,0)) * (short_usd - read_usd) END
    + CASE WHEN lost_tokens = lost_long_tokens + lost_short_tokens THEN 0
      ELSE CAST(lost_tokens - lost_long_tokens - lost_short_tokens AS DECIMAL(17,0))
        * (input_usd - read_usd) END AS DECIMAL(38,15)) AS excess_usd
FROM parted
