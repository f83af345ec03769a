-- Device work in order of time on its device, with its class and the launch behind it.
-- grain:   one row a kernel, copy, set or replay
-- needs:   resolve_gpu_work, gpu_kernel, gpu_launch
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: device BIGINT                 -- device of that rank
-- returns: nr BIGINT                     -- number on that device, in order of begin
-- returns: stream BIGINT                 -- stream
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
-- returns: mark BIGINT                   -- step annotation around its launch; NULL = none
-- returns: correlation BIGINT            -- its launch
-- returns: is_graph BOOLEAN              -- launched by a graph's replay; NULL = its launch is unknown
-- returns: launch_ns BIGINT              -- begin of its launch, ns
-- returns: launched_ns BIGINT            -- end of that call, ns
-- returns: quiet_ns BIGINT               -- since the thread's launch before ended, ns
SELECT
  w.rank_key, w.device,
  row_number() OVER (
    PARTITION BY w.rank_key, w.device ORDER BY w.start_ns, w.end_ns, w.stream, w.record, w.name
  ) AS nr,
  w.stream, w.kind, w.name, coalesce(k.class, 'other') AS class,
  coalesce(k.class_group, 'other') AS class_group, w.start_ns, w.end_ns, w.bytes, w.comm_group, w.comm_ranks, w.elements, l.mark,
  w.correlation, l.is_graph, l.start_ns AS launch_ns,
  l.end_ns AS launched_ns, l.quiet_ns
FROM resolve_gpu_work AS w
LEFT JOIN gpu_kernel AS k ON w.kind = k.kind AND w.name = k.name
LEFT JOIN gpu_launch AS l ON w.rank_key = l.rank_key AND w.correlation = l.correlation
