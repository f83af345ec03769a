-- What changed in a prompt that could not be read from the cache any more, by its logged parts: the
-- first part that differs from the prompt it continues, and what kind of value is another there. Of
-- prompts that were not logged, the count or length of their tools may tell that those are others; they
-- come first in a prompt.
-- grain:   one row a call that lost tokens it could have read, where both prompts were logged, or tools differ
-- needs:   turns_expected, turns_call, turns_kept, resolve_part, resolve_conversation
-- param:   near = 0.1                       -- of what could be read, is how far characters may mislead about tokens
-- param:   char_tokens = 0.5                -- tools have no more tokens a character
-- returns: request_key BIGINT               -- the call
-- returns: what VARCHAR                     -- timestamp, id, number, several values, tools in another order, tools, system prompt, history, an option or other
-- returns: kind VARCHAR                     -- kind of the first part that differs; NULL = none does
-- returns: part_index BIGINT                -- its place in the prompt, from 0
-- returns: at_chars BIGINT                  -- characters before what differs, where that is known
-- returns: is_reason BOOLEAN                -- it stands where the cache was no longer read, or before; NULL = sizes are not told
-- returns: is_logged BOOLEAN                -- both prompts were; FALSE = only how many tools they have, or how long those are
WITH pairs AS (
  SELECT
    e.request_key, c.prior_key, c.prior_input_tokens, e.unbroken_tokens, k.writes_told,
    coalesce(e.read_tokens, e.could_tokens) AS read_tokens
  FROM turns_expected AS e
  JOIN turns_call AS c ON e.request_key = c.request_key
  JOIN turns_kept AS k ON c.model = k.model
  WHERE e.lost_tokens > 0 AND c.prior_key IS NOT NULL
),
told AS (
  SELECT
    p.request_key, w.part_index, w.kind, w.chars, w.part_hash AS was_hash, n.part_hash,
    w.plain_hash AS was_plain, n.plain_hash, n.kind AS new_kind, n.volatile,
    n.first_volatile_chars,
    coalesce(sum(w.chars) OVER (
      PARTITION BY p.request_key ORDER BY w.part_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS before_chars
  FROM pairs AS p
  JOIN resolve_part AS w ON p.prior_key = w.request_key
  LEFT JOIN resolve_part AS n ON p.request_key = n.request_key AND w.part_index = n.part_index
),
-- Of both prompts; the other one must have been logged, too.
logged AS (
  SELECT
    request_key, count(part_hash) AS parts, sum(chars) AS chars,
    min(CASE WHEN new_kind IS NULL OR part_hash <> was_hash THEN part_index END) AS part_index
  FROM told
  GROUP BY request_key
),
tools AS (
  SELECT
    p.request_key, count(*) AS tools, count(n.tool_hash) AS again
  FROM pairs AS p
  JOIN (SELECT request_key, part_hash AS tool_hash FROM resolve_part WHERE kind = 'tools') AS w
    ON p.prior_key = w.request_key
  LEFT JOIN (
    SELECT DISTINCT request_key, part_hash AS tool_hash FROM resolve_part WHERE kind = 'tools'
  ) AS n ON p.request_key = n.request_key AND w.tool_hash = n.tool_hash
  GROUP BY p.request_key
)
SELECT
  g.request_key,
  CASE
    WHEN g.part_index IS NULL THEN 'an option'
    WHEN t.part_hash IS NOT NULL AND t.plain_hash = t.was_plain THEN
      CASE WHEN t.volatile LIKE '%,%' THEN 'several values' ELSE coalesce(t.volatile, 'other') END
    WHEN t.kind = 'tools' AND s.tools = s.again AND t.new_kind = 'tools'
      THEN 'tools in another order'
    WHEN t.kind = 'tools' OR t.new_kind = 'tools' THEN 'tools'
    WHEN t.kind = 'system' THEN 'system prompt'
    ELSE 'history'
  END AS what,
  t.kind,
  t.part_index,
  CAST(t.before_chars + CASE WHEN t.plain_hash = t.was_plain
    THEN coalesce(t.first_volatile_chars, 0) ELSE 0 END AS BIGINT) AS at_chars,
  g.part_index IS NOT NULL
    AND (CAST(t.before_chars AS DOUBLE) / nullif(g.chars, 0) * p.prior_input_tokens
      <= p.read_tokens + p.unbroken_tokens * $near
      -- What is written is marked: within tools or system prompt no mark stands before what differs.
      OR (p.writes_told AND (t.kind IN ('tools', 'system') OR t.new_kind = 'tools'))) AS is_reason,
  TRUE AS is_logged
FROM logged AS g
JOIN pairs AS p ON g.request_key = p.request_key
LEFT JOIN told AS t ON g.request_key = t.request_key AND g.part_index = t.part_index
LEFT JOIN tools AS s ON g.request_key = s.request_key
WHERE g.parts > 0
UNION ALL
SELECT
  p.request_key, 'tools' AS what, 'tools' AS kind, CAST(NULL AS BIGINT) AS part_index,
  CAST(NULL AS BIGINT) AS at_chars, p.read_tokens <= w.tools_chars * $char_tokens AS is_reason,
  FALSE AS is_logged
FROM pairs AS p
JOIN resolve_conversation AS w ON p.prior_key = w.request_key
JOIN resolve_conversation AS n ON p.request_key = n.request_key
LEFT JOIN logged AS g ON p.request_key = g.request_key AND g.parts > 0
WHERE g.request_key IS NULL
  AND (w.tools_count <> n.tools_count OR w.tools_chars <> n.tools_chars)
