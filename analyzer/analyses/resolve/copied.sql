-- Answers that a side chain's log repeats from the log it sprang from: a sub-agent's file begins with
-- a copy of its context, under the answers' own ids, at times under request ids of its own.
-- grain:   one row a request row that is such a copy
-- needs:   resolve_told, request
-- returns: row_id BIGINT      -- row of resolve_told
-- returns: full_row BIGINT    -- the row it is a copy of
WITH rows_of AS (
  SELECT
    t.row_id, t.source_id, t.vantage, t.answer_id, coalesce(r.is_sidechain, FALSE) AS is_side,
    r.session_id, r.parent_session_id
  FROM resolve_told AS t
  JOIN request AS r
    ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
  WHERE t.answer_id IS NOT NULL
)
SELECT c.row_id, min(f.row_id) AS full_row
FROM rows_of AS c
JOIN rows_of AS f
  ON c.answer_id = f.answer_id AND c.vantage = f.vantage AND c.source_id <> f.source_id
WHERE c.is_side AND NOT f.is_side AND c.parent_session_id = f.session_id
GROUP BY c.row_id
