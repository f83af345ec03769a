-- Ranks of the profiler traces, numbered. Ranks that no trace tells are told apart by their source;
-- a rank that was captured again belongs to a further capture.
-- grain:   one row a rank of a profiler trace
-- needs:   gpu_trace, source
-- python:  gpu_rank -- which ranks were captured together
-- returns: rank_key BIGINT               -- number of the trace's rank, from 1
-- returns: source_id INTEGER             -- where it was read
-- returns: path VARCHAR                  -- that file
-- returns: rank BIGINT                   -- process rank; NULL = not told
-- returns: place VARCHAR                 -- what the rank is called
-- returns: capture BIGINT                -- captures of the same ranks are counted, from 1
-- returns: world_size BIGINT             -- ranks of the job, as far as it is told
-- returns: profiler VARCHAR              -- what recorded it
-- returns: is_wall BOOLEAN               -- its times are wall time
-- returns: start_ns BIGINT               -- begin of the record, ns by its clock
-- returns: dur_ns BIGINT                 -- length of the record, ns
-- returns: ended BOOLEAN                 -- the trace ends as it should; NULL = not told
-- returns: stacks BOOLEAN                -- Python stacks were recorded, which slows the host
-- returns: dropped_records BIGINT        -- records that the profiler says it lost
-- returns: stopped_early BOOLEAN         -- the profiler ran out of room
-- returns: overhead_ns BIGINT            -- time the profiler itself took, ns, as far as told
WITH one AS (
  SELECT
    t.source_id, t.rank, t.rank_label, s.path, t.world_size, t.profiler,
    coalesce(t.clock, 'relative') = 'wall' AS is_wall, t.start_ns, t.dur_ns, t.ended, t.stacks,
    t.dropped_records, t.stopped_early, t.overhead_ns,
    row_number() OVER (
      PARTITION BY t.source_id, coalesce(t.rank, -1) ORDER BY t.record, coalesce(t.rank_label, '')
    ) AS again
  FROM gpu_trace AS t
  JOIN source AS s ON t.source_id = s.source_id
)
SELECT
  source_id, path, rank, coalesce(rank_label, CASE WHEN rank IS NOT NULL THEN concat('rank ', CAST(rank AS VARCHAR)) END, path) AS place,
  world_size, profiler, is_wall, start_ns, dur_ns, ended, stacks, dropped_records, stopped_early,
  overhead_ns
FROM one
WHERE again = 1
ORDER BY coalesce(rank, -1), path, source_id
