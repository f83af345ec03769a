-- Deployments, routes and tenants whose requests wait while those of others are served at once, and
-- deployments whose requests wait while the others of the model have far less in service.
-- grain:   one row a deployment, route or tenant with long waits, and model
-- needs:   latency_queue_stay, latency_queue_passed, latency_queue_elsewhere, resolve_asked
-- param:   passed_share = 0.5        -- of its long waits during which others came that these must have passed
-- param:   less_share = 0.5          -- of what it has in service, below which the others have room
-- param:   times_others = 3          -- how much more often its requests must wait while others have room
-- param:   fewest = 3                -- waits that others passed; fewer are chance
-- returns: dimension VARCHAR         -- deployment, route or tenant
-- returns: value VARCHAR             -- which
-- returns: model VARCHAR             -- model; empty = not told
-- returns: requests BIGINT           -- its requests with a known queue time
-- returns: waited BIGINT             -- of them, that waited long
-- returns: was_passed BIGINT         -- of those, while others had room: they were served at once and none of its own
-- returns: other_requests BIGINT     -- requests of the others
-- returns: other_waited BIGINT       -- of them, that waited long
-- returns: is_tilted BOOLEAN         -- it waits for want of room that others have
WITH stays AS (
  SELECT
    s.request_key, s.model, s.server, s.route, coalesce(a.tenant, '') AS tenant, s.is_long,
    p.passed, p.same_deployment, p.same_route, p.same_tenant,
    p.other_deployment, p.other_route, p.other_tenant,
    coalesce(e.other_service <= $less_share * e.own_service, FALSE) AS has_room
  FROM latency_queue_stay AS s
  LEFT JOIN resolve_asked AS a ON s.request_key = a.request_key
  LEFT JOIN latency_queue_passed AS p ON s.request_key = p.request_key
  LEFT JOIN latency_queue_elsewhere AS e ON s.request_key = e.request_key
),
sides AS (
  SELECT
    'deployment' AS dimension, server AS value, model, is_long,
    coalesce(passed > 0 AND same_deployment = 0, FALSE) OR has_room AS is_passed,
    coalesce(other_deployment > 0, FALSE) OR has_room AS is_judged
  FROM stays
  UNION ALL
  SELECT 'route', route, model, is_long, coalesce(passed > 0 AND same_route = 0, FALSE), other_route > 0
  FROM stays
  UNION ALL
  SELECT 'tenant', tenant, model, is_long, coalesce(passed > 0 AND same_tenant = 0, FALSE), other_tenant > 0
  FROM stays
),
counted AS (
  SELECT
    dimension, value, model, count(*) AS requests,
    count(*) FILTER (WHERE is_long) AS waited,
    count(*) FILTER (WHERE is_long AND is_judged) AS judged,
    count(*) FILTER (WHERE is_long AND is_passed) AS was_passed
  FROM sides
  GROUP BY dimension, value, model
),
compared AS (
  SELECT
    *,
    CAST(SUM(requests) OVER (PARTITION BY dimension, model) - requests AS BIGINT) AS other_requests,
    CAST(SUM(waited) OVER (PARTITION BY dimension, model) - waited AS BIGINT) AS other_waited,
    SUM(was_passed) OVER (PARTITION BY dimension, model) - was_passed AS other_passed
  FROM counted
)
SELECT
  dimension, value, model, requests, waited, was_passed, other_requests, other_waited,
  value <> '' AND was_passed >= $fewest AND was_passed >= $passed_share * judged
    AND other_requests > 0
    -- What the others waited while there was no room anywhere speaks against nothing.
    AND was_passed * other_requests >= $times_others * other_passed * requests AS is_tilted
FROM compared
WHERE waited > 0
