-- Communication of a step: until the last rank came, and the transfer itself. Where other ranks are
-- not in the case, no more than the shortest tenth of equal collectives is called transfer.
-- grain:   one row a device of a rank and step that communicates
-- needs:   gpu_work, gpu_collective
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: device BIGINT                 -- device of that rank
-- returns: step BIGINT                   -- step, numbered within the rank
-- returns: calls BIGINT                  -- collectives
-- returns: matched BIGINT                -- of them matched with all other ranks
-- returns: dur_ns DOUBLE                 -- their durations, ns
-- returns: wait_ns DOUBLE                -- waiting for the last rank, ns
-- returns: transfer_ns DOUBLE            -- transfer, ns
WITH talk AS (
  SELECT
    rank_key, device, nr, step, name, coalesce(elements, -1) AS elements, end_ns - start_ns AS dur_ns
  FROM gpu_work
  WHERE class_group = 'communication' AND kind = 'kernel' AND step IS NOT NULL
),
short AS (
  SELECT
    rank_key, name, elements, percentile_cont(0.1) WITHIN GROUP (ORDER BY dur_ns) AS short_ns
  FROM talk
  GROUP BY rank_key, name, elements
)
SELECT
  t.rank_key, t.device, t.step, count(*) AS calls, count(c.nr) AS matched,
  SUM(CAST(t.dur_ns AS DOUBLE)) AS dur_ns,
  SUM(coalesce(c.wait_ns, greatest(t.dur_ns - s.short_ns, 0))) AS wait_ns,
  SUM(coalesce(c.transfer_ns, least(CAST(t.dur_ns AS DOUBLE), s.short_ns))) AS transfer_ns
FROM talk AS t
JOIN short AS s ON t.rank_key = s.rank_key AND t.name = s.name AND t.elements = s.elements
LEFT JOIN gpu_collective AS c ON t.rank_key = c.rank_key AND t.device = c.device AND t.nr = c.nr
GROUP BY t.rank_key, t.device, t.step
