-- What happened to the cache between a call that lost its prefix and the call it continues: how much
-- others computed meanwhile (which pushes the least recently used out of an engine's cache), whether the
-- cache as a whole could have been emptied, and what idle time other prefixes survived.
-- grain:   one row a call that lost tokens it could have read
-- needs:   turns_call, turns_expected
-- param:   near_all = 0.9                   -- of what it could read, is a hit
-- returns: request_key BIGINT               -- the call
-- returns: foreign_tokens BIGINT            -- computed for other calls since the prior one began, tokens
-- returns: could_be_emptied BOOLEAN         -- some moment between has no prefix that is known to have lived through it
-- returns: survived_ns BIGINT               -- longest idle time that a prefix of this model survived, ns; NULL = none did
-- returns: survived_tokens BIGINT          -- most tokens computed for others that a prefix of this model survived; NULL = none did
-- returns: hits_between BIGINT              -- calls of other threads between that hit
-- returns: losses_between BIGINT            -- calls of other threads between that lost theirs
WITH computed AS (
  SELECT
    c.request_key, c.thread, c.clock, c.model, c.at_ns, c.prior_key,
    c.at_ns - c.prior_since_ns AS prior_ns, c.prior_since_ns,
    c.input_tokens - coalesce(c.read_tokens, 0) + coalesce(c.output_tokens, 0) AS new_tokens,
    e.lost_tokens,
    e.could_tokens > 0 AND e.read_tokens >= e.could_tokens * $near_all AND c.prior_key IS NOT NULL
      AS is_hit
  FROM turns_call AS c
  LEFT JOIN turns_expected AS e ON c.request_key = e.request_key
),
running AS (
  SELECT
    *,
    sum(new_tokens) OVER so_far AS before_tokens,
    sum(CASE WHEN is_hit THEN 1 ELSE 0 END) OVER so_far AS hits_before,
    sum(CASE WHEN lost_tokens > 0 THEN 1 ELSE 0 END) OVER so_far AS losses_before
  FROM computed
  WINDOW so_far AS (
    PARTITION BY clock, model ORDER BY at_ns, request_key
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  )
),
-- Moments through which no prefix is known to have lived: gaps in the union of the hits' spans.
reached AS (
  SELECT
    clock, model, prior_ns AS from_ns,
    max(at_ns) OVER (
      PARTITION BY clock, model ORDER BY prior_ns, request_key
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS until_ns
  FROM computed
  WHERE is_hit
),
gaps AS (
  SELECT clock, model, until_ns AS gap_from_ns, from_ns AS gap_until_ns
  FROM reached
  WHERE from_ns > until_ns OR until_ns IS NULL
  UNION ALL
  SELECT clock, model, max(at_ns) AS gap_from_ns, CAST(NULL AS BIGINT) AS gap_until_ns
  FROM computed
  WHERE is_hit
  GROUP BY clock, model
),
hits AS (
  SELECT
    h.clock, h.model, max(h.prior_since_ns) AS survived_ns,
    max(h.before_tokens - coalesce(p.before_tokens, 0) - p.new_tokens) AS survived_tokens
  FROM running AS h
  JOIN running AS p ON h.prior_key = p.request_key
  WHERE h.is_hit
  GROUP BY h.clock, h.model
),
-- Gaps follow each other: of those that begin before a call, the last ends last.
marks AS (
  SELECT
    clock, model, coalesce(gap_from_ns, -9223372036854775807) AS at_ns, 0 AS asks,
    coalesce(gap_until_ns, 9223372036854775807) AS until_ns,
    CAST(NULL AS BIGINT) AS request_key, CAST(NULL AS BIGINT) AS prior_ns
  FROM gaps
  UNION ALL
  SELECT clock, model, at_ns, 1 AS asks, CAST(NULL AS BIGINT) AS until_ns, request_key, prior_ns
  FROM running
  WHERE lost_tokens > 0
),
reach AS (
  SELECT
    request_key, prior_ns, asks,
    max(until_ns) OVER (
      PARTITION BY clock, model ORDER BY at_ns, asks DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS until_ns
  FROM marks
),
emptied AS (
  SELECT request_key
  FROM reach
  WHERE asks = 1 AND (until_ns = 9223372036854775807 OR until_ns > prior_ns)
),
prior AS (
  SELECT request_key, before_tokens, new_tokens, hits_before, losses_before, is_hit, lost_tokens
  FROM running
)
SELECT
  l.request_key,
  CAST(CASE WHEN l.before_tokens - coalesce(p.before_tokens, 0) > p.new_tokens
    THEN l.before_tokens - coalesce(p.before_tokens, 0) - p.new_tokens ELSE 0 END AS BIGINT)
    AS foreign_tokens,
  h.survived_ns IS NULL OR e.request_key IS NOT NULL AS could_be_emptied,
  h.survived_ns,
  CAST(h.survived_tokens AS BIGINT) AS survived_tokens,
  CAST(coalesce(l.hits_before, 0) - coalesce(p.hits_before, 0)
    - CASE WHEN p.is_hit THEN 1 ELSE 0 END AS BIGINT) AS hits_between,
  CAST(coalesce(l.losses_before, 0) - coalesce(p.losses_before, 0)
    - CASE WHEN p.lost_tokens > 0 THEN 1 ELSE 0 END AS BIGINT) AS losses_between
FROM running AS l
LEFT JOIN prior AS p ON l.prior_key = p.request_key
LEFT JOIN hits AS h ON l.clock = h.clock AND l.model = h.model
LEFT JOIN emptied AS e ON l.request_key = e.request_key
WHERE l.lost_tokens > 0
