-- Annotated steps of host threads: the outermost ones, of the kind nearest to the engine that the
-- rank has.
-- grain:   one row a step annotation
-- needs:   resolve_gpu_host, gpu_annotation
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: mark BIGINT                   -- number within the rank, in order of time
-- returns: pid BIGINT                    -- process
-- returns: tid BIGINT                    -- thread
-- returns: name VARCHAR                  -- annotation
-- returns: start_ns BIGINT               -- begin on the host, ns by the trace's clock
-- returns: end_ns BIGINT                 -- end on the host, ns
WITH told AS (
  SELECT h.rank_key, h.record, h.pid, h.tid, h.name, h.start_ns, h.end_ns, a.nearness
  FROM resolve_gpu_host AS h
  JOIN gpu_annotation AS a ON h.name = a.name
  WHERE h.kind = 'annotation' AND a.nearness IS NOT NULL AND h.end_ns > h.start_ns
),
nearest AS (
  SELECT rank_key, min(nearness) AS nearness FROM told GROUP BY rank_key
),
nested AS (
  SELECT
    t.*,
    max(t.end_ns) OVER (
      PARTITION BY t.rank_key, t.pid, t.tid ORDER BY t.start_ns, t.end_ns DESC, t.record
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before_ns
  FROM told AS t
  JOIN nearest AS n ON t.rank_key = n.rank_key AND t.nearness = n.nearness
)
SELECT
  rank_key, row_number() OVER (PARTITION BY rank_key ORDER BY start_ns, record) AS mark, pid, tid, name,
  start_ns, end_ns
FROM nested
WHERE before_ns IS NULL OR start_ns >= before_ns
