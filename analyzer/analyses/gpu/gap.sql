-- Times a device had nothing to do, and why: the next kernel was not launched yet, because launches
-- cost what they cost (launch) or because the host did something else first (host); or it was launched,
-- and the device itself was not ready (device).
-- grain:   one row a gap of a device
-- needs:   gpu_work
-- param:   busy_host_ns = 100000         -- eager frameworks launch every 5 to 100 us; longer is other work
-- param:   few_launches = 10             -- launches a step below which none of them is the bottleneck
-- param:   outlier = 5                   -- times the usual time between launches: the host did something else
-- param:   reach_ns = 5000                -- from the end of the call until an idle device begins its work
-- param:   of_step = 0.02                -- of the usual step, at least: less is a launch that took longer
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: device BIGINT                 -- device of that rank
-- returns: nr BIGINT                     -- work that ends the gap
-- returns: step BIGINT                   -- its step
-- returns: start_ns BIGINT               -- begin of the gap, ns by the trace's clock
-- returns: end_ns BIGINT                 -- end of the gap, ns
-- returns: late_ns BIGINT                -- of it until the work was launched, ns; NULL = launch unknown
-- returns: cause VARCHAR                 -- launch, host, device; unknown = its launch is not in the trace
WITH gap AS (
  SELECT
    rank_key, device, nr, step, start_ns - gap_ns AS start_ns, start_ns AS end_ns,
    CASE
      WHEN launch_ns IS NULL THEN NULL
      -- A graph's kernels follow each other on the device, however long the call lasts.
      WHEN is_graph OR kind <> 'kernel' THEN greatest(least(launch_ns, start_ns) - (start_ns - gap_ns), 0)
      ELSE greatest(least(launched_ns + $reach_ns, start_ns) - (start_ns - gap_ns), 0)
    END AS late_ns
  FROM gpu_work
  WHERE gap_ns > 0
),
step_of AS (
  SELECT
    rank_key, device, step, count(DISTINCT correlation) AS launches,
    SUM(busy_ns + coalesce(gap_ns, 0)) AS step_ns
  FROM gpu_work
  WHERE step IS NOT NULL
  GROUP BY rank_key, device, step
),
usual AS (
  SELECT
    rank_key, device, percentile_cont(0.5) WITHIN GROUP (ORDER BY launches) AS launches,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY step_ns) AS step_ns
  FROM step_of
  GROUP BY rank_key, device
),
called AS (
  SELECT rank_key, device, correlation, min(quiet_ns) AS quiet_ns
  FROM gpu_work
  WHERE quiet_ns IS NOT NULL
  GROUP BY rank_key, device, correlation
),
pace AS (
  SELECT rank_key, device, percentile_cont(0.5) WITHIN GROUP (ORDER BY quiet_ns) AS quiet_ns
  FROM called
  GROUP BY rank_key, device
)
SELECT
  g.rank_key, g.device, g.nr, g.step, g.start_ns, g.end_ns, g.late_ns,
  CASE
    WHEN g.late_ns IS NULL THEN 'unknown'
    WHEN g.late_ns = 0 THEN 'device'
    WHEN g.late_ns >= $busy_host_ns
      AND (
        coalesce(u.launches, 1) < $few_launches
        OR g.late_ns >= greatest($outlier * coalesce(p.quiet_ns, 0), $of_step * coalesce(u.step_ns, 0))
      ) THEN 'host'
    ELSE 'launch'
  END AS cause
FROM gap AS g
LEFT JOIN usual AS u ON g.rank_key = u.rank_key AND g.device = u.device
LEFT JOIN pace AS p ON g.rank_key = p.rank_key AND g.device = p.device
