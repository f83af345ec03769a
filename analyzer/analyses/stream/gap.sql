-- Gaps between the chunks of one answer, as the client saw them. A gap is per chunk, not per token:
-- with several tokens a chunk, or a hop that holds the stream back, it is no inter-token latency.
-- grain:   one row a streamed request with at least two token chunks
-- needs:   stream_pace
-- returns: request_key BIGINT         -- the request
-- returns: gaps BIGINT                -- gaps seen
-- returns: median_gap_ns DOUBLE       -- median gap, ns
-- returns: p99_gap_ns DOUBLE          -- 99th percentile, ns
-- returns: longest_gap_ns BIGINT      -- longest, ns
SELECT request_key, gaps, median_gap_ns, p99_gap_ns, longest_gap_ns
FROM stream_pace
WHERE vantage = 'client'
