-- What stalls cost each request, by cause.
-- grain:   one row a request and cause
-- needs:   resolve_request, stream_cause, latency_segment
-- param:   least_ns = 100000000          -- what costs less is no finding
-- param:   share = 0.05                  -- nor what costs less than this share of the request; being put out is an event however short
-- param:   much_ns = 1000000000          -- unless it is this much
-- param:   notice_ns = 250000000         -- longest stall by prompts of others that is only what sharing steps costs
-- returns: request_key BIGINT            -- the request
-- returns: cause VARCHAR                 -- as in stream_cause
-- returns: stalls BIGINT                 -- stalls
-- returns: excess_ns BIGINT              -- what they cost together, ns
-- returns: whole_ns BIGINT               -- the request end to end, or until its last token, ns
-- returns: again_tokens BIGINT           -- tokens that had to be computed again if each stall was a preemption, at most
-- returns: lacks VARCHAR                 -- what would tell the cause, where it is not known
-- returns: matters BOOLEAN               -- it costs enough to speak of
WITH summed AS (
  SELECT
    c.request_key, c.cause,
    count(*) AS stalls,
    CAST(SUM(c.excess_ns) AS BIGINT) AS excess_ns,
    max(c.excess_ns) AS longest_ns,
    coalesce(max(s.e2e_ns), CAST(SUM(c.end_ns - c.start_ns) AS BIGINT)) AS whole_ns,
    CAST(SUM(r.input_tokens + c.tokens_before) AS BIGINT) AS again_tokens,
    max_by(c.lacks, 1000 * c.excess_ns + c.nth) AS lacks
  FROM stream_cause AS c
  JOIN latency_segment AS s ON c.request_key = s.request_key
  JOIN resolve_request AS r ON c.request_key = r.request_key
  GROUP BY c.request_key, c.cause
)
SELECT
  request_key, cause, stalls, excess_ns, whole_ns, again_tokens, lacks,
  excess_ns >= $least_ns AND (
      excess_ns >= $share * whole_ns OR excess_ns >= $much_ns OR cause = 'preemption'
    )
    AND (cause <> 'prefill' OR longest_ns > $notice_ns) AS matters
FROM summed
