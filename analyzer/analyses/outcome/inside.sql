-- Answered requests that hold attempts of an inner side: a gateway, or a library of the client, tried
-- again, and whoever waited outside saw one long request. The time from the first inner attempt to
-- the one that answered is theirs: no network, no queue. Where nothing else tells the attempts, the
-- gateway's own count of its calls does.
-- grain:   one row a request and inner side that tried more than once
-- needs:   resolve_entity, resolve_instance, resolve_told, resolve_request, resolve_vantage
-- param:   slack_ns = 1000000000          -- ids are reused: an inner attempt began within the outer request
-- returns: request_key BIGINT             -- the request
-- returns: vantage VARCHAR                -- the inner side
-- returns: tries BIGINT                   -- its attempts, the one that answered included
-- returns: hidden_ns BIGINT               -- from the first of them to the one that answered, ns; NULL = not told
-- returns: e2e_ns BIGINT                  -- what the outer side saw, ns
WITH inner_rows AS (
  SELECT e.name, i.request_key, t.vantage, t.vantage_rank, min(t.start_ns) AS start_ns
  FROM resolve_entity AS e
  JOIN resolve_told AS t ON e.row_id = t.row_id
  JOIN resolve_instance AS i ON e.row_id = i.row_id
  WHERE t.start_ns IS NOT NULL
  GROUP BY e.name, i.request_key, t.vantage, t.vantage_rank
),
sides AS (
  SELECT
    name, vantage, request_key, vantage_rank, start_ns,
    count(*) OVER (PARTITION BY name, vantage) AS told
  FROM inner_rows
),
answered AS (
  SELECT s.name, s.vantage, s.request_key, s.start_ns, v.e2e_ns
  FROM sides AS s
  JOIN resolve_request AS r ON s.request_key = r.request_key
  JOIN resolve_vantage AS v ON s.request_key = v.request_key AND v.vantage = r.outer_vantage
  WHERE s.told > 1 AND v.vantage_rank < s.vantage_rank AND v.e2e_ns IS NOT NULL
),
seen AS (
  SELECT
    a.request_key, a.vantage,
    count(*) + 1 AS tries,
    a.start_ns - min(s.start_ns) AS hidden_ns,
    a.e2e_ns
  FROM answered AS a
  JOIN sides AS s
    ON a.name = s.name AND a.vantage = s.vantage AND s.request_key <> a.request_key
    AND s.start_ns < a.start_ns AND s.start_ns >= a.start_ns - a.e2e_ns - $slack_ns
  GROUP BY a.request_key, a.vantage, a.start_ns, a.e2e_ns
),
counted AS (
  SELECT
    i.request_key, i.vantage, i.upstream_calls AS tries, i.upstream_failed_ns AS hidden_ns,
    o.e2e_ns
  FROM resolve_vantage AS i
  JOIN resolve_request AS r ON i.request_key = r.request_key
  JOIN resolve_vantage AS o ON i.request_key = o.request_key AND o.vantage = r.outer_vantage
  WHERE i.upstream_calls > 1 AND NOT r.failed AND o.e2e_ns IS NOT NULL
    AND i.request_key NOT IN (SELECT request_key FROM seen)
)
SELECT request_key, vantage, tries, hidden_ns, e2e_ns FROM seen
UNION ALL
SELECT request_key, vantage, tries, hidden_ns, e2e_ns FROM counted
