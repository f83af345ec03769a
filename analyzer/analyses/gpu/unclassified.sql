-- Kernels that no rule of the catalog finds, and what share of a device's work they make.
-- grain:   one row a trace, rank, device and name
-- needs:   gpu_event, gpu_kernel, gpu_class
-- returns: source_id INTEGER                -- the trace
-- returns: rank BIGINT                      -- process rank; NULL = not told
-- returns: device BIGINT                    -- device; NULL = not told
-- returns: name VARCHAR                     -- kernel
-- returns: events BIGINT                    -- launches of it
-- returns: sum_ns BIGINT                    -- ns, durations added up
-- returns: share_ratio DOUBLE               -- of the device's durations added up
-- returns: device_share_ratio DOUBLE        -- of all such names of the device together
WITH whole AS (
  SELECT source_id, coalesce(rank, -1) AS rank, coalesce(device, -1) AS device, CAST(SUM(sum_ns) AS BIGINT) AS all_ns,
    CAST(SUM(CASE WHEN class = 'other' THEN sum_ns ELSE 0 END) AS BIGINT) AS other_ns
  FROM gpu_class
  GROUP BY 1, 2, 3
),
unknown AS (
  SELECT
    e.source_id, coalesce(e.rank, -1) AS rank, coalesce(e.device, -1) AS device, k.name,
    COUNT(*) AS events, CAST(SUM(coalesce(e.dur_ns, 0)) AS BIGINT) AS sum_ns
  FROM gpu_event AS e
  JOIN gpu_kernel AS k ON k.kind = e.kind AND k.name = coalesce(e.name, '')
  WHERE k.class = 'other' AND e.start_ns IS NOT NULL
  GROUP BY 1, 2, 3, 4
)
SELECT
  u.source_id,
  nullif(u.rank, -1) AS rank,
  nullif(u.device, -1) AS device,
  u.name, u.events, u.sum_ns,
  CAST(u.sum_ns AS DOUBLE) / nullif(w.all_ns, 0) AS share_ratio,
  CAST(w.other_ns AS DOUBLE) / nullif(w.all_ns, 0) AS device_share_ratio
FROM unknown AS u
JOIN whole AS w ON w.source_id = u.source_id AND w.rank = u.rank AND w.device = u.device
