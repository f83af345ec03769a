-- Collectives that all ranks of a group recorded, the n-th of a step with the n-th. A collective ends
-- on all ranks together, so the middle difference of the ends is the difference of the clocks. What
-- a rank spends in it before the last one comes is waiting, the rest is transfer.
-- grain:   one row a collective and rank
-- needs:   gpu_work, gpu_mark, resolve_gpu_rank
-- returns: capture BIGINT                -- capture
-- returns: step_name VARCHAR             -- the step: its name where each has one, else its number
-- returns: nth BIGINT                    -- number within the step and group
-- returns: comm_group VARCHAR            -- process group; empty = not told
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: device BIGINT                 -- device of that rank
-- returns: nr BIGINT                     -- its work
-- returns: step BIGINT                   -- step, numbered within the rank
-- returns: dur_ns BIGINT                 -- its duration there, ns
-- returns: offset_ns DOUBLE              -- the rank's clock less that of the group's first rank, ns
-- returns: off_ns DOUBLE                 -- what this end differs by beyond that, ns
-- returns: wait_ns DOUBLE                -- until the last rank came, ns
-- returns: transfer_ns DOUBLE            -- since then, ns
-- returns: is_last BOOLEAN               -- all others waited for this rank
WITH distinct_names AS (
  SELECT rank_key, count(*) AS marks, count(DISTINCT name) AS names FROM gpu_mark GROUP BY rank_key
),
by_name AS (
  SELECT r.capture, min(CASE WHEN d.marks = d.names THEN 1 ELSE 0 END) AS yes
  FROM resolve_gpu_rank AS r
  JOIN distinct_names AS d ON r.rank_key = d.rank_key
  GROUP BY r.capture
),
talk AS (
  SELECT
    r.capture, w.rank_key, w.device, w.nr, w.step, w.start_ns, w.end_ns,
    coalesce(w.comm_group, '') AS comm_group, w.comm_ranks,
    CASE WHEN b.yes = 1 AND w.is_told THEN m.name ELSE CAST(w.step AS VARCHAR) END AS step_name,
    row_number() OVER (
      PARTITION BY w.rank_key, w.device, w.step, coalesce(w.comm_group, '') ORDER BY w.nr
    ) AS nth
  FROM gpu_work AS w
  JOIN resolve_gpu_rank AS r ON w.rank_key = r.rank_key
  LEFT JOIN by_name AS b ON r.capture = b.capture
  LEFT JOIN gpu_mark AS m ON w.rank_key = m.rank_key AND w.step = m.mark
  WHERE w.class_group = 'communication' AND w.kind = 'kernel' AND w.step IS NOT NULL
),
members AS (
  SELECT
    capture, comm_group, count(DISTINCT rank_key * 1000 + device) AS ranks, max(comm_ranks) AS told
  FROM talk
  GROUP BY capture, comm_group
),
whole AS (
  SELECT
    t.*, count(*) OVER (PARTITION BY t.capture, t.comm_group, t.step_name, t.nth) AS came,
    first_value(t.end_ns) OVER (
      PARTITION BY t.capture, t.comm_group, t.step_name, t.nth ORDER BY t.rank_key, t.device
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) AS reference_ns,
    m.ranks
  FROM talk AS t
  JOIN members AS m ON t.capture = m.capture AND t.comm_group = m.comm_group
  -- Groups of one name on different ranks cannot be told apart.
  WHERE m.ranks > 1 AND (m.told IS NULL OR m.told = m.ranks)
),
clock AS (
  SELECT
    rank_key, device, comm_group,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY end_ns - reference_ns) AS offset_ns
  FROM whole
  WHERE came = ranks
  GROUP BY rank_key, device, comm_group
),
aligned AS (
  SELECT w.*, c.offset_ns, w.start_ns - c.offset_ns AS begun_ns
  FROM whole AS w
  JOIN clock AS c
    ON w.rank_key = c.rank_key AND w.device = c.device AND w.comm_group = c.comm_group
  WHERE w.came = w.ranks
),
last AS (
  SELECT
    *,
    max(begun_ns) OVER (PARTITION BY capture, comm_group, step_name, nth) AS last_ns,
    row_number() OVER (
      PARTITION BY capture, comm_group, step_name, nth ORDER BY begun_ns DESC, rank_key, device
    ) AS place
  FROM aligned
)
SELECT
  capture, step_name, nth, comm_group, rank_key, device, nr, step, end_ns - start_ns AS dur_ns,
  offset_ns, end_ns - reference_ns - offset_ns AS off_ns,
  least(CAST(end_ns - start_ns AS DOUBLE), last_ns - begun_ns) AS wait_ns,
  greatest(end_ns - start_ns - (last_ns - begun_ns), 0) AS transfer_ns, place = 1 AS is_last
FROM last
