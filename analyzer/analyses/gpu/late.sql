-- Steps in which ranks waited for others: for the straggler where there is one, and for whoever.
-- grain:   one row a capture and step that communicates
-- needs:   gpu_step, gpu_collective, gpu_rank, gpu_trust
-- returns: capture BIGINT                -- capture
-- returns: step_name VARCHAR             -- the step
-- returns: ranks BIGINT                  -- ranks that took part
-- returns: phase VARCHAR                 -- prefill, decode, mixed, training; NULL = not told
-- returns: is_decode BOOLEAN             -- it decodes, or no phase is told
-- returns: straggler VARCHAR             -- the rank that most of the waiting is for; NULL = none
-- returns: step_ns DOUBLE                -- mean step of the ranks, ns
-- returns: wait_ns DOUBLE                -- mean waiting of a rank, ns
-- returns: straggler_ns DOUBLE           -- mean waiting of the others for the straggler, ns
-- returns: start_ns BIGINT               -- begin on the first rank, ns wall time; NULL = no wall time
-- returns: end_ns BIGINT                 -- end there, ns
WITH slow AS (
  SELECT capture, min(rank_key) AS rank_key, min(place) AS place
  FROM gpu_rank
  WHERE is_straggler
  GROUP BY capture
),
who AS (
  SELECT
    c.*, max(CASE WHEN c.is_last THEN c.rank_key END) OVER (
      PARTITION BY c.capture, c.comm_group, c.step_name, c.nth
    ) AS last_key
  FROM gpu_collective AS c
),
of_rank AS (
  SELECT
    w.capture, w.step_name, w.rank_key, w.device, w.step, SUM(w.wait_ns) AS wait_ns,
    SUM(CASE WHEN w.last_key = s.rank_key THEN w.wait_ns ELSE 0 END) AS straggler_ns,
    SUM(CAST(w.dur_ns AS DOUBLE)) AS dur_ns
  FROM who AS w
  LEFT JOIN slow AS s ON w.capture = s.capture
  GROUP BY w.capture, w.step_name, w.rank_key, w.device, w.step
),
bare AS (
  SELECT
    o.capture, o.step_name, o.rank_key, p.phase, p.step_ns, t.is_wall, p.start_ns, p.end_ns,
    o.wait_ns * least(p.comm_ns / nullif(o.dur_ns, 0), 1) AS wait_ns,
    o.straggler_ns * least(p.comm_ns / nullif(o.dur_ns, 0), 1) AS straggler_ns
  FROM of_rank AS o
  JOIN gpu_step AS p ON o.rank_key = p.rank_key AND o.device = p.device AND o.step = p.step
  JOIN gpu_trust AS t ON o.rank_key = t.rank_key
  WHERE p.is_whole AND NOT p.is_lull
)
SELECT
  b.capture, b.step_name, count(*) AS ranks, min(b.phase) AS phase,
  coalesce(min(b.phase), 'decode') = 'decode' AS is_decode, min(s.place) AS straggler,
  avg(b.step_ns) AS step_ns, avg(b.wait_ns) AS wait_ns,
  CASE
    WHEN min(s.place) IS NOT NULL
      THEN SUM(b.straggler_ns) / nullif(count(CASE WHEN b.rank_key <> s.rank_key THEN 1 END), 0)
  END AS straggler_ns,
  min(CASE WHEN b.is_wall THEN b.start_ns END) AS start_ns,
  min(CASE WHEN b.is_wall THEN b.end_ns END) AS end_ns
FROM bare AS b
LEFT JOIN slow AS s ON b.capture = s.capture
GROUP BY b.capture, b.step_name
