-- What each stretch of time cost, and for how many operations: by the minute in a case of up to three
-- days, by the quarter of an hour up to thirty, by the hour beyond.
-- grain:   one row a stretch (UTC) with priced requests
-- needs:   cost_tracked, cost_request, cost_attempt, resolve_request
-- returns: start_ns BIGINT             -- its start, ns UTC
-- returns: bin_ns BIGINT               -- its length, ns
-- returns: requests BIGINT             -- priced requests
-- returns: operations DOUBLE           -- their operations, each attempt of several a part of one
-- returns: usd DECIMAL(38,15)          -- what they cost
-- returns: last_ns BIGINT              -- start of its last request, ns UTC
WITH priced AS (
  SELECT q.start_ns, c.usd, coalesce(a.attempts, 1) AS attempts
  FROM cost_tracked AS t
  JOIN cost_request AS c ON t.request_key = c.request_key
  JOIN resolve_request AS q ON t.request_key = q.request_key
  LEFT JOIN cost_attempt AS a ON t.request_key = a.request_key
  WHERE t.is_metered AND c.usd IS NOT NULL AND q.start_ns IS NOT NULL
),
width AS (
  SELECT
    CASE
      WHEN max(start_ns) - min(start_ns) > 2592000000000000 THEN 3600000000000
      WHEN max(start_ns) - min(start_ns) > 259200000000000 THEN 900000000000
      ELSE 60000000000
    END AS bin_ns
  FROM priced
)
SELECT
  CAST(p.start_ns - p.start_ns % w.bin_ns AS BIGINT) AS start_ns,
  CAST(w.bin_ns AS BIGINT) AS bin_ns,
  count(*) AS requests,
  round(sum(1.0 / p.attempts), 9) AS operations,
  CAST(sum(p.usd) AS DECIMAL(38,15)) AS usd,
  max(p.start_ns) AS last_ns
FROM priced AS p
CROSS JOIN width AS w
GROUP BY p.start_ns - p.start_ns % w.bin_ns, w.bin_ns
