-- Whether the longer lifetime of the prompt cache pays, model by model, and for agents apart: a
-- lifetime is a setting of an application, so all its threads are summed up, also those that never
-- pause.
-- grain:   one row a model that lost expired prefixes, and whether its threads are agents
-- needs:   turns_life_sum
-- returns: model VARCHAR                    -- model
-- returns: is_agent BOOLEAN                 -- of sub-agents or side threads
-- returns: threads BIGINT                   -- threads that write
-- returns: rewrites BIGINT                  -- calls that the longer lifetime would have kept from losing their prefix
-- returns: saved_tokens BIGINT              -- tokens that they wrote again
-- returns: too_late BIGINT                  -- calls after still longer pauses
-- returns: kept_tokens BIGINT               -- tokens that would be written all the same
-- returns: long_life_ns BIGINT              -- the longer lifetime, ns
-- returns: now_usd DECIMAL(38,15)           -- what was written, as it is; NULL = a price is missing
-- returns: long_usd DECIMAL(38,15)          -- with the longer lifetime
-- returns: saves_usd DECIMAL(38,15)         -- the difference; below 0 it costs more
-- returns: pays BOOLEAN                     -- it saves money; NULL = a price is missing
WITH summed AS (
  SELECT
    model, is_agent,
    count(*) AS threads,
    CAST(sum(rewrites) AS BIGINT) AS rewrites,
    CAST(sum(saved_tokens) AS BIGINT) AS saved_tokens,
    CAST(sum(too_late) AS BIGINT) AS too_late,
    CAST(sum(written_tokens - saved_tokens) AS BIGINT) AS kept_tokens,
    max(long_life_ns) AS long_life_ns,
    CASE WHEN count(now_usd) = count(*) THEN sum(now_usd) END AS now_usd,
    CASE WHEN count(long_usd) = count(*) THEN sum(long_usd) END AS long_usd
  FROM turns_life_sum
  GROUP BY model, is_agent
)
SELECT
  model, is_agent, threads, rewrites, saved_tokens, too_late, kept_tokens, long_life_ns,
  CAST(now_usd AS DECIMAL(38,15)) AS now_usd,
  CAST(long_usd AS DECIMAL(38,15)) AS long_usd,
  CAST(now_usd - long_usd AS DECIMAL(38,15)) AS saves_usd,
  now_usd > long_usd AS pays
FROM summed
WHERE rewrites + too_late > 0
