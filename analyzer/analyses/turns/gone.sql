-- Calls whose prefix was lost although nothing shows that the prompt changed, that it was kept too long
-- or that it was too short: other traffic took its place, another replica served the call, or the
-- cache was emptied as a whole.
-- grain:   one row a call that lost its prefix so
-- needs:   turns_loss, turns_expected, turns_between
-- returns: request_key BIGINT               -- the call
-- returns: thread VARCHAR                   -- its thread
-- returns: at_ns BIGINT                     -- its start, ns
-- returns: reason VARCHAR                   -- evicted, elsewhere or restart
-- returns: confidence VARCHAR               -- derived or suspected
-- returns: lost_tokens BIGINT               -- what it read less than it could
-- returns: could_tokens BIGINT              -- what it could read
-- returns: read_tokens BIGINT               -- what it read
-- returns: is_whole BOOLEAN                 -- unchanged by its hashes; NULL = no hashes
-- returns: since_ns BIGINT                  -- since the prefix was last used, ns
-- returns: foreign_tokens BIGINT            -- computed for others meanwhile, tokens
-- returns: capacity_tokens BIGINT           -- tokens the cache holds; NULL = not told
-- returns: survived_ns BIGINT               -- longest idle time that a prefix of this model survived, ns
-- returns: hits_between BIGINT              -- calls of other threads that hit meanwhile
-- returns: is_shown BOOLEAN                 -- not one of the restarts beside other reasons
WITH told AS (
  SELECT
    l.request_key, l.thread, l.at_ns, l.reason, l.confidence, l.lost_tokens, l.could_tokens,
    l.read_tokens, e.is_whole, l.since_ns, l.foreign_tokens, l.capacity_tokens, l.survived_ns,
    b.hits_between,
    count(CASE WHEN l.reason <> 'restart' THEN 1 END) OVER () AS others
  FROM turns_loss AS l
  JOIN turns_expected AS e ON l.request_key = e.request_key
  JOIN turns_between AS b ON l.request_key = b.request_key
  WHERE l.reason IN ('evicted', 'elsewhere', 'restart')
)
SELECT
  request_key, thread, at_ns, reason, confidence, lost_tokens, could_tokens, read_tokens, is_whole,
  since_ns, foreign_tokens, capacity_tokens, survived_ns, hits_between,
  reason <> 'restart' OR others = 0 AS is_shown
FROM told
