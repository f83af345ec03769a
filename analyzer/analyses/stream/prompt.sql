-- When the prompt of each request was in work, on the clock of the streams. Its end is the first
-- token; where no prefill time is told, it may have begun with the request.
-- grain:   one row a request with a first token
-- needs:   resolve_request, resolve_vantage, latency_segment, stream_pace, stream_server
-- returns: request_key BIGINT            -- the request
-- returns: unit VARCHAR                  -- its server, as far as that is told
-- returns: begin_ns BIGINT               -- prompt in work from here on, at the earliest, ns UTC
-- returns: end_ns BIGINT                 -- first token, ns UTC
-- returns: tokens BIGINT                 -- prompt tokens that had to be computed, at most; NULL = not told
-- returns: is_stated BOOLEAN             -- a source states the prefill time
WITH placed AS (
  SELECT
    r.request_key, v.unit,
    r.input_tokens - coalesce(r.cache_read_tokens, 0) AS tokens,
    coalesce(
      p.first_ns, c.start_ns + c.ttft_ns, q.first_ns + v.shift_ns, e.start_ns + e.ttft_ns + v.shift_ns,
      e.start_ns + e.queue_ns + e.prefill_ns + v.shift_ns, r.start_ns + s.ttft_ns
    ) AS end_ns,
    s.prefill_ns,
    coalesce(s.ttft_ns, e.ttft_ns) AS ttft_ns
  FROM resolve_request AS r
  JOIN latency_segment AS s ON r.request_key = s.request_key
  JOIN stream_server AS v ON coalesce(r.deployment, '') = v.deployment
  LEFT JOIN resolve_vantage AS c ON r.request_key = c.request_key AND c.vantage = 'client'
  LEFT JOIN resolve_vantage AS e ON r.request_key = e.request_key AND e.vantage = 'engine'
  LEFT JOIN stream_pace AS p ON r.request_key = p.request_key AND p.vantage = 'client'
  LEFT JOIN stream_pace AS q ON r.request_key = q.request_key AND q.vantage = 'engine'
)
SELECT
  request_key, unit,
  end_ns - coalesce(prefill_ns, ttft_ns) AS begin_ns,
  end_ns, tokens,
  prefill_ns IS NOT NULL AS is_stated
FROM placed
WHERE end_ns IS NOT NULL AND coalesce(prefill_ns, ttft_ns) > 0
