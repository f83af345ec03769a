-- What each device did with its time, by class of work. Work that overlaps is counted once: a
-- moment belongs to whatever began first, so the shares of a device add up to one.
-- grain:   one row a trace, rank, device and class of kernel
-- needs:   gpu_event, gpu_kernel
-- returns: source_id INTEGER                -- the trace
-- returns: rank BIGINT                      -- process rank; NULL = not told
-- returns: device BIGINT                    -- device; NULL = not told
-- returns: class VARCHAR                    -- what the work is; other = no rule found its names
-- returns: class_group VARCHAR              -- what classes are summed under
-- returns: events BIGINT                    -- kernels, copies, fills
-- returns: names BIGINT                     -- distinct names
-- returns: sum_ns BIGINT                    -- ns, durations added up: overlap counts more than once
-- returns: union_ns BIGINT                  -- ns with at least one of the class at work
-- returns: busy_ns BIGINT                   -- ns of the device's busy time that are put down to the class
-- returns: device_busy_ns BIGINT            -- ns with anything at work on the device
-- returns: device_span_ns BIGINT            -- ns from the first start to the last end on the device
-- returns: share_ratio DOUBLE               -- of the device's busy time
-- returns: longest_ns BIGINT                -- ns of its longest event
WITH work AS (
  SELECT
    e.source_id, coalesce(e.rank, -1) AS rank, coalesce(e.device, -1) AS device, e.record,
    e.start_ns, e.start_ns + coalesce(e.dur_ns, 0) AS end_ns, coalesce(e.dur_ns, 0) AS dur_ns,
    k.class, k.class_group, k.name
  FROM gpu_event AS e
  JOIN gpu_kernel AS k ON k.kind = e.kind AND k.name = coalesce(e.name, '')
  WHERE e.start_ns IS NOT NULL
),
swept AS (
  SELECT
    *,
    MAX(end_ns) OVER (
      PARTITION BY source_id, rank, device ORDER BY start_ns, record
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS device_until_ns,
    MAX(end_ns) OVER (
      PARTITION BY source_id, rank, device, class ORDER BY start_ns, record
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS class_until_ns
  FROM work
),
summed AS (
  SELECT
    source_id, rank, device, class, class_group,
    COUNT(*) AS events,
    COUNT(DISTINCT name) AS names,
    CAST(SUM(dur_ns) AS BIGINT) AS sum_ns,
    CAST(SUM(greatest(0, end_ns - greatest(start_ns, coalesce(class_until_ns, start_ns)))) AS BIGINT)
      AS union_ns,
    CAST(SUM(greatest(0, end_ns - greatest(start_ns, coalesce(device_until_ns, start_ns)))) AS BIGINT)
      AS busy_ns,
    MIN(start_ns) AS first_ns,
    MAX(end_ns) AS last_ns,
    MAX(dur_ns) AS longest_ns
  FROM swept
  GROUP BY source_id, rank, device, class, class_group
),
device AS (
  SELECT
    source_id, rank, device,
    CAST(SUM(busy_ns) AS BIGINT) AS device_busy_ns,
    MAX(last_ns) - MIN(first_ns) AS device_span_ns
  FROM summed
  GROUP BY source_id, rank, device
)
SELECT
  s.source_id,
  nullif(s.rank, -1) AS rank,
  nullif(s.device, -1) AS device,
  s.class, s.class_group, s.events, s.names, s.sum_ns, s.union_ns, s.busy_ns,
  d.device_busy_ns, d.device_span_ns,
  CAST(s.busy_ns AS DOUBLE) / nullif(d.device_busy_ns, 0) AS share_ratio,
  s.longest_ns
FROM summed AS s
JOIN device AS d ON d.source_id = s.source_id AND d.rank = s.rank AND d.device = s.device
