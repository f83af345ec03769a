-- How much of what stalls cost stays unexplained, by what would tell their cause.
-- grain:   one row a missing input
-- needs:   stream_lost, latency_segment
-- param:   least_share = 0.001           -- of all time: less is not asked about
-- returns: lacks VARCHAR                 -- ticks (of the client), emission (of the engine), engine log or nothing
-- returns: requests BIGINT               -- requests that stalled for want of it unexplained
-- returns: excess_ns BIGINT              -- what that cost them, ns
-- returns: unsaid_ratio DOUBLE           -- share of what all stalls cost, 0 to 1; 0 where it is little of all time
WITH lost AS (
  SELECT
    request_key, excess_ns,
    CASE WHEN cause = 'delivery' THEN 'ticks' WHEN cause = 'unexplained' THEN lacks ELSE 'known' END AS lacks
  FROM stream_lost
  WHERE matters
),
whole AS (
  SELECT coalesce(SUM(CAST(e2e_ns AS DOUBLE)), 0) AS all_ns FROM latency_segment
),
stalled AS (
  SELECT SUM(CAST(excess_ns AS DOUBLE)) AS stalled_ns FROM lost
),
inputs AS (
  SELECT 'ticks' AS lacks UNION ALL SELECT 'emission' UNION ALL SELECT 'engine log'
  UNION ALL SELECT 'nothing'
),
grouped AS (
  SELECT
    i.lacks, count(DISTINCT l.request_key) AS requests,
    CAST(coalesce(SUM(l.excess_ns), 0) AS BIGINT) AS excess_ns
  FROM inputs AS i
  LEFT JOIN lost AS l ON i.lacks = l.lacks
  GROUP BY i.lacks
)
SELECT
  g.lacks, g.requests, g.excess_ns,
  CASE WHEN g.excess_ns > 0 AND g.excess_ns >= $least_share * w.all_ns
    THEN g.excess_ns / s.stalled_ns ELSE CAST(0 AS DOUBLE) END AS unsaid_ratio
FROM grouped AS g
CROSS JOIN whole AS w
CROSS JOIN stalled AS s
