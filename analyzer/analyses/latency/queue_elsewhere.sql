-- How busy the other deployments of the same model were while a request waited.
-- grain:   one row a request that waited long where several deployments serve its model
-- needs:   latency_queue_stay
-- returns: request_key BIGINT       -- the request
-- returns: own_service DOUBLE       -- mean number in service on its deployment during the wait
-- returns: other_service DOUBLE     -- the same on each of the others, on average
WITH stays AS (
  SELECT * FROM latency_queue_stay WHERE start_ns IS NOT NULL AND server <> ''
),
several AS (
  SELECT model, count(DISTINCT server) AS servers
  FROM stays
  GROUP BY model
  HAVING count(DISTINCT server) > 1
),
shared AS (
  SELECT s.*, m.servers, 'own' AS scope, s.server AS place FROM stays AS s JOIN several AS m ON s.model = m.model
  UNION ALL
  SELECT s.*, m.servers, 'all', '' FROM stays AS s JOIN several AS m ON s.model = m.model
),
points AS (
  SELECT model, scope, place, at_ns, SUM(more) AS more
  FROM (
    SELECT model, scope, place, admit_ns AS at_ns, 1 AS more FROM shared
    UNION ALL
    SELECT model, scope, place, end_ns, -1 FROM shared
    UNION ALL
    SELECT model, scope, place, start_ns, 0 FROM shared WHERE is_long
  ) AS edges
  GROUP BY model, scope, place, at_ns
),
levels AS (
  SELECT
    model, scope, place, at_ns,
    CAST(SUM(more) OVER places - more AS DOUBLE) AS until_then,
    at_ns - lag(at_ns) OVER places AS lasts_ns
  FROM points
  WINDOW places AS (PARTITION BY model, scope, place ORDER BY at_ns)
),
areas AS (
  SELECT
    model, scope, place, at_ns,
    SUM(coalesce(until_then * lasts_ns, CAST(0 AS DOUBLE)))
      OVER (PARTITION BY model, scope, place ORDER BY at_ns) AS area
  FROM levels
),
means AS (
  SELECT
    w.request_key, w.scope, w.servers,
    (b.area - a.area) / w.queue_ns AS in_service
  FROM shared AS w
  JOIN areas AS a
    ON w.model = a.model AND w.scope = a.scope AND w.place = a.place AND w.start_ns = a.at_ns
  JOIN areas AS b
    ON w.model = b.model AND w.scope = b.scope AND w.place = b.place AND w.admit_ns = b.at_ns
  WHERE w.is_long
)
SELECT
  request_key,
  max(CASE WHEN scope = 'own' THEN in_service END) AS own_service,
  (max(CASE WHEN scope = 'all' THEN in_service END) - max(CASE WHEN scope = 'own' THEN in_service END))
    / (max(servers) - 1) AS other_service
FROM means
GROUP BY request_key
