-- Calls that give a device work, each once, the step whose annotation encloses it on its own thread,
-- and what came of it on the device. A graph's launch has all kernels of the replay. Work runs in the
-- order of its launches: where the device was at work on earlier ones until the record ended, what was
-- launched after those is beyond the record, and nothing of it was lost.
-- grain:   one row a launch: rank and correlation
-- needs:   resolve_gpu_host, resolve_gpu_rank, resolve_gpu_work, gpu_mark
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: correlation BIGINT            -- joins it with device work
-- returns: is_graph BOOLEAN              -- it replays a graph
-- returns: is_kernel BOOLEAN             -- it launches kernels: a graph or a kernel, no copy or set
-- returns: pid BIGINT                    -- process
-- returns: tid BIGINT                    -- thread
-- returns: start_ns BIGINT               -- begin of the call, ns by the trace's clock
-- returns: end_ns BIGINT                 -- end of the call, ns
-- returns: mark BIGINT                   -- step annotation around it; NULL = none
-- returns: quiet_ns BIGINT               -- since the thread's launch before ended, ns; NULL = its first
-- returns: work BIGINT                   -- kernels, copies and sets that came of it
-- returns: graph_id BIGINT               -- graph, where its kernels tell
-- returns: first_ns BIGINT               -- begin of the first of them, ns
-- returns: is_late BOOLEAN               -- launched behind work that filled the device until the record ended
WITH done AS (
  SELECT
    rank_key, correlation, count(*) AS work, min(graph_id) AS graph_id, min(start_ns) AS first_ns,
    max(end_ns) AS last_ns
  FROM resolve_gpu_work
  WHERE correlation IS NOT NULL
  GROUP BY rank_key, correlation
),
called AS (
  SELECT
    h.rank_key, h.record, h.pid, h.tid, h.kind = 'graph_launch' AS is_graph,
    h.kind = 'graph_launch' OR (h.name LIKE '%Launch%' AND h.name NOT LIKE '%HostFunc%') AS is_kernel,
    h.start_ns, h.end_ns, h.correlation, coalesce(d.work, 0) AS work, d.graph_id, d.first_ns,
    d.last_ns, row_number() OVER (
      PARTITION BY h.rank_key, h.correlation ORDER BY h.start_ns, h.record
    ) AS again
  FROM resolve_gpu_host AS h
  LEFT JOIN done AS d ON h.rank_key = d.rank_key AND h.correlation = d.correlation
  WHERE h.kind IN ('runtime', 'graph_launch') AND h.correlation IS NOT NULL
),
edge AS (
  SELECT
    c.rank_key, max(CASE WHEN c.work > 0 THEN c.start_ns END) AS covered_ns, max(c.last_ns) AS worked_ns,
    max_by(c.start_ns, c.last_ns) AS waited_ns,
    greatest(max(c.start_ns), max(c.last_ns), max(r.start_ns + r.dur_ns)) AS ended_ns
  FROM called AS c
  JOIN resolve_gpu_rank AS r ON c.rank_key = r.rank_key
  WHERE c.again = 1
  GROUP BY c.rank_key
),
placed AS (
  SELECT
    rank_key, pid, tid, start_ns, 0 AS place, mark AS record, mark AS own_mark, NULL AS is_graph,
    NULL AS is_kernel, end_ns, NULL AS correlation, NULL AS work, NULL AS graph_id, NULL AS first_ns
  FROM gpu_mark
  UNION ALL
  SELECT
    rank_key, pid, tid, start_ns, 1, record, NULL, is_graph, is_kernel, end_ns, correlation, work,
    graph_id, first_ns
  FROM called
  WHERE again = 1 AND (work > 0 OR is_kernel)
),
inside AS (
  SELECT
    p.*,
    max(own_mark) OVER (
      PARTITION BY rank_key, pid, tid ORDER BY start_ns, place, record
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS last_mark,
    max(CASE WHEN place = 1 THEN end_ns END) OVER (
      PARTITION BY rank_key, pid, tid ORDER BY start_ns, place, record
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before_ns
  FROM placed AS p
)
SELECT
  w.rank_key, w.correlation, w.is_graph, w.is_kernel, w.pid, w.tid, w.start_ns, w.end_ns, m.mark,
  w.start_ns - w.before_ns AS quiet_ns, w.work, w.graph_id, w.first_ns,
  coalesce(
    w.work = 0 AND w.start_ns > e.covered_ns AND w.start_ns <= e.worked_ns
    -- As long as the last work took from its launch to its end, this would have taken, too.
    AND w.start_ns + (e.worked_ns - e.waited_ns) >= e.ended_ns, FALSE
  ) AS is_late
FROM inside AS w
JOIN edge AS e ON w.rank_key = e.rank_key
LEFT JOIN gpu_mark AS m
  ON w.rank_key = m.rank_key AND w.last_mark = m.mark AND w.start_ns < m.end_ns
WHERE w.place = 1
