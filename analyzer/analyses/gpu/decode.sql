-- Decode steps that verdicts look at, with the shares of the time of their device that each reason for
-- slowness has. Where no phase is told every step counts. Idle time is only told where the trace
-- carries it.
-- grain:   one row a device of a rank and decode step; a step without recorded work has no device
-- needs:   gpu_step, gpu_trust, gpu_slow
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: capture BIGINT                -- capture
-- returns: device BIGINT                 -- device of that rank; NULL = no work was recorded
-- returns: step BIGINT                   -- number within the rank
-- returns: item VARCHAR                  -- what the step is called
-- returns: place VARCHAR                 -- its rank, where there are several
-- returns: start_ns BIGINT               -- begin, ns wall time; NULL = no wall time
-- returns: end_ns BIGINT                 -- end, ns wall time
-- returns: is_timed BOOLEAN              -- all its work is recorded, and idle time can be said
-- returns: is_whole BOOLEAN              -- its begin is, too: its time on the device is known
-- returns: has_stacks BOOLEAN            -- Python stacks were recorded, which slows the host
-- returns: has_all_ranks BOOLEAN         -- it does not communicate, or all other ranks are there
-- returns: talks BOOLEAN                 -- it communicates
-- returns: step_ns BIGINT                -- its time on the device, ns
-- returns: token_ns DOUBLE               -- time per token of each request, ns; at least, where drafts may be dropped
-- returns: batch BIGINT                  -- requests; NULL = not told
-- returns: busy_ns BIGINT                -- device busy, ns
-- returns: idle_ns BIGINT                -- device idle, ns
-- returns: launches BIGINT               -- launches of kernels and graphs
-- returns: graph_launches BIGINT         -- of them replays of graphs
-- returns: launch_gap_ns BIGINT          -- idle: the next kernel was not launched yet, ns
-- returns: host_gap_ns BIGINT            -- idle: the host did something else first, ns
-- returns: wait_ns DOUBLE                -- communication alone, waiting, ns
-- returns: transfer_ns DOUBLE            -- communication alone, transfer, ns
-- returns: overlapped_ns BIGINT          -- work that ran beside other work, ns
-- returns: quantize_ns BIGINT            -- converting weights or values, ns
-- returns: copy_ns BIGINT                -- copies that nothing hides, ns
-- returns: launch_ratio DOUBLE           -- launch gaps of all such steps of the device over their time
-- returns: host_ratio DOUBLE             -- host gaps likewise
-- returns: transfer_ratio DOUBLE         -- transfer likewise
-- returns: quantize_ratio DOUBLE         -- converting likewise
-- returns: copy_ratio DOUBLE             -- copies likewise
WITH slow AS (
  SELECT
    rank_key, device, step, CAST(SUM(CASE WHEN cause = 'quantize' THEN slow_ns ELSE 0 END) AS BIGINT) AS quantize_ns
  FROM gpu_slow
  GROUP BY rank_key, device, step
),
phases AS (
  SELECT rank_key, count(phase) AS told FROM gpu_step GROUP BY rank_key
),
looked_at AS (
  SELECT
    s.*, t.is_wall, t.has_stacks, t.ranks, t.talks, t.ranks_missing,
    s.device IS NOT NULL AND s.lost_launches = 0 AND t.can_idle AS is_timed,
    s.is_whole AND t.can_idle AS is_known, coalesce(w.quantize_ns, 0) AS quantize_ns
  FROM gpu_step AS s
  JOIN gpu_trust AS t ON s.rank_key = t.rank_key
  JOIN phases AS p ON s.rank_key = p.rank_key
  LEFT JOIN slow AS w ON s.rank_key = w.rank_key AND s.device = w.device AND s.step = w.step
  WHERE NOT s.is_lull AND (p.told = 0 OR s.phase = 'decode')
),
summed AS (
  SELECT
    rank_key, device, SUM(CAST(step_ns AS DOUBLE)) AS step_ns, SUM(CAST(launch_gap_ns AS DOUBLE)) AS launch_ns,
    SUM(CAST(host_gap_ns AS DOUBLE)) AS host_ns, SUM(comm_transfer_ns) AS transfer_ns,
    SUM(CAST(quantize_ns AS DOUBLE)) AS quantize_ns, SUM(CAST(copy_ns AS DOUBLE)) AS copy_ns
  FROM looked_at
  WHERE is_known
  GROUP BY rank_key, device
)
SELECT
  l.rank_key, l.capture, l.device, l.step,
  concat(
    CASE WHEN l.ranks > 1 THEN concat(l.place, ', ') ELSE '' END,
    coalesce(l.name, concat('step ', CAST(l.step AS VARCHAR)))
  ) AS item,
  CASE WHEN l.ranks > 1 THEN l.place END AS place, CASE WHEN l.is_wall THEN l.start_ns END AS start_ns,
  CASE WHEN l.is_wall THEN l.end_ns END AS end_ns, l.is_timed, l.is_known AS is_whole, l.has_stacks,
  NOT l.talks OR (l.ranks > 1 AND l.ranks_missing = 0) AS has_all_ranks, l.talks, l.step_ns, l.token_ns, l.decode_requests AS batch,
  l.busy_ns, l.idle_ns, l.launches, l.graph_launches, l.launch_gap_ns, l.host_gap_ns,
  l.comm_wait_ns AS wait_ns, l.comm_transfer_ns AS transfer_ns, l.overlap_ns AS overlapped_ns, l.quantize_ns,
  l.copy_ns, s.launch_ns / nullif(s.step_ns, 0) AS launch_ratio, s.host_ns / nullif(s.step_ns, 0) AS host_ratio,
  s.transfer_ns / nullif(s.step_ns, 0) AS transfer_ratio,
  s.quantize_ns / nullif(s.step_ns, 0) AS quantize_ratio, s.copy_ns / nullif(s.step_ns, 0) AS copy_ratio
FROM looked_at AS l
LEFT JOIN summed AS s ON l.rank_key = s.rank_key AND l.device = s.device
