-- What devices did, inside the time filter where a trace has wall time. Events without a duration
-- are counted elsewhere and fill no time.
-- grain:   one row a kernel, copy, set or replay of a graph
-- needs:   gpu_event, resolve_gpu_rank
-- param:   since_ns = NULL               -- only events at or after, where times are wall time
-- param:   until_ns = NULL               -- only events before
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: record BIGINT                 -- record of its source
-- returns: device BIGINT                 -- device of that rank
-- returns: stream BIGINT                 -- stream of that device
-- returns: kind VARCHAR                  -- kernel, memcpy, memset; graph = a replay whose kernels are untold
-- returns: name VARCHAR                  -- kernel
-- returns: start_ns BIGINT               -- begin, ns by the trace's clock
-- returns: end_ns BIGINT                 -- end, ns
-- returns: correlation BIGINT            -- joins it with its launch, within the rank
-- returns: graph_id BIGINT               -- graph that was replayed; NULL = none, or not told
-- returns: bytes BIGINT                  -- bytes copied or set
-- returns: elements BIGINT               -- elements of a collective that the rank put in
-- returns: comm_group VARCHAR            -- process group of a collective
-- returns: comm_ranks BIGINT             -- ranks in that group
SELECT
  r.rank_key, e.record, coalesce(e.device, 0) AS device, coalesce(e.stream, 0) AS stream, e.kind,
  coalesce(e.name, '') AS name, e.start_ns, e.start_ns + e.dur_ns AS end_ns, e.correlation,
  nullif(e.graph_id, 0) AS graph_id, e.bytes, e.collective_elements AS elements,
  e.collective_group AS comm_group, e.collective_ranks AS comm_ranks
FROM gpu_event AS e
JOIN resolve_gpu_rank AS r ON e.source_id = r.source_id AND coalesce(e.rank, -1) = coalesce(r.rank, -1)
WHERE e.kind IN ('kernel', 'memcpy', 'memset', 'graph') AND e.start_ns IS NOT NULL AND e.dur_ns >= 0
  AND (NOT r.is_wall OR $since_ns IS NULL OR e.start_ns >= $since_ns)
  AND (NOT r.is_wall OR $until_ns IS NULL OR e.start_ns < $until_ns)
