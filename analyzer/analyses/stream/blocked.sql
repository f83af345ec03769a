-- First tokens that came late because the client's loop was blocked: they lay in its sockets until then.
-- grain:   one row a request whose first token came while its client was blocked, or right behind that
-- needs:   resolve_request, latency_segment, stream_silence
-- param:   read_ns = 50000000          -- right behind: what had piled up is read
-- returns: request_key BIGINT          -- the request
-- returns: blocked_ns BIGINT           -- it was kept from its first token, ns; at most
WITH blocks AS (
  SELECT begin_ns, end_ns, end_ns - excess_ns AS due_ns
  FROM stream_silence
  WHERE side = 'client'
),
moments AS (
  SELECT
    begin_ns AS at_ns, begin_ns, end_ns, due_ns, CAST(NULL AS BIGINT) AS request_key,
    CAST(NULL AS BIGINT) AS start_ns
  FROM blocks
  UNION ALL
  SELECT r.start_ns + s.ttft_ns, NULL, NULL, NULL, s.request_key, r.start_ns
  FROM latency_segment AS s
  JOIN resolve_request AS r ON s.request_key = r.request_key
  WHERE s.ttft_vantage = 'client' AND r.start_ns IS NOT NULL
    AND (SELECT count(*) FROM blocks) > 0
),
-- The last block that began before each first token.
swept AS (
  SELECT
    request_key, at_ns, start_ns, max(begin_ns) OVER by_time AS begin_ns,
    max(end_ns) OVER by_time AS end_ns, max(due_ns) OVER by_time AS due_ns
  FROM moments
  WINDOW by_time AS (ORDER BY at_ns, begin_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
SELECT request_key, least(at_ns - greatest(begin_ns, start_ns), end_ns - due_ns) AS blocked_ns
FROM swept
WHERE request_key IS NOT NULL AND at_ns <= end_ns + $read_ns AND at_ns > start_ns
