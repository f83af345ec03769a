-- Which rows of one vantage speak of the same attempt: records of several files complete each other
-- when their times overlap and their tokens and attempts agree. Two rows of one file never do.
-- grain:   one row a request row of the case
-- needs:   resolve_told, resolve_nameless, resolve_copied
-- param:   slack_ns = 1000000000    -- clocks of one vantage; ids are reused by later runs
-- returns: row_id BIGINT            -- row of resolve_told
-- returns: entity_id BIGINT         -- lowest row_id of those that complete each other
-- returns: name VARCHAR             -- the id all vantages can know it by
WITH alias AS (
  SELECT answer_id, min(own_id) AS own_id
  FROM resolve_told
  WHERE own_id IS NOT NULL AND answer_id IS NOT NULL AND answer_id <> own_id
  GROUP BY answer_id
),
-- Vantages that ask under ids of their own know a call by the answer's id, one id a vantage.
answered AS (
  SELECT answer_id, min(own_id) AS own_id
  FROM resolve_told
  WHERE own_id IS NOT NULL AND answer_id IS NOT NULL AND answer_id <> own_id
  GROUP BY answer_id
  HAVING min(own_id) <> max(own_id) AND count(DISTINCT vantage) = count(DISTINCT own_id)
),
-- Unless other vantages know one of these ids: then that joins them.
known AS (
  SELECT s.answer_id
  FROM answered AS s
  JOIN resolve_told AS t ON s.answer_id = t.answer_id
  JOIN resolve_told AS o ON t.own_id = o.own_id AND t.vantage <> o.vantage
  GROUP BY s.answer_id
),
shared AS (
  SELECT s.answer_id, s.own_id
  FROM answered AS s
  LEFT JOIN known AS k ON s.answer_id = k.answer_id
  WHERE k.answer_id IS NULL
),
named AS (
  SELECT
    t.*,
    coalesce(
      a.own_id, s.own_id, t.own_id, b.own_id, t.answer_id, concat('row ', CAST(t.row_id AS VARCHAR))
    ) AS name
  FROM resolve_told AS t
  LEFT JOIN alias AS a ON t.own_id = a.answer_id
  LEFT JOIN alias AS b ON t.answer_id = b.answer_id
  LEFT JOIN shared AS s ON t.answer_id = s.answer_id
),
called AS (
  SELECT
    t.row_id, coalesce(f.name, c.name, t.name) AS name, t.vantage, t.source_id, t.attempt,
    coalesce(c.start_ns, t.start_ns) AS start_ns, coalesce(c.end_ns, t.end_ns) AS end_ns,
    t.output_tokens, t.unfinished
  FROM named AS t
  LEFT JOIN resolve_nameless AS n ON t.row_id = n.row_id
  LEFT JOIN named AS f ON n.full_row = f.row_id
  LEFT JOIN resolve_copied AS o ON t.row_id = o.row_id
  LEFT JOIN named AS c ON o.full_row = c.row_id
),
counted AS (
  SELECT
    row_id, name, vantage, source_id, attempt, start_ns, end_ns, output_tokens, unfinished,
    count(*) OVER (PARTITION BY name, vantage, source_id) AS rows_of_source,
    count(*) OVER (PARTITION BY name, vantage) AS rows_of_vantage
  FROM called
),
-- The source that tells most of them leads; the rows of the others are held against its rows.
led AS (
  SELECT
    *,
    first_value(source_id) OVER (
      PARTITION BY name, vantage ORDER BY rows_of_source DESC, source_id, row_id
    ) AS lead_source
  FROM counted
),
pairs AS (
  SELECT
    o.row_id,
    l.row_id AS lead_row,
    abs(o.start_ns - l.start_ns) AS apart_ns,
    CASE WHEN o.attempt = l.attempt THEN 0 ELSE 1 END AS other_attempt,
    CASE WHEN o.output_tokens = l.output_tokens THEN 0 ELSE 1 END AS other_tokens
  FROM led AS o
  JOIN led AS l
    ON o.name = l.name AND o.vantage = l.vantage AND l.source_id = l.lead_source
    AND o.source_id <> o.lead_source
  WHERE o.rows_of_vantage > 1
    AND (o.attempt IS NULL OR l.attempt IS NULL OR o.attempt = l.attempt)
    AND (o.output_tokens IS NULL OR l.output_tokens IS NULL OR o.output_tokens = l.output_tokens
      OR o.unfinished OR l.unfinished)
    AND (
      (o.start_ns <= l.end_ns + $slack_ns AND l.start_ns <= o.end_ns + $slack_ns)
      OR ((o.start_ns IS NULL OR l.start_ns IS NULL) AND l.rows_of_source = 1)
      OR ((o.start_ns IS NULL OR l.start_ns IS NULL) AND o.attempt = l.attempt)
    )
),
ranked AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY row_id ORDER BY other_attempt, other_tokens, apart_ns, lead_row
    ) AS choice
  FROM pairs
),
chosen AS (
  SELECT r.row_id, r.lead_row, t.source_id,
    row_number() OVER (
      PARTITION BY r.lead_row, t.source_id
      ORDER BY r.other_attempt, r.other_tokens, r.apart_ns, r.row_id
    ) AS suitor
  FROM ranked AS r
  JOIN resolve_told AS t ON r.row_id = t.row_id
  WHERE r.choice = 1
),
joined AS (
  SELECT l.row_id, l.name, coalesce(c.lead_row, l.row_id) AS lead_row
  FROM led AS l
  LEFT JOIN chosen AS c ON l.row_id = c.row_id AND c.suitor = 1
)
SELECT row_id, min(row_id) OVER (PARTITION BY lead_row) AS entity_id, name
FROM joined
