-- What host threads did while a device waited for them: time of each operator inside host gaps, from
-- the sums of those gaps up to its begin and its end.
-- grain:   one row a rank and name of an operator or annotation
-- needs:   gpu_gap, resolve_gpu_host, gpu_mark
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: name VARCHAR                  -- operator
-- returns: times BIGINT                  -- times it ran into a host gap
-- returns: in_gap_ns BIGINT              -- of its time in host gaps, ns
-- returns: dur_ns BIGINT                 -- its time then, ns
-- returns: place BIGINT                  -- 1 = explains most: much of the gaps, and little beside them
WITH host_gap AS (
  SELECT rank_key, start_ns, max(end_ns) AS end_ns
  FROM gpu_gap
  WHERE cause = 'host'
  GROUP BY rank_key, start_ns
),
op AS (
  SELECT h.rank_key, h.pid, h.tid, h.record, h.name, h.start_ns, h.end_ns
  FROM resolve_gpu_host AS h
  LEFT JOIN gpu_mark AS m
    ON h.rank_key = m.rank_key AND h.kind = 'annotation' AND h.pid = m.pid AND h.tid = m.tid
    AND h.start_ns = m.start_ns AND h.name = m.name
  WHERE h.kind IN ('cpu_op', 'annotation') AND m.mark IS NULL AND h.end_ns > h.start_ns
),
moment AS (
  SELECT
    rank_key, start_ns AS time_ns, 0 AS side, 0 AS pid, 0 AS tid, 0 AS record, end_ns - start_ns AS gap_ns,
    end_ns AS until_ns
  FROM host_gap
  UNION ALL
  SELECT rank_key, start_ns, 1, pid, tid, record, NULL, NULL FROM op
  UNION ALL
  SELECT rank_key, end_ns, 2, pid, tid, record, NULL, NULL FROM op
),
summed AS (
  SELECT
    *,
    SUM(gap_ns) OVER (
      PARTITION BY rank_key ORDER BY time_ns, side, record, pid, tid
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS begun_ns,
    max(until_ns) OVER (
      PARTITION BY rank_key ORDER BY time_ns, side, record, pid, tid
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS open_ns
  FROM moment
),
upto AS (
  SELECT
    rank_key, side, pid, tid, record, time_ns,
    coalesce(begun_ns, 0) - greatest(coalesce(open_ns, time_ns) - time_ns, 0) AS waited_ns
  FROM summed
  WHERE side > 0
),
spent AS (
  SELECT
    o.rank_key, o.name, count(*) AS times, CAST(SUM(e.waited_ns - b.waited_ns) AS BIGINT) AS in_gap_ns,
    CAST(SUM(o.end_ns - o.start_ns) AS BIGINT) AS dur_ns
  FROM op AS o
  JOIN upto AS b
    ON o.rank_key = b.rank_key AND o.record = b.record AND o.pid = b.pid AND o.tid = b.tid AND b.side = 1
    AND o.start_ns = b.time_ns
  JOIN upto AS e
    ON o.rank_key = e.rank_key AND o.record = e.record AND o.pid = e.pid AND o.tid = e.tid AND e.side = 2
    AND o.end_ns = e.time_ns
  WHERE e.waited_ns > b.waited_ns
  GROUP BY o.rank_key, o.name
),
most AS (
  SELECT rank_key, max(in_gap_ns) AS in_gap_ns FROM spent GROUP BY rank_key
)
-- What encloses everything is in every gap: of those that fill half as much, the one that does little
-- else is the cause.
SELECT
  s.rank_key, s.name, s.times, s.in_gap_ns, s.dur_ns,
  row_number() OVER (
    PARTITION BY s.rank_key
    ORDER BY CASE WHEN 2 * s.in_gap_ns >= m.in_gap_ns THEN 0 ELSE 1 END,
      CASE WHEN 2 * s.in_gap_ns >= m.in_gap_ns THEN round(CAST(s.in_gap_ns AS DOUBLE) / s.dur_ns, 2) END DESC,
      s.in_gap_ns DESC, s.name
  ) AS place
FROM spent AS s
JOIN most AS m ON s.rank_key = m.rank_key
