-- What host threads did while a profiler looked, inside the time filter where a trace has wall time.
-- grain:   one row a runtime call, annotation or long operator
-- needs:   gpu_event, resolve_gpu_rank
-- param:   since_ns = NULL               -- only events at or after, where times are wall time
-- param:   until_ns = NULL               -- only events before
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: record BIGINT                 -- record of its source
-- returns: pid BIGINT                    -- process
-- returns: tid BIGINT                    -- thread
-- returns: kind VARCHAR                  -- runtime, graph_launch, annotation, cpu_op
-- returns: name VARCHAR                  -- call, annotation or operator
-- returns: start_ns BIGINT               -- begin, ns by the trace's clock
-- returns: end_ns BIGINT                 -- end, ns; its begin where no duration is told
-- returns: correlation BIGINT            -- joins a launch with what it launched, within the rank
SELECT
  r.rank_key, e.record, coalesce(e.pid, -1) AS pid, coalesce(e.tid, -1) AS tid, e.kind,
  coalesce(e.name, '') AS name, e.start_ns, e.start_ns + coalesce(e.dur_ns, 0) AS end_ns, e.correlation
FROM gpu_event AS e
JOIN resolve_gpu_rank AS r ON e.source_id = r.source_id AND coalesce(e.rank, -1) = coalesce(r.rank, -1)
WHERE e.kind IN ('runtime', 'graph_launch', 'annotation', 'cpu_op') AND e.start_ns IS NOT NULL
  AND (NOT r.is_wall OR $since_ns IS NULL OR e.start_ns >= $since_ns)
  AND (NOT r.is_wall OR $until_ns IS NULL OR e.start_ns < $until_ns)
