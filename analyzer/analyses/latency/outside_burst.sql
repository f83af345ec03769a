-- Streamed answers whose tokens all came at once, where no other log tells when the server made them.
-- No model makes tokens that fast: something collected them, a hop, the server itself or a client that
-- read late; where the client's heartbeats say so, nothing is said of a hop. What that cost is estimated
-- from the answers that did flow, if there are any.
-- grain:   one row a streamed answer of which the server's side is not told
-- needs:   resolve_request, latency_segment, latency_token, latency_outside, stream_blocked
-- param:   token_ns = 200000           -- the fastest hardware that serves takes longer for a token
-- param:   flowing_ns = 2000000        -- an answer slower than this a token flows
-- param:   few_tokens = 16             -- a smaller answer fits one packet
-- param:   few_chunks = 8              -- and one of few chunks may have been sent in few
-- param:   mostly = 0.5                -- of a route's slow ways: fewer bursts are what a path does that varies so much
-- param:   blocked_share = 0.5         -- of the time to first token that the client's own block makes up
-- returns: request_key BIGINT          -- the request
-- returns: start_ns BIGINT             -- its start, ns UTC
-- returns: route VARCHAR               -- path taken
-- returns: e2e_ns BIGINT               -- end to end, ns
-- returns: ttft_ns BIGINT              -- first token at the client, ns
-- returns: arrival_ns BIGINT           -- first to last token at the client, ns
-- returns: chunks BIGINT               -- chunks that carried tokens
-- returns: pace_ns DOUBLE              -- time a token of this model's answers that flow, ns; NULL = none
-- returns: held_ns BIGINT              -- about how long the first token was held back, ns
-- returns: is_burst BOOLEAN            -- all tokens came at once
WITH seen AS (
  SELECT
    s.request_key, r.start_ns, r.route, r.model, r.output_tokens, s.e2e_ns, s.ttft_ns, t.arrival_ns,
    t.chunks,
    CAST(t.arrival_ns AS DOUBLE)
      / CASE WHEN r.output_tokens > 1 THEN r.output_tokens - 1 END AS token_ns,
    s.held_ns, r.inner_vantage, coalesce(o.is_held, FALSE) AS is_held,
    coalesce(b.blocked_ns >= $blocked_share * s.ttft_ns, FALSE) AS is_blocked
  FROM latency_segment AS s
  JOIN resolve_request AS r ON s.request_key = r.request_key
  JOIN latency_token AS t ON s.request_key = t.request_key
  LEFT JOIN latency_outside AS o ON s.request_key = o.request_key
  LEFT JOIN stream_blocked AS b ON s.request_key = b.request_key
  WHERE t.arrival_ns IS NOT NULL AND r.streamed AND r.output_tokens >= $few_tokens
    AND NOT r.failed AND t.chunks >= $few_chunks
),
paces AS (
  SELECT coalesce(model, '') AS model,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY token_ns) AS pace_ns
  FROM seen
  WHERE token_ns >= $flowing_ns
  GROUP BY coalesce(model, '')
),
slow_ways AS (
  SELECT coalesce(route, '') AS route, count(*) AS requests
  FROM latency_outside
  WHERE is_long
  GROUP BY coalesce(route, '')
),
judged AS (
  SELECT
    s.*, coalesce(w.requests, 0) AS slow_ways,
    s.token_ns <= $token_ns AND NOT s.is_blocked AS at_once,
    SUM(CASE WHEN s.token_ns <= $token_ns AND NOT s.is_blocked THEN 1 ELSE 0 END)
      OVER (PARTITION BY s.route) AS at_once_of_route
  FROM seen AS s
  LEFT JOIN slow_ways AS w ON coalesce(s.route, '') = w.route
  WHERE NOT s.is_held AND (s.held_ns IS NULL OR s.inner_vantage IN ('client', 'gateway'))
),
bursts AS (
  SELECT *, at_once AND at_once_of_route >= $mostly * slow_ways AS is_burst FROM judged
)
SELECT
  s.request_key, s.start_ns, s.route, s.e2e_ns, s.ttft_ns, s.arrival_ns, s.chunks, p.pace_ns,
  CASE WHEN s.is_burst AND p.pace_ns IS NOT NULL
    THEN least(s.ttft_ns, CAST(round((s.output_tokens - 1) * p.pace_ns) AS BIGINT)) END AS held_ns,
  s.is_burst
FROM bursts AS s
LEFT JOIN paces AS p ON coalesce(s.model, '') = p.model
