-- Work of decode steps that does not belong on their path: weights or values that are converted before
-- use, and copies that nothing hides.
-- grain:   one row a device of a rank, step, cause and kernel
-- needs:   gpu_work
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: device BIGINT                 -- device of that rank
-- returns: step BIGINT                   -- step, numbered within the rank
-- returns: cause VARCHAR                 -- quantize, copy
-- returns: name VARCHAR                  -- kernel or copy
-- returns: times BIGINT                  -- how often
-- returns: slow_ns BIGINT                -- its time that nothing else covers, ns
-- returns: bytes BIGINT                  -- bytes copied; NULL = none, or not told
SELECT
  rank_key, device, step, CASE WHEN class_group = 'memory' THEN 'copy' ELSE 'quantize' END AS cause, name,
  count(*) AS times,
  CAST(SUM(CASE WHEN class_group = 'memory' THEN busy_ns ELSE compute_ns END) AS BIGINT) AS slow_ns,
  CAST(SUM(bytes) AS BIGINT) AS bytes
FROM gpu_work
WHERE step IS NOT NULL AND (class_group = 'memory' OR class = 'quantize')
GROUP BY
  rank_key, device, step, CASE WHEN class_group = 'memory' THEN 'copy' ELSE 'quantize' END, name
