-- Answers whose usage nobody told, though a source that saw them can tell usage: what they cost is
-- in no sum. Those that were aborted after their first token were paid for, too.
-- grain:   one row a request that was answered, at least in part
-- needs:   resolve_request, resolve_instance, resolve_told, resolve_counting, latency_segment, stream_shape
-- returns: request_key BIGINT        -- the request
-- returns: start_ns BIGINT           -- its start, ns UTC
-- returns: source VARCHAR            -- file of the outermost vantage that tells it
-- returns: model VARCHAR             -- model
-- returns: route VARCHAR             -- path taken
-- returns: streamed BOOLEAN          -- answered as a stream; NULL = not told
-- returns: output_tokens BIGINT      -- output tokens, where told
-- returns: is_aborted BOOLEAN        -- it was given up after its first token
-- returns: can_count BOOLEAN         -- one of its sources can tell usage
-- returns: is_missing BOOLEAN        -- one could, and none did
WITH seen AS (
  SELECT i.request_key, max(CASE WHEN c.can_count THEN 1 ELSE 0 END) AS sees
  FROM resolve_instance AS i
  JOIN resolve_told AS t ON i.row_id = t.row_id
  JOIN resolve_counting AS c ON t.source_id = c.source_id AND t.vantage = c.vantage
  GROUP BY i.request_key
),
answered AS (
  SELECT
    r.request_key, r.start_ns, r.source, r.model, r.route, r.streamed, h.chunks,
    coalesce(r.output_tokens, h.told_tokens) AS output_tokens,
    r.failed AS is_aborted,
    -- Beside model calls, a capture holds others, which never have a usage.
    v.sees = 1 AND (
      r.model IS NOT NULL OR r.finish_reason IS NOT NULL OR r.output_tokens IS NOT NULL
      OR coalesce(r.streamed, h.chunks > 0, FALSE)
    ) AS can_count
  FROM resolve_request AS r
  JOIN latency_segment AS s ON r.request_key = s.request_key
  JOIN seen AS v ON r.request_key = v.request_key
  LEFT JOIN stream_shape AS h ON r.request_key = h.request_key
  WHERE NOT r.failed
    OR ((r.finish_reason IN ('abort', 'cancelled') OR r.error = 'cancelled' OR r.status = 499)
      AND (s.ttft_ns IS NOT NULL OR h.chunks > 0))
)
SELECT
  request_key, start_ns, source, model, route, coalesce(streamed, CASE WHEN chunks > 0 THEN TRUE END)
    AS streamed,
  output_tokens, is_aborted, can_count, can_count AND output_tokens IS NULL AS is_missing
FROM answered
