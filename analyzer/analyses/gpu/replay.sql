-- Kernels that the trace holds of each replay of a graph. A replay with clearly fewer than others of
-- its graph is recorded in part. Where graphs are not told apart, the n-th replay of a step is held
-- against the n-th of other steps with as many; the usual count is what most agree on, or what those
-- in one stretch have, for records are lost from some time on.
-- grain:   one row a launch of a graph
-- needs:   gpu_launch, gpu_work
-- param:   partly = 0.9                  -- of the usual kernels: fewer were lost, and not left out
-- param:   clearly = 0.5                 -- of the most: fewer is no other batch of the same model
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: correlation BIGINT            -- its launch
-- returns: mark BIGINT                   -- step annotation around it
-- returns: start_ns BIGINT               -- begin of the call, ns by the trace's clock
-- returns: end_ns BIGINT                 -- end of the call, ns
-- returns: kernels BIGINT                -- device work of it that was recorded
-- returns: usual BIGINT                  -- as many have most replays of this graph; NULL = not told
-- returns: is_covered BOOLEAN            -- recorded, and not in part only
-- returns: is_late BOOLEAN               -- launched behind work that filled the device until the record ended
WITH replay AS (
  SELECT
    l.*,
    coalesce(
      l.graph_id,
      -row_number() OVER (PARTITION BY l.rank_key, l.mark, l.graph_id ORDER BY l.start_ns, l.correlation)
      - 1000000 * count(*) OVER (PARTITION BY l.rank_key, l.mark, l.graph_id)
    ) AS graph
  FROM gpu_launch AS l
  WHERE l.is_graph
),
-- One row for a whole replay is no count of its kernels.
opaque AS (
  SELECT rank_key, correlation FROM gpu_work WHERE kind = 'graph' GROUP BY rank_key, correlation
),
counted AS (
  SELECT
    r.rank_key, r.graph, r.start_ns, r.correlation, r.work,
    r.work >= $clearly * max(r.work) OVER (PARTITION BY r.rank_key, r.graph) AS is_full
  FROM replay AS r
  LEFT JOIN opaque AS o ON r.rank_key = o.rank_key AND r.correlation = o.correlation
  WHERE r.work > 0 AND o.correlation IS NULL AND (r.mark IS NOT NULL OR r.graph_id IS NOT NULL)
),
turned AS (
  SELECT
    c.*,
    is_full <> lag(is_full) OVER (PARTITION BY rank_key, graph ORDER BY start_ns, correlation) AS turns
  FROM counted AS c
),
middle AS (
  SELECT
    rank_key, graph, percentile_cont(0.5) WITHIN GROUP (ORDER BY work) AS usual,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY CASE WHEN is_full THEN work END) AS whole,
    count(CASE WHEN turns THEN 1 END) BETWEEN 1 AND 2 AND count(CASE WHEN is_full THEN 1 END) >= 2
      AS is_stretch
  FROM turned
  GROUP BY rank_key, graph
),
agreed AS (
  SELECT c.rank_key, c.graph, CASE WHEN m.is_stretch THEN m.whole ELSE m.usual END AS usual
  FROM counted AS c
  JOIN middle AS m ON c.rank_key = m.rank_key AND c.graph = m.graph
  GROUP BY c.rank_key, c.graph, m.is_stretch, m.whole, m.usual
  HAVING m.is_stretch OR 2 * count(CASE WHEN c.work = m.usual THEN 1 END) > count(*)
)
SELECT
  r.rank_key, r.correlation, r.mark, r.start_ns, r.end_ns, r.work AS kernels,
  CAST(round(a.usual) AS BIGINT) AS usual,
  r.work > 0 AND (o.correlation IS NOT NULL OR r.work >= $partly * coalesce(a.usual, 0)) AS is_covered,
  r.is_late
FROM replay AS r
LEFT JOIN opaque AS o ON r.rank_key = o.rank_key AND r.correlation = o.correlation
LEFT JOIN agreed AS a ON r.rank_key = a.rank_key AND r.graph = a.graph
