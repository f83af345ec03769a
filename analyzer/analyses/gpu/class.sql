-- What each device did with its time, by class of work and by name. Work that overlaps is counted
-- once: a moment belongs to whatever began first, so the busy times of a device add up to its own.
-- grain:   one row a device of a rank, class and name
-- needs:   gpu_work
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: device BIGINT                 -- device of that rank
-- returns: class VARCHAR                 -- what the work is; other = no rule found its name
-- returns: class_group VARCHAR           -- what classes are summed under
-- returns: name VARCHAR                  -- kernel, copy or set; empty = not told
-- returns: events BIGINT                 -- how often
-- returns: sum_ns BIGINT                 -- durations added up: overlap counts more than once, ns
-- returns: busy_ns BIGINT                -- of the device's busy time what is put down to it, ns
-- returns: longest_ns BIGINT             -- the longest, ns
SELECT
  rank_key, device, class, class_group, name, count(*) AS events,
  CAST(SUM(end_ns - start_ns) AS BIGINT) AS sum_ns, CAST(SUM(busy_ns) AS BIGINT) AS busy_ns,
  max(end_ns - start_ns) AS longest_ns
FROM gpu_work
GROUP BY rank_key, device, class, class_group, name
