-- What each piece of device work adds to its device's time. Taken in order of begin, the parts of all
-- work that no earlier work covers, and the gaps before them, add up to the time from the first begin
-- to the last end exactly; nothing that overlaps is counted twice. Communication counts where nothing
-- computes beside it, a copy where nothing else runs.
-- grain:   one row a kernel, copy, set or replay
-- needs:   gpu_placed, gpu_anchor
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: device BIGINT                 -- device of that rank
-- returns: nr BIGINT                     -- number on that device, in order of begin
-- returns: step BIGINT                   -- step, numbered within the rank; NULL = belongs to none
-- returns: is_told BOOLEAN               -- an annotation tells the step; else it is inferred
-- returns: kind VARCHAR                  -- kernel, memcpy, memset, graph
-- returns: name VARCHAR                  -- kernel
-- returns: class VARCHAR                 -- class of the kernel
-- returns: class_group VARCHAR           -- group of that class
-- returns: start_ns BIGINT               -- begin, ns by the trace's clock
-- returns: end_ns BIGINT                 -- end, ns
-- returns: bytes BIGINT                  -- bytes copied or set
-- returns: comm_group VARCHAR            -- process group of a collective
-- returns: comm_ranks BIGINT             -- ranks in that group
-- returns: elements BIGINT               -- elements of a collective that the rank put in
-- returns: correlation BIGINT            -- its launch
-- returns: is_graph BOOLEAN              -- launched by a graph's replay; NULL = its launch is unknown
-- returns: launch_ns BIGINT              -- begin of its launch, ns
-- returns: launched_ns BIGINT            -- end of that call, ns
-- returns: quiet_ns BIGINT               -- since the thread's launch before ended, ns
-- returns: gap_ns BIGINT                 -- device idle before it, ns; NULL = the device's first
-- returns: busy_ns BIGINT                -- its time that no earlier work covers, ns
-- returns: compute_ns BIGINT             -- its part of the time that something computes, ns
-- returns: moved_ns BIGINT               -- its part of the time that something computes or communicates, ns
WITH numbered AS (
  SELECT
    p.*, a.how,
    p.class_group = 'communication' AS talks,
    p.class_group = 'memory' AS copies
  FROM gpu_placed AS p
  LEFT JOIN gpu_anchor AS a ON p.rank_key = a.rank_key AND p.device = a.device AND p.nr = a.nr
),
swept AS (
  SELECT
    n.*,
    count(how) OVER (
      PARTITION BY rank_key, device ORDER BY nr ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS inferred,
    max(end_ns) OVER (
      PARTITION BY rank_key, device ORDER BY nr ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS all_ns,
    max(CASE WHEN NOT copies THEN end_ns END) OVER (
      PARTITION BY rank_key, device ORDER BY nr ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS no_copy_ns,
    max(CASE WHEN NOT copies AND NOT talks THEN end_ns END) OVER (
      PARTITION BY rank_key, device ORDER BY nr ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS compute_before_ns
  FROM numbered AS n
)
SELECT
  rank_key, device, nr, coalesce(mark, nullif(inferred, 0)) AS step, mark IS NOT NULL AS is_told, kind,
  name, class, class_group, start_ns, end_ns, bytes, comm_group, comm_ranks, elements, correlation, is_graph, launch_ns,
  launched_ns, quiet_ns,
  CASE WHEN all_ns IS NOT NULL THEN greatest(start_ns - all_ns, 0) END AS gap_ns,
  greatest(end_ns - greatest(start_ns, coalesce(all_ns, start_ns)), 0) AS busy_ns,
  CASE
    WHEN copies OR talks THEN 0
    ELSE greatest(end_ns - greatest(start_ns, coalesce(compute_before_ns, start_ns)), 0)
  END AS compute_ns,
  CASE
    WHEN copies THEN 0
    ELSE greatest(end_ns - greatest(start_ns, coalesce(no_copy_ns, start_ns)), 0)
  END AS moved_ns
FROM swept
