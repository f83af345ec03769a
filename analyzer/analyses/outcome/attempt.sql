-- Each attempt of each operation: how it ended, and what it cost where it failed. An operation is
-- what its caller wanted: it lasts from the first attempt's start to the last one's end.
-- grain:   one row a request (attempt)
-- needs:   resolve_request, resolve_operation, latency_segment, stream_shape
-- returns: request_key BIGINT           -- the request
-- returns: operation VARCHAR            -- what its attempts have in common
-- returns: nth BIGINT                   -- which of the operation's attempts, from 1
-- returns: attempts BIGINT              -- attempts of the operation
-- returns: start_ns BIGINT              -- its start, ns UTC
-- returns: e2e_ns BIGINT                -- end to end, ns
-- returns: wait_ns BIGINT               -- since the end of the attempt before it, ns; NULL for the first
-- returns: is_known BOOLEAN             -- its outcome is told
-- returns: failed BOOLEAN               -- it ended in an error, a timeout or an abort
-- returns: class VARCHAR                -- timeout, abort, rate limit, server, connection, refused or error; NULL = did not fail
-- returns: name VARCHAR                 -- the failure as the log names it
-- returns: lost_ns BIGINT               -- time it took for nothing, ns
-- returns: lost_output_tokens BIGINT    -- output it had got, told or one a chunk
-- returns: lost_input_tokens BIGINT     -- prompt tokens it had sent, where told
WITH asked AS (
  SELECT
    r.request_key,
    coalesce(o.operation, concat('#', CAST(r.request_key AS VARCHAR))) AS operation,
    r.start_ns, s.e2e_ns, r.start_ns + coalesce(s.e2e_ns, 0) AS end_ns, r.attempt,
    r.failed OR r.status IS NOT NULL OR r.error IS NOT NULL OR r.finish_reason IS NOT NULL
      AS is_known,
    r.failed, r.status, r.error, r.finish_reason, r.input_tokens,
    coalesce(r.output_tokens, h.told_tokens, h.chunks) AS output_tokens
  FROM resolve_request AS r
  JOIN latency_segment AS s ON r.request_key = s.request_key
  LEFT JOIN stream_shape AS h ON r.request_key = h.request_key
  LEFT JOIN resolve_operation AS o ON r.request_key = o.request_key
),
ordered AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY operation ORDER BY start_ns NULLS LAST, attempt NULLS LAST, request_key
    ) AS nth,
    count(*) OVER (PARTITION BY operation) AS attempts,
    lag(end_ns) OVER (
      PARTITION BY operation ORDER BY start_ns NULLS LAST, attempt NULLS LAST, request_key
    ) AS before_ns
  FROM asked
),
named AS (
  SELECT
    *,
    CASE WHEN failed THEN coalesce(
      error, CASE WHEN status >= 400 THEN concat('http ', CAST(status AS VARCHAR)) END,
      finish_reason, 'error'
    ) END AS name
  FROM ordered
)
SELECT
  request_key, operation, nth, attempts, start_ns, e2e_ns,
  CASE WHEN start_ns >= before_ns THEN start_ns - before_ns WHEN before_ns IS NOT NULL THEN 0 END
    AS wait_ns,
  is_known, failed,
  CASE
    WHEN NOT failed THEN NULL
    WHEN name LIKE '%connect%' OR name LIKE '%unreachable%' OR name LIKE '%reset%' THEN 'connection'
    WHEN name LIKE '%time%out%' OR name LIKE '%timed out%' OR name LIKE '%504%' OR name LIKE '%408%'
      OR status IN (408, 504) THEN 'timeout'
    WHEN name LIKE '%cancel%' OR name LIKE '%abort%' OR name LIKE '%499%' OR status IN (460, 499)
      THEN 'abort'
    WHEN status IN (429, 529) OR name LIKE '%rate%limit%' OR name LIKE '%429%' OR name LIKE '%529%'
      OR name LIKE '%overloaded%' THEN 'rate limit'
    WHEN status >= 500 OR name LIKE 'http 5%' OR name LIKE '%upstream%' OR name LIKE '%unavailable%'
      THEN 'server'
    WHEN status >= 400 OR name LIKE 'http 4%' OR name LIKE '%context%' OR name LIKE '%invalid%'
      THEN 'refused'
    ELSE 'error'
  END AS class,
  name,
  CASE WHEN failed THEN e2e_ns END AS lost_ns,
  CASE WHEN failed THEN output_tokens END AS lost_output_tokens,
  CASE WHEN failed THEN input_tokens END AS lost_input_tokens
FROM named
