-- Which rows speak of the same attempt of the same request. Rows join by id and overlapping time;
-- the same id at another time, attempt or with other tokens is another request (real runs reuse
-- ids).
-- grain:   one row a request row of the case
-- needs:   resolve_told
-- param:   reuse_slack_ns = 1000000000       -- an id told more than once by a vantage may have been reused
-- param:   unique_slack_ns = 21600000000000  -- an id told once by each vantage joins even when clocks differ by hours
-- returns: row_id BIGINT            -- row of resolve_told
-- returns: request_key BIGINT       -- the request: its lowest row_id
WITH alias AS (
  SELECT answer_id, min(own_id) AS own_id
  FROM resolve_told
  WHERE own_id IS NOT NULL AND answer_id IS NOT NULL AND answer_id <> own_id
  GROUP BY answer_id
),
named AS (
  SELECT
    t.row_id, t.vantage, t.vantage_rank, t.attempt, t.start_ns, t.end_ns, t.output_tokens,
    coalesce(
      a.own_id, t.own_id, b.own_id, t.answer_id, concat('row ', CAST(t.row_id AS VARCHAR))
    ) AS name
  FROM resolve_told AS t
  LEFT JOIN alias AS a ON t.own_id = a.answer_id
  LEFT JOIN alias AS b ON t.answer_id = b.answer_id
),
told_by AS (
  SELECT
    *,
    count(*) OVER (PARTITION BY name, vantage) AS rows_of_vantage
  FROM named
),
crowded AS (
  SELECT *, max(rows_of_vantage) OVER (PARTITION BY name) AS most_rows FROM told_by
),
reach AS (
  SELECT
    *,
    max(end_ns) OVER before AS reach_ns,
    last_value(attempt IGNORE NULLS) OVER before AS last_attempt
  FROM crowded
  WHERE start_ns IS NOT NULL
  WINDOW before AS (
    PARTITION BY name ORDER BY start_ns, vantage_rank, row_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  )
),
dated AS (
  SELECT
    row_id, name, vantage, output_tokens,
    SUM(
      CASE
        WHEN reach_ns IS NULL THEN 1
        WHEN start_ns > reach_ns
          + CASE WHEN most_rows = 1 THEN $unique_slack_ns ELSE $reuse_slack_ns END THEN 1
        WHEN attempt <> last_attempt THEN 1
        ELSE 0
      END
    ) OVER (PARTITION BY name ORDER BY start_ns, vantage_rank, row_id) AS island
  FROM reach
),
only_island AS (
  SELECT name, max(island) AS island FROM dated GROUP BY name HAVING max(island) = 1
),
undated AS (
  SELECT
    c.row_id, c.name, c.vantage, c.output_tokens,
    -- Without a time a row joins the one request of its name, or the other rows without a time;
    -- a vantage that repeats the name without times tells of several requests.
    CASE
      WHEN o.island IS NOT NULL AND c.rows_of_vantage = 1 THEN o.island
      WHEN c.most_rows = 1 THEN 0
      ELSE -row_number() OVER (PARTITION BY c.name, c.vantage ORDER BY c.row_id)
    END AS island
  FROM crowded AS c
  LEFT JOIN only_island AS o ON c.name = o.name
  WHERE c.start_ns IS NULL
),
placed AS (
  SELECT row_id, name, vantage, output_tokens, island FROM dated
  UNION ALL
  SELECT row_id, name, vantage, output_tokens, island FROM undated
),
agreed AS (
  SELECT
    *,
    min(output_tokens) OVER (PARTITION BY name, island, vantage) AS fewest_tokens
  FROM placed
),
split AS (
  SELECT
    *,
    dense_rank() OVER (
      PARTITION BY name, island, vantage
      ORDER BY coalesce(output_tokens, fewest_tokens) NULLS FIRST
    ) AS variant
  FROM agreed
)
SELECT row_id, min(row_id) OVER (PARTITION BY name, island, variant) AS request_key
FROM split
