-- Gaps between the chunks of one answer, as the client saw them. A gap is per chunk, not per token:
-- with several tokens a chunk, or a hop that holds the stream back, it is no inter-token latency.
-- grain:   one row a streamed request with at least two token chunks
-- needs:   resolve_instance, resolve_told, resolve_request, chunk
-- returns: request_key BIGINT         -- the request
-- returns: gaps BIGINT                -- gaps seen
-- returns: median_gap_ns DOUBLE       -- median gap, ns
-- returns: p99_gap_ns DOUBLE          -- 99th percentile, ns
-- returns: longest_gap_ns BIGINT      -- longest, ns
WITH stamped AS (
  SELECT
    i.request_key, c.source_id, c.record,
    c.offset_ns - lag(c.offset_ns) OVER (
      PARTITION BY c.source_id, c.record ORDER BY c.offset_ns, c.chunk_index
    ) AS gap_ns
  FROM chunk AS c
  JOIN resolve_told AS t
    ON c.source_id = t.source_id AND c.record = t.record AND t.vantage = 'client'
  JOIN resolve_instance AS i ON t.row_id = i.row_id
  WHERE c.kind <> 'role' AND coalesce(c.chars, 1) + coalesce(c.tokens, 0) > 0
)
SELECT
  g.request_key,
  count(g.gap_ns) AS gaps,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY g.gap_ns) AS median_gap_ns,
  percentile_cont(0.99) WITHIN GROUP (ORDER BY g.gap_ns) AS p99_gap_ns,
  max(g.gap_ns) AS longest_gap_ns
FROM stamped AS g
JOIN resolve_request AS r ON g.request_key = r.request_key
WHERE g.gap_ns IS NOT NULL
GROUP BY g.request_key
