-- Attempts that a limit turned away (429, or 529 of a vendor that is full), and what that cost: the
-- operation waits from such an attempt to its next one.
-- grain:   one row an attempt that was turned away
-- needs:   resolve_request, resolve_asked, latency_segment
-- param:   apart_ns = 600000000000        -- attempts further apart than ten minutes are two operations
-- returns: request_key BIGINT             -- the attempt
-- returns: operation VARCHAR              -- the operation it is of
-- returns: start_ns BIGINT                -- its start, ns UTC
-- returns: status BIGINT                  -- HTTP status; NULL = the error class tells
-- returns: retry_after_ns BIGINT          -- wait the server asked for, ns; NULL = not told
-- returns: next_ns BIGINT                 -- start of the next attempt, ns UTC; NULL = none came
-- returns: wait_ns BIGINT                 -- until the next attempt, ns; else its own time and, unlinked, what was asked
-- returns: whole_ns BIGINT                -- the same with the next attempt's own time, ns
-- returns: is_early BOOLEAN               -- the next attempt came before it was asked to
-- returns: is_last BOOLEAN                -- no attempt followed
WITH attempts AS (
  SELECT
    r.request_key, r.start_ns, r.attempt, r.status, s.e2e_ns, a.retry_after_ns,
    coalesce(r.operation_id, concat(a.payload_hash, ' ', coalesce(r.session_id, '')), r.id) AS operation,
    r.operation_id IS NOT NULL OR a.payload_hash IS NOT NULL OR coalesce(r.attempt, 1) > 1 AS is_linked,
    r.failed AND (coalesce(r.status IN (429, 529), FALSE) OR coalesce(r.error IN (
      'rate_limited', 'rate_limit', 'rate_limit_error', 'rate_limit_exceeded', 'overloaded',
      'overloaded_error', 'http 429', 'http 529', 'throttled', 'insufficient_quota'), FALSE))
      AS is_refused
  FROM resolve_request AS r
  JOIN resolve_asked AS a ON r.request_key = a.request_key
  JOIN latency_segment AS s ON r.request_key = s.request_key
),
followed AS (
  SELECT
    *,
    lead(start_ns) OVER (PARTITION BY operation ORDER BY start_ns, attempt, request_key) AS next_ns,
    lead(e2e_ns) OVER (PARTITION BY operation ORDER BY start_ns, attempt, request_key) AS next_e2e_ns
  FROM attempts
  WHERE start_ns IS NOT NULL
),
linked AS (
  SELECT
    *,
    CASE WHEN next_ns - start_ns <= $apart_ns THEN next_ns END AS again_ns,
    CASE WHEN next_ns - start_ns <= $apart_ns THEN next_e2e_ns END AS again_e2e_ns
  FROM followed
  WHERE is_refused
),
waited AS (
  SELECT
    *,
    coalesce(again_ns - start_ns, coalesce(e2e_ns, 0)
      + CASE WHEN is_linked THEN 0 ELSE coalesce(retry_after_ns, 0) END) AS wait_ns
  FROM linked
)
SELECT
  request_key, operation, start_ns, status, retry_after_ns, again_ns AS next_ns, wait_ns,
  wait_ns + coalesce(again_e2e_ns, 0) AS whole_ns,
  coalesce(again_ns < start_ns + coalesce(e2e_ns, 0) + retry_after_ns, FALSE) AS is_early,
  again_ns IS NULL AS is_last
FROM waited
