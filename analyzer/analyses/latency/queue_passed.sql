-- How many requests that came later were served at once while a request waited: nobody can pass in a
-- queue that is served in order. Counted over the first half of the wait, so that whoever came as
-- the queue dissolved is left out; among all, and among those of the same deployment, route, tenant.
-- grain:   one row a request that waited long
-- needs:   latency_queue_stay, resolve_asked
-- returns: request_key BIGINT     -- the request
-- returns: deployment VARCHAR     -- its deployment; empty = not told
-- returns: route VARCHAR          -- its route; empty = not told
-- returns: tenant VARCHAR         -- its tenant; empty = not told
-- returns: passed BIGINT          -- requests for its model that passed it
-- returns: own BIGINT             -- of them, of its deployment, route and tenant
-- returns: same_deployment BIGINT -- of them, of its deployment
-- returns: same_route BIGINT      -- of them, of its route
-- returns: same_tenant BIGINT     -- of them, of its tenant
-- returns: other_deployment BIGINT -- requests of other deployments that came meanwhile
-- returns: other_route BIGINT     -- requests of other routes that came meanwhile
-- returns: other_tenant BIGINT    -- requests of other tenants that came meanwhile
WITH stays AS (
  SELECT
    s.request_key, s.model, s.server, s.route, coalesce(a.tenant, '') AS tenant, s.start_ns,
    s.start_ns + CAST(round(s.queue_ns / 2.0) AS BIGINT) AS half_ns, s.is_prompt, s.is_long
  FROM latency_queue_stay AS s
  LEFT JOIN resolve_asked AS a ON s.request_key = a.request_key
  WHERE s.start_ns IS NOT NULL
),
varies AS (
  SELECT
    count(DISTINCT server) > 1 AS deployments, count(DISTINCT route) > 1 AS routes,
    count(DISTINCT tenant) > 1 AS tenants
  FROM stays
),
grouped AS (
  SELECT s.*, 'all' AS dimension, '' AS value FROM stays AS s
  UNION ALL
  SELECT s.*, 'own', concat(s.server, '|', s.route, '|', s.tenant)
  FROM stays AS s CROSS JOIN varies AS v WHERE v.deployments OR v.routes OR v.tenants
  UNION ALL
  SELECT s.*, 'deployment', s.server FROM stays AS s CROSS JOIN varies AS v WHERE v.deployments
  UNION ALL
  SELECT s.*, 'route', s.route FROM stays AS s CROSS JOIN varies AS v WHERE v.routes
  UNION ALL
  SELECT s.*, 'tenant', s.tenant FROM stays AS s CROSS JOIN varies AS v WHERE v.tenants
),
edges AS (
  SELECT
    model, dimension, value, start_ns AS at_ns, 1 AS came,
    CASE WHEN is_prompt THEN 1 ELSE 0 END AS served
  FROM grouped
  UNION ALL
  SELECT model, dimension, value, half_ns, 0, 0 FROM grouped WHERE is_long
),
points AS (
  SELECT model, dimension, value, at_ns, SUM(came) AS came, SUM(served) AS served
  FROM edges
  GROUP BY model, dimension, value, at_ns
),
counts AS (
  SELECT
    model, dimension, value, at_ns,
    SUM(came) OVER so_far AS came, SUM(served) OVER so_far AS served
  FROM points
  WINDOW so_far AS (PARTITION BY model, dimension, value ORDER BY at_ns)
),
between_them AS (
  SELECT w.request_key, w.dimension, b.came - a.came AS came, b.served - a.served AS passed
  FROM grouped AS w
  JOIN counts AS a
    ON w.model = a.model AND w.dimension = a.dimension AND w.value = a.value AND w.start_ns = a.at_ns
  JOIN counts AS b
    ON w.model = b.model AND w.dimension = b.dimension AND w.value = b.value AND w.half_ns = b.at_ns
  WHERE w.is_long
),
side_by_side AS (
  SELECT
    request_key,
    max(CASE WHEN dimension = 'all' THEN passed END) AS passed,
    max(CASE WHEN dimension = 'own' THEN passed END) AS own,
    max(CASE WHEN dimension = 'deployment' THEN passed END) AS same_deployment,
    max(CASE WHEN dimension = 'all' THEN came END)
      - max(CASE WHEN dimension = 'deployment' THEN came END) AS other_deployment,
    max(CASE WHEN dimension = 'route' THEN passed END) AS same_route,
    max(CASE WHEN dimension = 'all' THEN came END)
      - max(CASE WHEN dimension = 'route' THEN came END) AS other_route,
    max(CASE WHEN dimension = 'tenant' THEN passed END) AS same_tenant,
    max(CASE WHEN dimension = 'all' THEN came END)
      - max(CASE WHEN dimension = 'tenant' THEN came END) AS other_tenant
  FROM between_them
  GROUP BY request_key
)
SELECT
  p.request_key, s.server AS deployment, s.route, s.tenant,
  CAST(p.passed AS BIGINT) AS passed,
  CAST(coalesce(p.own, p.passed) AS BIGINT) AS own,
  CAST(coalesce(p.same_deployment, p.passed) AS BIGINT) AS same_deployment,
  CAST(coalesce(p.same_route, p.passed) AS BIGINT) AS same_route,
  CAST(coalesce(p.same_tenant, p.passed) AS BIGINT) AS same_tenant,
  CAST(coalesce(p.other_deployment, 0) AS BIGINT) AS other_deployment,
  CAST(coalesce(p.other_route, 0) AS BIGINT) AS other_route,
  CAST(coalesce(p.other_tenant, 0) AS BIGINT) AS other_tenant
FROM side_by_side AS p
JOIN stays AS s ON p.request_key = s.request_key
