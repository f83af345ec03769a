-- The linear law of each group: e2e = base + step x output tokens, the base itself linear in the
-- uncached prompt, the step in the context where the data supports it. Fitted to a sample that is
-- spread over time, outliers cut; where the law does not hold, refused says why.
-- grain:   one row a model and route
-- needs:   resolve_request, latency_segment
-- param:   points = 400                 -- answers of a group that are fitted
-- python:  law -- a robust fit of several columns is no aggregate
-- returns: model VARCHAR                -- model; empty = not told
-- returns: route VARCHAR                -- path taken; empty = not told
-- returns: requests BIGINT              -- answers with an end-to-end time and output tokens
-- returns: points BIGINT                -- of them, fitted
-- returns: refused VARCHAR              -- why the law is not told; NULL = it holds
-- returns: base_ns DOUBLE               -- b at the median uncached prompt, ns
-- returns: base_low_ns DOUBLE           -- lower edge of its 90 % interval, ns
-- returns: base_high_ns DOUBLE          -- upper edge, ns
-- returns: step_ns DOUBLE               -- k at the median context, ns
-- returns: step_low_ns DOUBLE           -- lower edge of its 90 % interval, ns
-- returns: step_high_ns DOUBLE          -- upper edge, ns
-- returns: prompt_ns DOUBLE             -- what an uncached prompt token adds to b, ns; NULL = not seen
-- returns: context_ns DOUBLE            -- what a token of context adds to k, ns; NULL = not seen
-- returns: fresh_tokens DOUBLE          -- median uncached prompt
-- returns: context_tokens DOUBLE        -- median context in the middle of an answer
-- returns: output_tokens DOUBLE         -- median output
-- returns: off_ns DOUBLE                -- median distance of an answer from the law, ns
-- returns: explained DOUBLE             -- share of the scatter of e2e that the law explains, 0 to 1
WITH told AS (
  SELECT
    r.request_key, coalesce(r.model, '') AS model, coalesce(r.route, '') AS route, r.start_ns,
    s.e2e_ns, r.output_tokens,
    r.input_fresh_tokens + coalesce(r.cache_write_tokens, 0) AS fresh_tokens, r.input_tokens
  FROM resolve_request AS r
  JOIN latency_segment AS s ON r.request_key = s.request_key
  WHERE s.e2e_ns > 0 AND r.output_tokens > 0 AND NOT r.failed
),
counted AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY model, route ORDER BY start_ns NULLS LAST, request_key) AS nth,
    count(*) OVER (PARTITION BY model, route) AS requests
  FROM told
)
SELECT model, route, requests, e2e_ns, output_tokens, fresh_tokens, input_tokens
FROM counted
WHERE nth * $points % requests < $points
ORDER BY model, route, nth
