-- Kernels that the trace holds of each replay of a graph. A replay with clearly fewer than others of
-- its graph is recorded in part. Where graphs are not told apart, the n-th replay of a step is held
-- against the n-th of others, and that is said only if most agree.
-- grain:   one row a launch of a graph
-- needs:   gpu_launch, gpu_work
-- param:   partly = 0.9                  -- of the usual kernels: fewer were lost, and not left out
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: correlation BIGINT            -- its launch
-- returns: mark BIGINT                   -- step annotation around it
-- returns: start_ns BIGINT               -- begin of the call, ns by the trace's clock
-- returns: end_ns BIGINT                 -- end of the call, ns
-- returns: kernels BIGINT                -- device work of it that was recorded
-- returns: usual BIGINT                  -- as many have most replays of this graph; NULL = not told
-- returns: is_covered BOOLEAN            -- recorded, and not in part only
WITH replay AS (
  SELECT
    l.*,
    coalesce(
      l.graph_id,
      -row_number() OVER (PARTITION BY l.rank_key, l.mark, l.graph_id ORDER BY l.start_ns, l.correlation)
    ) AS graph
  FROM gpu_launch AS l
  WHERE l.is_graph
),
-- One row for a whole replay is no count of its kernels.
opaque AS (
  SELECT rank_key, correlation FROM gpu_work WHERE kind = 'graph' GROUP BY rank_key, correlation
),
middle AS (
  SELECT
    r.rank_key, r.graph, count(*) AS replays, percentile_cont(0.5) WITHIN GROUP (ORDER BY r.work) AS usual
  FROM replay AS r
  LEFT JOIN opaque AS o ON r.rank_key = o.rank_key AND r.correlation = o.correlation
  WHERE r.work > 0 AND o.correlation IS NULL AND (r.mark IS NOT NULL OR r.graph_id IS NOT NULL)
  GROUP BY r.rank_key, r.graph
),
agreed AS (
  SELECT m.rank_key, m.graph, min(m.usual) AS usual
  FROM replay AS r
  JOIN middle AS m ON r.rank_key = m.rank_key AND r.graph = m.graph
  WHERE r.work > 0
  GROUP BY m.rank_key, m.graph
  HAVING 2 * count(CASE WHEN r.work = m.usual THEN 1 END) > count(*)
)
SELECT
  r.rank_key, r.correlation, r.mark, r.start_ns, r.end_ns, r.work AS kernels,
  CAST(round(a.usual) AS BIGINT) AS usual,
  r.work > 0 AND (o.correlation IS NOT NULL OR r.work >= $partly * coalesce(a.usual, 0)) AS is_covered
FROM replay AS r
LEFT JOIN opaque AS o ON r.rank_key = o.rank_key AND r.correlation = o.correlation
LEFT JOIN agreed AS a ON r.rank_key = a.rank_key AND r.graph = a.graph
