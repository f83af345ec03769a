-- Device time beside requests: what the device did while each request was on its way, where the trace
-- has wall time. The device is shared: these are no costs of one request, but what it shared in.
-- grain:   one row a request and capture that overlap
-- needs:   gpu_step, resolve_gpu_rank, resolve_request, latency_segment
-- returns: request_key BIGINT            -- the request
-- returns: capture BIGINT                -- capture
-- returns: steps BIGINT                  -- steps that began while it was on its way
-- returns: traced_ns BIGINT              -- of its time covered by steps of the trace, ns
-- returns: covered_ratio DOUBLE          -- as a share of its time
-- returns: busy_ns DOUBLE                -- device busy meanwhile, ns
-- returns: launch_gap_ns DOUBLE          -- idle meanwhile: next kernel not launched, ns
-- returns: host_gap_ns DOUBLE            -- idle meanwhile: host busy, ns
-- returns: comm_wait_ns DOUBLE           -- waiting for another rank meanwhile, ns
-- returns: comm_transfer_ns DOUBLE       -- transfer meanwhile, ns
WITH lane AS (
  SELECT capture, rank_key, device, row_number() OVER (PARTITION BY capture ORDER BY rank_key, device) AS place
  FROM gpu_step
  WHERE device IS NOT NULL
  GROUP BY capture, rank_key, device
),
-- One device stands for its capture: all of them work on the same steps.
stepped AS (
  SELECT
    s.capture, s.start_ns, s.step_ns, s.busy_ns, s.launch_gap_ns, s.host_gap_ns, s.comm_wait_ns,
    s.comm_transfer_ns, row_number() OVER (PARTITION BY s.capture ORDER BY s.start_ns, s.step) AS nr
  FROM gpu_step AS s
  JOIN lane AS l ON s.capture = l.capture AND s.rank_key = l.rank_key AND s.device = l.device
  JOIN resolve_gpu_rank AS r ON s.rank_key = r.rank_key
  WHERE l.place = 1 AND r.is_wall AND s.step_ns > 0
),
summed AS (
  SELECT
    *,
    SUM(CAST(step_ns AS DOUBLE)) OVER (PARTITION BY capture ORDER BY nr) - step_ns AS step_before,
    SUM(CAST(busy_ns AS DOUBLE)) OVER (PARTITION BY capture ORDER BY nr) - busy_ns AS busy_before,
    SUM(CAST(launch_gap_ns AS DOUBLE)) OVER (PARTITION BY capture ORDER BY nr) - launch_gap_ns AS launch_before,
    SUM(CAST(host_gap_ns AS DOUBLE)) OVER (PARTITION BY capture ORDER BY nr) - host_gap_ns AS host_before,
    SUM(comm_wait_ns) OVER (PARTITION BY capture ORDER BY nr) - comm_wait_ns AS wait_before,
    SUM(comm_transfer_ns) OVER (PARTITION BY capture ORDER BY nr) - comm_transfer_ns AS transfer_before
  FROM stepped
),
asked AS (
  SELECT r.request_key, r.start_ns, r.start_ns + s.e2e_ns AS end_ns, s.e2e_ns
  FROM resolve_request AS r
  JOIN latency_segment AS s ON r.request_key = s.request_key
  WHERE s.e2e_ns > 0 AND r.start_ns IS NOT NULL
),
captures AS (
  SELECT capture FROM stepped GROUP BY capture
),
moment AS (
  SELECT capture, start_ns AS time_ns, 0 AS side, nr AS key, nr FROM stepped
  UNION ALL
  SELECT c.capture, a.start_ns, 1, a.request_key, NULL FROM asked AS a CROSS JOIN captures AS c
  UNION ALL
  SELECT c.capture, a.end_ns, 2, a.request_key, NULL FROM asked AS a CROSS JOIN captures AS c
),
placed AS (
  SELECT
    *,
    max(nr) OVER (
      PARTITION BY capture ORDER BY time_ns, side, key ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS last_nr
  FROM moment
),
upto AS (
  SELECT
    p.capture, p.key AS request_key, p.side, coalesce(p.last_nr, 0) AS steps,
    coalesce(s.step_before + least(p.time_ns - s.start_ns, s.step_ns), 0) AS step_ns,
    coalesce(s.busy_before + least(CAST(p.time_ns - s.start_ns AS DOUBLE) / s.step_ns, 1) * s.busy_ns, 0) AS busy_ns,
    coalesce(
      s.launch_before + least(CAST(p.time_ns - s.start_ns AS DOUBLE) / s.step_ns, 1) * s.launch_gap_ns, 0
    ) AS launch_ns,
    coalesce(s.host_before + least(CAST(p.time_ns - s.start_ns AS DOUBLE) / s.step_ns, 1) * s.host_gap_ns, 0)
      AS host_ns,
    coalesce(s.wait_before + least(CAST(p.time_ns - s.start_ns AS DOUBLE) / s.step_ns, 1) * s.comm_wait_ns, 0)
      AS wait_ns,
    coalesce(
      s.transfer_before + least(CAST(p.time_ns - s.start_ns AS DOUBLE) / s.step_ns, 1) * s.comm_transfer_ns, 0
    ) AS transfer_ns
  FROM placed AS p
  LEFT JOIN summed AS s ON p.capture = s.capture AND p.last_nr = s.nr
  WHERE p.side > 0
)
SELECT
  b.request_key, b.capture, e.steps - b.steps AS steps, CAST(round(e.step_ns - b.step_ns) AS BIGINT) AS traced_ns,
  least((e.step_ns - b.step_ns) / a.e2e_ns, 1.0) AS covered_ratio, e.busy_ns - b.busy_ns AS busy_ns,
  e.launch_ns - b.launch_ns AS launch_gap_ns, e.host_ns - b.host_ns AS host_gap_ns,
  e.wait_ns - b.wait_ns AS comm_wait_ns, e.transfer_ns - b.transfer_ns AS comm_transfer_ns
FROM upto AS b
JOIN upto AS e ON b.capture = e.capture AND b.request_key = e.request_key AND e.side = 2
JOIN asked AS a ON b.request_key = a.request_key
WHERE b.side = 1 AND e.step_ns > b.step_ns
