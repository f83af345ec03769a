-- Ranks beside each other: their clocks, where their steps' time goes, and how long the others wait
-- for each. A straggler is last so often that most of the waiting is for it alone.
-- grain:   one row a device of a rank that has whole steps
-- needs:   gpu_step, gpu_collective, gpu_talk, gpu_trust
-- param:   few = 8                       -- collectives below which who is last is chance
-- param:   spread_ns = 50000             -- ends of a collective differ by less; more is another clock
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: capture BIGINT                -- capture
-- returns: place VARCHAR                 -- what the rank is called
-- returns: device BIGINT                 -- device of that rank
-- returns: steps BIGINT                  -- whole steps
-- returns: step_ns DOUBLE                -- median step, ns
-- returns: compute_ns DOUBLE             -- mean of a step: something computes, ns
-- returns: copy_ns DOUBLE                -- mean of a step: copies alone, ns
-- returns: idle_ns DOUBLE                -- mean of a step: idle, ns
-- returns: comm_wait_ns DOUBLE           -- mean of a step: waiting in communication, ns
-- returns: comm_transfer_ns DOUBLE       -- mean of a step: transfer, ns
-- returns: offset_ns DOUBLE              -- its clock less that of the first rank, by collectives, ns
-- returns: off_ns DOUBLE                 -- what three quarters of the ends differ by beyond that, ns
-- returns: collectives BIGINT            -- collectives matched with all other ranks
-- returns: last BIGINT                   -- of them all others waited for this one
-- returns: blame_ns DOUBLE               -- waiting of all others for it, ns
-- returns: blame_ratio DOUBLE            -- of all waiting in the capture
-- returns: can_compare BOOLEAN           -- all ranks are there, and their clocks can be aligned
-- returns: is_straggler BOOLEAN          -- most of the waiting is for this rank
WITH alone AS (
  SELECT
    c.*, coalesce(CAST(s.comm_ns AS DOUBLE) / nullif(t.dur_ns, 0), 0) AS bare_ratio
  FROM gpu_collective AS c
  JOIN gpu_step AS s ON c.rank_key = s.rank_key AND c.device = s.device AND c.step = s.step
  JOIN gpu_talk AS t ON c.rank_key = t.rank_key AND c.device = t.device AND c.step = t.step
),
waited AS (
  SELECT
    a.*,
    SUM(a.wait_ns * least(a.bare_ratio, 1)) OVER (
      PARTITION BY a.capture, a.comm_group, a.step_name, a.nth
    ) AS all_wait_ns
  FROM alone AS a
),
blame AS (
  SELECT
    rank_key, device, min(capture) AS capture, count(*) AS collectives, count(CASE WHEN is_last THEN 1 END) AS last,
    SUM(CASE WHEN is_last THEN all_wait_ns ELSE 0 END) AS blame_ns, avg(offset_ns) AS offset_ns,
    percentile_cont(0.75) WITHIN GROUP (ORDER BY abs(off_ns)) AS off_ns, avg(wait_ns) AS wait_ns
  FROM waited
  GROUP BY rank_key, device
),
whole AS (
  SELECT
    capture, SUM(blame_ns) AS blame_ns, count(*) AS ranks, max(off_ns) AS off_ns, avg(wait_ns) AS wait_ns
  FROM blame
  GROUP BY capture
),
spent AS (
  SELECT
    rank_key, device, min(capture) AS capture, min(place) AS place, count(*) AS steps,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY step_ns) AS step_ns, avg(compute_ns) AS compute_ns,
    avg(copy_ns) AS copy_ns, avg(idle_ns) AS idle_ns, avg(comm_wait_ns) AS comm_wait_ns,
    avg(comm_transfer_ns) AS comm_transfer_ns
  FROM gpu_step
  WHERE is_whole AND NOT is_lull
  GROUP BY rank_key, device
)
SELECT
  s.rank_key, s.capture, s.place, s.device, s.steps, s.step_ns, s.compute_ns, s.copy_ns, s.idle_ns,
  s.comm_wait_ns, s.comm_transfer_ns, b.offset_ns, b.off_ns, coalesce(b.collectives, 0) AS collectives,
  coalesce(b.last, 0) AS last, b.blame_ns, b.blame_ns / nullif(w.blame_ns, 0) AS blame_ratio,
  coalesce(
    t.ranks_missing = 0 AND b.collectives >= $few
    AND w.off_ns <= greatest($spread_ns, 0.5 * w.wait_ns), FALSE
  ) AS can_compare,
  coalesce(
    t.ranks_missing = 0 AND b.collectives >= $few
    AND w.off_ns <= greatest($spread_ns, 0.5 * w.wait_ns)
    AND b.blame_ns >= (0.5 + 0.5 / w.ranks) * w.blame_ns AND b.blame_ns > 0, FALSE
  ) AS is_straggler
FROM spent AS s
JOIN gpu_trust AS t ON s.rank_key = t.rank_key
LEFT JOIN blame AS b ON s.rank_key = b.rank_key AND s.device = b.device
LEFT JOIN whole AS w ON s.capture = w.capture
