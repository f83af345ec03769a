-- Moments at which streams stalled for one cause: stalls of a server that overlap are one moment.
-- grain:   one row a moment
-- needs:   stream_cause
-- returns: cause VARCHAR                 -- as in stream_cause
-- returns: unit VARCHAR                  -- server, as far as that is told
-- returns: start_ns BIGINT               -- first stall begins, ns UTC
-- returns: end_ns BIGINT                 -- last stall ends, ns UTC
-- returns: stalls BIGINT                 -- stalls in it
-- returns: lost_ns BIGINT                -- longest excess of one stream, ns
-- returns: tokens DOUBLE                 -- prompt tokens computed meanwhile, where told
-- returns: longest_gap_ns BIGINT         -- longest gap in it, ns
-- returns: since_ns BIGINT               -- since the start of the moment before, same cause and server, ns
WITH lined AS (
  SELECT
    *,
    max(end_ns) OVER (
      PARTITION BY cause, unit ORDER BY start_ns, request_key, nth
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS until_ns
  FROM stream_cause
),
numbered AS (
  SELECT
    *,
    SUM(CASE WHEN start_ns <= until_ns THEN 0 ELSE 1 END) OVER (
      PARTITION BY cause, unit ORDER BY start_ns, request_key, nth
    ) AS number
  FROM lined
),
moments AS (
  SELECT
    cause, unit, min(start_ns) AS start_ns, max(end_ns) AS end_ns, count(*) AS stalls,
    max(excess_ns) AS lost_ns, max(prompt_tokens) AS tokens, max(longest_gap_ns) AS longest_gap_ns
  FROM numbered
  GROUP BY cause, unit, number
)
SELECT
  *,
  start_ns - lag(start_ns) OVER (PARTITION BY cause, unit ORDER BY start_ns) AS since_ns
FROM moments
