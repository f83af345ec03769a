-- Which rows speak of the same attempt of the same request, over all vantages. They join by id. Where
-- every vantage tells an id equally often, the first joins the first and so on; else overlapping times
-- (on the reference clock), attempts and tokens decide, and what fits nowhere stands alone (real runs
-- reuse ids).
-- grain:   one row a request row of the case
-- needs:   resolve_told, resolve_entity, resolve_aligned
-- param:   slack_ns = 1000000000        -- overlap is taken this generously
-- param:   skew_ns = 3600000000000      -- further apart than an hour are two runs, not two clocks
-- returns: row_id BIGINT                -- row of resolve_told
-- returns: request_key BIGINT           -- the request: its lowest row_id
WITH entities AS (
  SELECT
    e.entity_id, e.name, t.vantage,
    min(t.vantage_rank) AS vantage_rank,
    min(t.start_ns - coalesce(a.shift_ns, 0)) AS start_ns,
    max(t.end_ns - coalesce(a.shift_ns, 0)) AS end_ns,
    max(t.attempt) AS attempt,
    max(t.output_tokens) AS output_tokens
  FROM resolve_entity AS e
  JOIN resolve_told AS t ON e.row_id = t.row_id
  LEFT JOIN resolve_aligned AS a ON e.row_id = a.row_id
  GROUP BY e.entity_id, e.name, t.vantage
),
counted AS (
  SELECT
    *,
    count(*) OVER (PARTITION BY name, vantage) AS told,
    count(*) OVER (PARTITION BY name) AS told_in_all,
    row_number() OVER (
      PARTITION BY name, vantage ORDER BY start_ns NULLS LAST, attempt NULLS LAST, entity_id
    ) AS nth
  FROM entities
),
-- The vantage that tells most of them leads, the outermost of equals.
led AS (
  SELECT
    *,
    first_value(vantage) OVER (
      PARTITION BY name ORDER BY told DESC, vantage_rank, entity_id
    ) AS lead_vantage,
    max(told) OVER (PARTITION BY name) AS most_told
  FROM counted
),
pairs AS (
  SELECT
    o.entity_id,
    o.vantage,
    l.entity_id AS lead_entity,
    CASE WHEN o.told = o.most_told AND o.nth = l.nth THEN 0 ELSE 1 END AS out_of_turn,
    CASE WHEN o.attempt = l.attempt THEN 0 ELSE 1 END AS other_attempt,
    CASE WHEN o.output_tokens = l.output_tokens THEN 0 ELSE 1 END AS other_tokens,
    -- Of several inner attempts under one outer request, the one that ends with it answered it.
    abs(o.end_ns - l.end_ns) AS apart_ns
  FROM led AS o
  JOIN led AS l
    ON o.name = l.name AND l.vantage = l.lead_vantage AND o.vantage <> o.lead_vantage
  WHERE o.told_in_all > 1
    AND (o.attempt IS NULL OR l.attempt IS NULL OR o.attempt = l.attempt)
    AND (
      (o.told = o.most_told AND o.nth = l.nth
        AND coalesce(abs(o.start_ns - l.start_ns), 0) <= $skew_ns)
      OR (o.told < o.most_told
        AND o.start_ns <= l.end_ns + $slack_ns AND l.start_ns <= o.end_ns + $slack_ns)
      OR ((o.start_ns IS NULL OR l.start_ns IS NULL) AND o.attempt = l.attempt)
    )
),
ranked AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY entity_id
      ORDER BY out_of_turn, other_attempt, other_tokens, apart_ns, lead_entity
    ) AS choice
  FROM pairs
),
chosen AS (
  SELECT
    entity_id,
    lead_entity,
    row_number() OVER (
      PARTITION BY lead_entity, vantage
      ORDER BY out_of_turn, other_attempt, other_tokens, apart_ns, entity_id
    ) AS suitor
  FROM ranked
  WHERE choice = 1
),
joined AS (
  SELECT e.row_id, coalesce(c.lead_entity, e.entity_id) AS lead_entity
  FROM resolve_entity AS e
  LEFT JOIN chosen AS c ON e.entity_id = c.entity_id AND c.suitor = 1
)
SELECT row_id, min(row_id) OVER (PARTITION BY lead_entity) AS request_key
FROM joined
