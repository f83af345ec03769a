-- Every latency number of every request in one long table, for statistics by any group.
-- grain:   one row a request and metric that it has
-- needs:   latency_segment, latency_token, latency_outside, stream_gap
-- returns: request_key BIGINT      -- the request
-- returns: metric VARCHAR          -- e2e, ttft, queue, ... ; itl is per chunk
-- returns: value_ns DOUBLE         -- the value, ns; NULL where it is not known
-- returns: grade VARCHAR           -- measured, derived or absent
SELECT request_key, 'queue' AS metric, CAST(queue_ns AS DOUBLE) AS value_ns, queue_grade AS grade
FROM latency_segment
UNION ALL
SELECT request_key, 'prefill', CAST(prefill_ns AS DOUBLE), prefill_grade FROM latency_segment
UNION ALL
SELECT request_key, 'decode', CAST(decode_ns AS DOUBLE), decode_grade FROM latency_segment
UNION ALL
SELECT request_key, 'network', CAST(network_ns AS DOUBLE), network_grade FROM latency_segment
UNION ALL
SELECT
  request_key, 'unattributed', CAST(unattributed_ns AS DOUBLE),
  CASE WHEN unattributed_ns IS NULL THEN 'absent' ELSE 'derived' END
FROM latency_segment
UNION ALL
SELECT
  request_key, 'e2e', CAST(e2e_ns AS DOUBLE),
  CASE WHEN e2e_ns IS NULL THEN 'absent' ELSE 'measured' END
FROM latency_segment
UNION ALL
SELECT
  request_key, 'ttft', CAST(ttft_ns AS DOUBLE),
  CASE WHEN ttft_ns IS NULL THEN 'absent' ELSE 'measured' END
FROM latency_segment
UNION ALL
SELECT
  request_key, 'tpot', tpot_ns, CASE WHEN tpot_ns IS NULL THEN 'absent' ELSE 'derived' END
FROM latency_token
UNION ALL
SELECT
  s.request_key, 'itl', CASE WHEN coalesce(o.is_held, FALSE) THEN NULL ELSE g.median_gap_ns END,
  -- The gaps of an answer that was held back measure the buffer.
  CASE WHEN g.median_gap_ns IS NULL OR coalesce(o.is_held, FALSE) THEN 'absent' ELSE 'measured' END
FROM latency_segment AS s
LEFT JOIN stream_gap AS g ON s.request_key = g.request_key
LEFT JOIN latency_outside AS o ON s.request_key = o.request_key
