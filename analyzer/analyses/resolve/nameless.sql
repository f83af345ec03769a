-- Rows without any id that tell of a call which another source tells too: they know only when and how
-- long (a server's access lines), the other what was answered (bodies that were kept). They belong
-- together where vantage, path, end and duration are the same, one to one.
-- grain:   one row a request row without id, model and tokens that was found in another source
-- needs:   resolve_told, request
-- param:   end_ns = 1100000000           -- access lines know whole seconds only
-- param:   longer_ns = 100000000         -- what an access line counts beyond the answer's own duration
-- param:   shorter_ns = 5000000          -- two clocks of one machine
-- returns: row_id BIGINT                 -- row of resolve_told
-- returns: full_row BIGINT               -- the row that tells the same call
WITH rows_of AS (
  SELECT
    t.row_id, t.source_id, t.vantage, t.end_ns, r.e2e_ns, coalesce(r.endpoint, '') AS endpoint,
    t.own_id IS NULL AND t.answer_id IS NULL AND r.model IS NULL AND t.output_tokens IS NULL
      AS is_bare,
    CAST(round((t.end_ns - 500000000) / 1000000000.0) AS BIGINT) AS end_s
  FROM resolve_told AS t
  JOIN request AS r
    ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
  WHERE t.end_ns IS NOT NULL AND r.e2e_ns IS NOT NULL AND coalesce(r.timing, 'stated') <> 'stream'
),
shifts AS (
  SELECT -1 AS by_s UNION ALL SELECT 0 UNION ALL SELECT 1
),
bare AS (
  SELECT b.*, b.end_s + s.by_s AS near_s FROM rows_of AS b CROSS JOIN shifts AS s WHERE b.is_bare
),
pairs AS (
  SELECT
    b.row_id AS bare_row, f.row_id AS full_row, b.source_id AS bare_source,
    abs(b.e2e_ns - f.e2e_ns) AS off_ns, abs(b.end_ns - f.end_ns) AS apart_ns
  FROM bare AS b
  JOIN rows_of AS f
    ON NOT f.is_bare AND b.vantage = f.vantage AND b.near_s = f.end_s
    AND b.source_id <> f.source_id AND (b.endpoint = f.endpoint OR f.endpoint = '')
    AND abs(b.end_ns - f.end_ns) <= $end_ns
    AND b.e2e_ns - f.e2e_ns BETWEEN -$shorter_ns AND $longer_ns
),
ranked AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY bare_row ORDER BY off_ns, apart_ns, full_row) AS choice,
    row_number() OVER (
      PARTITION BY full_row, bare_source ORDER BY off_ns, apart_ns, bare_row
    ) AS suitor
  FROM pairs
)
SELECT bare_row AS row_id, full_row FROM ranked WHERE choice = 1 AND suitor = 1
