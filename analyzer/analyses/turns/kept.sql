-- How the cache of each model counts, as its own hits show: in which steps, and whether an answer is
-- kept together with the prompt it answered.
-- grain:   one row a model
-- needs:   turns_call, resolve_cache_rule
-- param:   answer_tokens = 32              -- shorter answers vanish in the steps
-- returns: model VARCHAR                   -- model; empty = not told
-- returns: vendor VARCHAR                  -- whose rules hold
-- returns: calls BIGINT                    -- calls that continue another
-- returns: told BIGINT                     -- of them, with cached tokens told
-- returns: hits BIGINT                     -- of those, that read from the cache
-- returns: writes_told BOOLEAN             -- what is written is told too: a prefix ends where that ended
-- returns: is_used BOOLEAN                 -- some call of it read from the cache or wrote to it; NULL = not told
-- returns: step_tokens BIGINT              -- cached tokens are multiples of this
-- returns: min_tokens BIGINT               -- shortest prefix that is cached; 0 = not known
-- returns: answers_kept BOOLEAN            -- an answer is in the cache, too
-- returns: short_life_ns BIGINT            -- idle time that a prefix is kept for, ns; NULL = none promised
-- returns: long_life_ns BIGINT             -- for the longer choice, ns; NULL = there is none
WITH rules AS (
  SELECT
    model,
    min_by(vendor, provider) AS vendor,
    max(step_tokens) AS step_tokens,
    max(min_tokens) AS min_tokens,
    max(short_life_ns) AS short_life_ns,
    max(long_life_ns) AS long_life_ns
  FROM resolve_cache_rule
  GROUP BY model
),
counted AS (
  SELECT
    model,
    count(prior_key) AS calls,
    count(CASE WHEN prior_key IS NOT NULL THEN read_tokens END) AS told,
    count(CASE WHEN prior_key IS NOT NULL AND read_tokens > 0 THEN 1 END) AS hits,
    coalesce(max(write_tokens), 0) > 0 AS writes_told,
    count(CASE WHEN read_tokens > 0 AND read_tokens % 128 <> 0 THEN 1 END) AS off_128,
    count(CASE WHEN read_tokens > 0 AND read_tokens % 64 <> 0 THEN 1 END) AS off_64,
    count(CASE WHEN read_tokens > 0 AND read_tokens % 16 <> 0 THEN 1 END) AS off_16,
    count(CASE WHEN read_tokens > prior_input_tokens
      AND coalesce(prior_output_tokens, $answer_tokens) >= $answer_tokens THEN 1 END) AS beyond,
    count(CASE WHEN read_tokens >= prior_input_tokens * 0.9 AND read_tokens <= prior_input_tokens
      AND coalesce(prior_output_tokens, $answer_tokens) >= $answer_tokens THEN 1 END) AS within
  FROM turns_call
  GROUP BY model
),
used AS (
  SELECT
    model,
    CASE WHEN count(read_tokens) + count(write_tokens) > 0
      THEN max(coalesce(read_tokens, 0) + coalesce(write_tokens, 0)) > 0 END AS is_used
  FROM turns_call
  GROUP BY model
)
SELECT
  c.model,
  coalesce(r.vendor, 'unknown') AS vendor,
  c.calls,
  c.told,
  c.hits,
  c.writes_told,
  u.is_used,
  coalesce(r.step_tokens, CASE
    WHEN c.hits = 0 OR c.writes_told THEN 1
    WHEN c.off_128 = 0 THEN 128
    WHEN c.off_64 = 0 THEN 64
    WHEN c.off_16 = 0 THEN 16
    ELSE 1
  END) AS step_tokens,
  coalesce(r.min_tokens, 0) AS min_tokens,
  NOT c.writes_told AND c.beyond > c.within AS answers_kept,
  r.short_life_ns,
  r.long_life_ns
FROM counted AS c
JOIN used AS u ON c.model = u.model
LEFT JOIN rules AS r ON c.model = r.model
