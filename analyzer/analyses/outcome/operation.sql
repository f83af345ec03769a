-- Each operation over its attempts: what its caller waited, and how much of it was for nothing.
-- grain:   one row an operation
-- needs:   outcome_attempt
-- returns: operation VARCHAR          -- what its attempts have in common
-- returns: attempts BIGINT            -- attempts
-- returns: failures BIGINT            -- of them failed
-- returns: start_ns BIGINT            -- start of the first attempt, ns UTC
-- returns: latency_ns BIGINT          -- to the end of the last, ns
-- returns: lost_ns BIGINT             -- in attempts that failed, ns
-- returns: wait_ns BIGINT             -- between attempts, ns
-- returns: answered BOOLEAN           -- its last attempt did not fail
SELECT
  operation,
  count(*) AS attempts,
  count(*) FILTER (WHERE failed) AS failures,
  min(start_ns) AS start_ns,
  max(start_ns + e2e_ns) - min(start_ns) AS latency_ns,
  CAST(coalesce(SUM(lost_ns), 0) AS BIGINT) AS lost_ns,
  CAST(coalesce(SUM(wait_ns), 0) AS BIGINT) AS wait_ns,
  max(CASE WHEN nth = attempts AND NOT failed THEN 1 ELSE 0 END) = 1 AS answered
FROM outcome_attempt
GROUP BY operation
