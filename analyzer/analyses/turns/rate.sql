-- What a prompt token outside the cache adds to the time to first token, by the requests of the case:
-- the median slope between requests with short and with long uncached prompts, at equal routes.
-- grain:   one row a model and route with a time to first token
-- needs:   resolve_request, latency_segment
-- param:   points = 600                 -- requests of a group that are looked at, spread over its time
-- python:  rate -- a median of slopes is no aggregate
-- returns: model VARCHAR                -- model; empty = not told
-- returns: route VARCHAR                -- path taken; empty = not told
-- returns: points BIGINT                -- requests looked at
-- returns: token_ns DOUBLE              -- added by a token, ns; NULL = not seen
-- returns: token_low_ns DOUBLE          -- lower quartile of the slopes, ns
-- returns: token_high_ns DOUBLE         -- upper quartile, ns
-- returns: refused VARCHAR              -- why it is not seen; NULL = it is
WITH told AS (
  SELECT
    coalesce(q.model, '') AS model, coalesce(q.route, '') AS route,
    q.input_fresh_tokens + coalesce(q.cache_write_tokens, 0) AS fresh_tokens,
    CASE WHEN s.prefill_ns IS NOT NULL AND s.prefill_grade = 'measured' THEN s.prefill_ns
      ELSE s.ttft_ns - coalesce(s.queue_ns, 0) END AS first_ns,
    row_number() OVER (
      PARTITION BY coalesce(q.model, ''), coalesce(q.route, '')
      ORDER BY q.start_ns NULLS LAST, q.request_key
    ) AS nth,
    count(*) OVER (PARTITION BY coalesce(q.model, ''), coalesce(q.route, '')) AS requests
  FROM resolve_request AS q
  JOIN latency_segment AS s ON q.request_key = s.request_key
  WHERE q.input_fresh_tokens IS NOT NULL AND NOT q.failed
    AND (s.ttft_ns IS NOT NULL OR s.prefill_ns IS NOT NULL)
)
SELECT model, route, fresh_tokens, first_ns
FROM told
WHERE nth * $points % requests < $points AND first_ns >= 0
ORDER BY model, route, fresh_tokens, first_ns
