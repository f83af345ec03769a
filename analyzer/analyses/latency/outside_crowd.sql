-- Whether the time outside the server follows the requests in flight: then they queue in front of it,
-- and those wait longest who find most others there. A path or a timer does not count them.
-- grain:   one row a request seen from two vantages
-- needs:   latency_outside
-- param:   crowd = 0.8                  -- correlation of the time outside with the requests in flight
-- param:   requests = 10                -- late ones from which it says something
-- returns: request_key BIGINT           -- the request
-- returns: in_flight BIGINT             -- others of its route on their way when it started
-- returns: crowd_corr DOUBLE            -- correlation over the late ones of its route; NULL = they do not vary
-- returns: queues BOOLEAN               -- its route queues in front of the server
WITH moments AS (
  SELECT coalesce(route, '') AS route, hop, start_ns AS at_ns, 1 AS step, request_key, TRUE AS begins
  FROM latency_outside
  WHERE start_ns IS NOT NULL AND e2e_ns IS NOT NULL
  UNION ALL
  SELECT coalesce(route, ''), hop, start_ns + e2e_ns, -1, request_key, FALSE
  FROM latency_outside
  WHERE start_ns IS NOT NULL AND e2e_ns IS NOT NULL
),
levels AS (
  SELECT
    request_key, begins,
    CAST(SUM(step) OVER (PARTITION BY route, hop ORDER BY at_ns, step, request_key) AS BIGINT) - 1
      AS in_flight
  FROM moments
),
placed AS (
  SELECT
    o.request_key, coalesce(o.route, '') AS route, o.hop, o.is_late, o.network_excess_ns, l.in_flight
  FROM latency_outside AS o
  LEFT JOIN levels AS l ON o.request_key = l.request_key AND l.begins
),
routes AS (
  SELECT
    route, hop, count(*) AS requests,
    CASE WHEN var_pop(in_flight) > 0 AND var_pop(network_excess_ns) > 0
      THEN corr(network_excess_ns, in_flight) END AS crowd_corr
  FROM placed
  WHERE is_late
  GROUP BY route, hop
)
SELECT
  p.request_key, p.in_flight, r.crowd_corr,
  coalesce(r.requests >= $requests AND r.crowd_corr >= $crowd, FALSE) AS queues
FROM placed AS p
LEFT JOIN routes AS r ON p.route = r.route AND p.hop = r.hop
