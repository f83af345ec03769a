-- What a thread's prompt cache would cost with the longer lifetime: what expired within it would be read
-- instead of written again, and every write would be dearer. Only the write side: reads stay as they are.
-- grain:   one row a thread and model that writes to the short-lived cache, where there is a longer one
-- needs:   turns_call, turns_kept, turns_loss, resolve_conversation, resolve_list_price
-- returns: thread VARCHAR                   -- thread of calls
-- returns: session VARCHAR                  -- its conversation
-- returns: model VARCHAR                    -- model
-- returns: is_agent BOOLEAN                 -- of a sub-agent or side thread
-- returns: calls BIGINT                     -- its calls
-- returns: written_tokens BIGINT            -- tokens it wrote
-- returns: rewrites BIGINT                  -- calls that lost an expired prefix that the longer lifetime would have kept
-- returns: saved_tokens BIGINT              -- tokens they wrote again
-- returns: too_late BIGINT                  -- calls that lost it after more than the longer lifetime
-- returns: long_life_ns BIGINT              -- the longer lifetime, ns
-- returns: now_usd DECIMAL(38,15)           -- what was written, as it is; NULL = a price is missing
-- returns: long_usd DECIMAL(38,15)          -- with the longer lifetime: what is still written, and the rest read
WITH told AS (
  SELECT
    c.request_key, c.thread, c.session, c.model, c.is_agent, k.long_life_ns,
    coalesce(v.write_short_tokens, 0) + coalesce(v.write_unknown_tokens, 0) AS written_tokens,
    l.lost_tokens, l.since_ns, p.short_usd, p.long_usd, p.read_usd
  FROM turns_call AS c
  JOIN turns_kept AS k ON c.model = k.model
  JOIN resolve_conversation AS v ON c.request_key = v.request_key
  LEFT JOIN turns_loss AS l ON c.request_key = l.request_key AND l.reason = 'expired'
  LEFT JOIN resolve_list_price AS p ON c.request_key = p.request_key
  WHERE k.writes_told AND k.long_life_ns > k.short_life_ns
    -- No prompt is larger, and products stay exact.
    AND c.input_tokens <= 1000000000000
),
parted AS (
  SELECT
    *,
    CASE WHEN since_ns > long_life_ns OR lost_tokens IS NULL THEN 0
      WHEN lost_tokens < written_tokens THEN lost_tokens
      ELSE written_tokens END AS saved_tokens
  FROM told
),
summed AS (
  SELECT
    thread, session, model, is_agent,
    count(*) AS calls,
    CAST(sum(written_tokens) AS BIGINT) AS written_tokens,
    count(CASE WHEN saved_tokens > 0 THEN 1 END) AS rewrites,
    CAST(sum(saved_tokens) AS BIGINT) AS saved_tokens,
    count(CASE WHEN lost_tokens > 0 AND since_ns > long_life_ns THEN 1 END) AS too_late,
    max(long_life_ns) AS long_life_ns,
    count(CASE WHEN written_tokens > 0 AND (short_usd IS NULL OR long_usd IS NULL
      OR read_usd IS NULL) THEN 1 END) AS unpriced,
    sum(CAST(CAST(written_tokens AS DECIMAL(17,0)) * short_usd AS DECIMAL(38,15)))
      AS now_usd,
    sum(CAST((CAST(written_tokens - saved_tokens AS DECIMAL(17,0)) * long_usd
      + CAST(saved_tokens AS DECIMAL(17,0)) * read_usd) AS DECIMAL(38,15))) AS long_usd
  FROM parted
  GROUP BY thread, session, model, is_agent
)
SELECT
  thread, session, model, is_agent, calls, written_tokens, rewrites, saved_tokens, too_late,
  long_life_ns,
  CAST(CASE WHEN unpriced = 0 THEN now_usd END AS DECIMAL(38,15)) AS now_usd,
  CAST(CASE WHEN unpriced = 0 THEN long_usd END AS DECIMAL(38,15)) AS long_usd
FROM summed
WHERE written_tokens > 0
