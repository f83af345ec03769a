-- What a rank's trace can carry: whether launches have their work, whether one event holds most of the
-- time, what was cut off or lost, and whether ranks of the job are missing.
-- grain:   one row a rank of a trace
-- needs:   resolve_gpu_rank, resolve_gpu_host, gpu_launch, gpu_replay, gpu_work
-- param:   enough = 0.95                 -- of the launches with their work: the rest may lie at the edges
-- param:   one_holds = 0.5               -- of the record in one event: a hang, or no duration at all
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: capture BIGINT                -- capture
-- returns: place VARCHAR                 -- what the rank is called
-- returns: is_wall BOOLEAN               -- its times are wall time
-- returns: start_ns BIGINT               -- begin of the record, ns by its clock
-- returns: dur_ns BIGINT                 -- length of the record, ns
-- returns: work BIGINT                   -- kernels, copies, sets and replays with a duration
-- returns: unlaunched BIGINT             -- of them without a launch in the trace
-- returns: late_launches BIGINT          -- launches whose work is beyond the record; the others do not count them
-- returns: launches BIGINT               -- launches of single kernels
-- returns: launch_coverage_ratio DOUBLE  -- of them with their kernel; NULL = none, or graphs were captured
-- returns: graph_launches BIGINT         -- launches of graphs
-- returns: graphs_covered BIGINT         -- of them with all their kernels
-- returns: graph_coverage_ratio DOUBLE   -- as a share; NULL = there are none
-- returns: opaque BIGINT                 -- replays told as a whole, without their kernels
-- returns: largest_ratio DOUBLE          -- share of the record that one event holds
-- returns: naive_idle_ratio DOUBLE       -- share of the record without recorded work: no idle time unless can_idle
-- returns: overhead_ratio DOUBLE         -- share of the record that the profiler took, as far as told
-- returns: has_stacks BOOLEAN            -- Python stacks were recorded, which slows the host
-- returns: is_cut BOOLEAN                -- the trace does not end as it should
-- returns: lost_records BIGINT           -- records that the profiler lost, as far as told
-- returns: is_full BOOLEAN               -- the profiler ran out of room
-- returns: talks BOOLEAN                 -- it communicates with other ranks
-- returns: ranks BIGINT                  -- ranks of the capture in this case
-- returns: ranks_told BIGINT             -- ranks of the job, as far as told
-- returns: ranks_missing BIGINT          -- of them not in this case
-- returns: lacks_launches BOOLEAN        -- too many launches of single kernels are without their kernel
-- returns: lacks_graphs BOOLEAN          -- too many launches of graphs are without all their kernels
-- returns: is_one_event BOOLEAN          -- one event holds most of the record
-- returns: can_idle BOOLEAN              -- none of these: idle time, and what follows from it, can be said
WITH device_time AS (
  SELECT rank_key, device, SUM(busy_ns) AS busy_ns FROM gpu_work GROUP BY rank_key, device
),
busy AS (
  SELECT rank_key, avg(busy_ns) AS busy_ns FROM device_time GROUP BY rank_key
),
done AS (
  SELECT
    rank_key, count(DISTINCT device) AS devices, count(*) AS work, count(CASE WHEN launch_ns IS NULL THEN 1 END) AS unlaunched,
    max(end_ns - start_ns) AS largest_ns, count(CASE WHEN kind = 'graph' THEN 1 END) AS opaque,
    max(CASE WHEN class_group = 'communication' THEN 1 ELSE 0 END) AS talks, max(comm_ranks) AS comm_ranks
  FROM gpu_work
  GROUP BY rank_key
),
called AS (
  SELECT
    rank_key, count(*) AS launches, count(CASE WHEN work > 0 THEN 1 END) AS covered
  FROM gpu_launch
  WHERE is_kernel AND NOT is_graph AND NOT is_late
  GROUP BY rank_key
),
late AS (
  SELECT rank_key, count(*) AS launches FROM gpu_launch WHERE is_late GROUP BY rank_key
),
-- What is launched while a graph is captured does not run.
captured AS (
  SELECT rank_key
  FROM resolve_gpu_host
  WHERE name LIKE '%GraphInstantiate%' OR name LIKE '%BeginCapture%' OR name LIKE 'capture\_%' ESCAPE '\'
  GROUP BY rank_key
),
replayed AS (
  SELECT rank_key, count(*) AS launches, count(CASE WHEN is_covered THEN 1 END) AS covered
  FROM gpu_replay
  WHERE NOT is_late
  GROUP BY rank_key
),
set_of AS (
  SELECT
    -- One process may drive several devices.
    r.capture, CAST(SUM(coalesce(d.devices, 1)) AS BIGINT) AS ranks, nullif(greatest(max(r.world_size), coalesce(max(d.comm_ranks), 0)), 0) AS told,
    max(d.comm_ranks) AS told_by_groups
  FROM resolve_gpu_rank AS r
  LEFT JOIN done AS d ON r.rank_key = d.rank_key
  GROUP BY r.capture
),
told AS (
  SELECT
    r.*, coalesce(d.work, 0) AS work, coalesce(d.unlaunched, 0) AS unlaunched, d.largest_ns, b.busy_ns,
    coalesce(d.opaque, 0) AS opaque, coalesce(d.talks, 0) = 1 AS talks,
    coalesce(e.launches, 0) AS late_launches, coalesce(c.launches, 0) AS launches,
    CASE
      WHEN p.rank_key IS NULL THEN CAST(c.covered AS DOUBLE) / nullif(c.launches, 0)
    END AS launch_coverage_ratio,
    coalesce(g.launches, 0) AS graph_launches, coalesce(g.covered, 0) AS graphs_covered,
    CAST(g.covered AS DOUBLE) / nullif(g.launches, 0) AS graph_coverage_ratio, s.ranks,
    coalesce(s.told, s.told_by_groups) AS ranks_told
  FROM resolve_gpu_rank AS r
  JOIN set_of AS s ON r.capture = s.capture
  LEFT JOIN done AS d ON r.rank_key = d.rank_key
  LEFT JOIN busy AS b ON r.rank_key = b.rank_key
  LEFT JOIN called AS c ON r.rank_key = c.rank_key
  LEFT JOIN late AS e ON r.rank_key = e.rank_key
  LEFT JOIN captured AS p ON r.rank_key = p.rank_key
  LEFT JOIN replayed AS g ON r.rank_key = g.rank_key
),
judged AS (
  SELECT
    *, CAST(largest_ns AS DOUBLE) / nullif(dur_ns, 0) AS largest_ratio,
    coalesce(launch_coverage_ratio < $enough, FALSE) AS lacks_launches,
    coalesce(graph_coverage_ratio < $enough, FALSE) AS lacks_graphs,
    coalesce(CAST(largest_ns AS DOUBLE) / nullif(dur_ns, 0) >= $one_holds, FALSE) AS is_one_event
  FROM told
)
SELECT
  rank_key, capture, place, is_wall, start_ns, dur_ns, work, unlaunched, late_launches,
  launches, launch_coverage_ratio, graph_launches, graphs_covered, graph_coverage_ratio, opaque, largest_ratio,
  greatest(1 - coalesce(busy_ns, 0) / nullif(dur_ns, 0), 0) AS naive_idle_ratio,
  CAST(overhead_ns AS DOUBLE) / nullif(dur_ns, 0) AS overhead_ratio, coalesce(stacks, FALSE) AS has_stacks,
  NOT coalesce(ended, TRUE) AS is_cut, coalesce(dropped_records, 0) AS lost_records,
  coalesce(stopped_early, FALSE) AS is_full, talks, ranks, ranks_told,
  CASE WHEN ranks_told > ranks THEN ranks_told - ranks ELSE 0 END AS ranks_missing,
  lacks_launches, lacks_graphs, is_one_event,
  work > 0 AND NOT lacks_launches AND NOT lacks_graphs AND NOT is_one_event AS can_idle
FROM judged
