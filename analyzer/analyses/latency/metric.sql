-- Every latency number of every request in one long table, for statistics by any group. A provider's
-- record that is the bill of logged calls is no second call: where the logs tell durations, it is left
-- out.
-- grain:   one row a request and metric that it has
-- needs:   latency_segment, latency_token, latency_outside, resolve_on_bill, stream_gap
-- returns: request_key BIGINT      -- the request
-- returns: metric VARCHAR          -- e2e, ttft, queue, ... ; itl is per chunk
-- returns: value_ns DOUBLE         -- the value, ns; NULL where it is not known
-- returns: grade VARCHAR           -- measured, derived or absent
WITH told AS (
  SELECT s.*, coalesce(b.is_logged, TRUE) AS is_logged
  FROM latency_segment AS s
  LEFT JOIN resolve_on_bill AS b ON s.request_key = b.request_key
),
kept AS (
  SELECT t.*
  FROM told AS t
  CROSS JOIN (
    SELECT count(*) AS durations FROM told WHERE is_logged AND e2e_ns IS NOT NULL
  ) AS l
  WHERE t.is_logged OR l.durations = 0
)
SELECT request_key, 'queue' AS metric, CAST(queue_ns AS DOUBLE) AS value_ns, queue_grade AS grade
FROM kept
UNION ALL
SELECT request_key, 'prefill', CAST(prefill_ns AS DOUBLE), prefill_grade FROM kept
UNION ALL
SELECT request_key, 'decode', CAST(decode_ns AS DOUBLE), decode_grade FROM kept
UNION ALL
SELECT request_key, 'network', CAST(network_ns AS DOUBLE), network_grade FROM kept
UNION ALL
SELECT
  request_key, 'unattributed', CAST(unattributed_ns AS DOUBLE),
  CASE WHEN unattributed_ns IS NULL THEN 'absent' ELSE 'derived' END
FROM kept
UNION ALL
SELECT
  request_key, 'e2e', CAST(e2e_ns AS DOUBLE),
  CASE WHEN e2e_ns IS NULL THEN 'absent' ELSE 'measured' END
FROM kept
UNION ALL
SELECT
  request_key, 'ttft', CAST(ttft_ns AS DOUBLE),
  CASE WHEN ttft_ns IS NULL THEN 'absent' ELSE 'measured' END
FROM kept
UNION ALL
SELECT
  s.request_key, 'tpot', t.tpot_ns, CASE WHEN t.tpot_ns IS NULL THEN 'absent' ELSE 'derived' END
FROM kept AS s
JOIN latency_token AS t ON s.request_key = t.request_key
UNION ALL
SELECT
  s.request_key, 'itl', CASE WHEN coalesce(o.is_held, FALSE) THEN NULL ELSE g.median_gap_ns END,
  -- The gaps of an answer that was held back measure the buffer.
  CASE WHEN g.median_gap_ns IS NULL OR coalesce(o.is_held, FALSE) THEN 'absent' ELSE 'measured' END
FROM kept AS s
LEFT JOIN stream_gap AS g ON s.request_key = g.request_key
LEFT JOIN latency_outside AS o ON s.request_key = o.request_key
