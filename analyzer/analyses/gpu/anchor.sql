-- Where steps begin in ranks whose work no annotation encloses, read off what repeats: what follows a
-- kernel that samples, a graph that is the whole step, or the kernel with a steady period in which
-- layers repeat. Layers of a step repeat as steadily as steps do: where periods differ, or hold no
-- layers, nothing is told.
-- grain:   one row a device of a rank and inferred step
-- needs:   gpu_placed
-- param:   whole_graph = 40              -- kernels of a replay that is a whole step: ten layers have as many
-- param:   few = 4                       -- repetitions below which a period is chance
-- param:   shortest = 8                  -- kernels from one that samples to one of the next step
-- param:   alike = 0.1                   -- replays of one model differ by less in their kernels
-- param:   steady = 0.75                 -- share of the periods, or replays, that have to be the usual one
-- param:   covers = 0.6                  -- share of the device's work that usual periods have to cover
-- param:   layers = 8                    -- times that most kernels of a step come in it: models have more layers
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: device BIGINT                 -- device of that rank
-- returns: nr BIGINT                     -- number of the step's first piece of work on that device
-- returns: how VARCHAR                   -- graph, sampling, period
WITH unmarked AS (
  SELECT rank_key, device, count(*) AS work
  FROM gpu_placed
  GROUP BY rank_key, device
  HAVING count(mark) = 0
),
mine AS (
  SELECT
    p.rank_key, p.device, p.nr, p.name, p.class, p.class_group = 'memory' AS copies, p.correlation,
    coalesce(p.is_graph, FALSE) AS is_graph, u.work
  FROM gpu_placed AS p
  JOIN unmarked AS u ON p.rank_key = u.rank_key AND p.device = u.device
),
drawn AS (
  SELECT
    rank_key, device, nr,
    lead(nr) OVER (PARTITION BY rank_key, device ORDER BY nr) - nr AS next_in
  FROM mine
  WHERE class = 'sampling'
),
-- Copies of what was sampled still belong to its step.
after AS (
  SELECT
    m.rank_key, m.device, m.nr, m.work,
    lag(d.nr IS NOT NULL AND coalesce(d.next_in, $shortest) >= $shortest)
      OVER (PARTITION BY m.rank_key, m.device ORDER BY m.nr) AS begins
  FROM mine AS m
  LEFT JOIN drawn AS d ON m.rank_key = d.rank_key AND m.device = d.device AND m.nr = d.nr
  WHERE NOT m.copies
),
sampled AS (
  SELECT
    rank_key, device, nr, work,
    lead(nr) OVER (PARTITION BY rank_key, device ORDER BY nr) - nr AS period
  FROM after
  WHERE coalesce(begins, TRUE)
),
paced AS (
  SELECT
    rank_key, device, count(*) AS steps, percentile_cont(0.5) WITHIN GROUP (ORDER BY period) AS period
  FROM sampled
  GROUP BY rank_key, device
  HAVING count(period) >= $few - 1
),
often AS (
  SELECT rank_key, device, name, count(*) AS times FROM mine GROUP BY rank_key, device, name
),
-- Experts are chosen by the kernels that sample: then layers are between them, and hold none.
of_layers AS (
  SELECT p.rank_key, p.device, min(p.period) AS period
  FROM paced AS p
  JOIN often AS o ON p.rank_key = o.rank_key AND p.device = o.device
  GROUP BY p.rank_key, p.device
  HAVING SUM(CASE WHEN o.times >= $layers * p.steps THEN o.times ELSE 0 END) >= 0.5 * SUM(o.times)
),
-- Where a draft is sampled, too, its steps are short: then usual ones do not cover the work.
samples AS (
  SELECT s.rank_key, s.device
  FROM sampled AS s
  JOIN of_layers AS p ON s.rank_key = p.rank_key AND s.device = p.device
  GROUP BY s.rank_key, s.device
  HAVING SUM(CASE WHEN s.period BETWEEN p.period / 2 AND 2 * p.period THEN s.period END) >= $covers * min(s.work)
),
replay AS (
  SELECT m.rank_key, m.device, m.correlation, min(m.nr) AS nr, count(*) AS kernels
  FROM mine AS m
  LEFT JOIN samples AS s ON m.rank_key = s.rank_key AND m.device = s.device
  WHERE m.is_graph AND s.rank_key IS NULL
  GROUP BY m.rank_key, m.device, m.correlation
),
usual AS (
  SELECT rank_key, device, percentile_cont(0.5) WITHIN GROUP (ORDER BY kernels) AS kernels
  FROM replay
  GROUP BY rank_key, device
),
graphs AS (
  SELECT r.rank_key, r.device
  FROM replay AS r
  JOIN usual AS u ON r.rank_key = u.rank_key AND r.device = u.device
  WHERE u.kernels >= $whole_graph
  GROUP BY r.rank_key, r.device
  HAVING count(*) >= 2
    AND count(CASE WHEN abs(r.kernels - u.kernels) <= $alike * u.kernels THEN 1 END) >= $steady * count(*)
),
-- A prompt between replays runs kernel by kernel: as many as a replay has are a step of their own.
between_replays AS (
  SELECT
    m.rank_key, m.device, m.nr, m.copies OR m.is_graph AS is_other,
    count(r.nr) OVER (PARTITION BY m.rank_key, m.device ORDER BY m.nr) AS replays
  FROM mine AS m
  JOIN graphs AS g ON m.rank_key = g.rank_key AND m.device = g.device
  LEFT JOIN replay AS r ON m.rank_key = r.rank_key AND m.device = r.device AND m.nr = r.nr
),
prompts AS (
  SELECT rank_key, device, min(nr) AS nr
  FROM between_replays
  WHERE NOT is_other
  GROUP BY rank_key, device, replays
  HAVING count(*) >= $whole_graph
),
spaced AS (
  SELECT
    m.rank_key, m.device, m.nr, m.work, m.name,
    m.nr - lag(m.nr) OVER (PARTITION BY m.rank_key, m.device, m.name ORDER BY m.nr) AS period
  FROM mine AS m
  LEFT JOIN samples AS s ON m.rank_key = s.rank_key AND m.device = s.device
  LEFT JOIN graphs AS g ON m.rank_key = g.rank_key AND m.device = g.device
  WHERE s.rank_key IS NULL AND g.rank_key IS NULL
),
named AS (
  SELECT
    rank_key, device, name, min(work) AS work, count(*) AS times, min(nr) AS first_at,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY period) AS period
  FROM spaced
  GROUP BY rank_key, device, name
),
agreeing AS (
  SELECT n.rank_key, n.device, n.name, min(n.work) AS work, min(n.times) AS times, min(n.first_at) AS first_at, min(n.period) AS period
  FROM named AS n
  JOIN spaced AS s ON n.rank_key = s.rank_key AND n.device = s.device AND n.name = s.name AND s.period IS NOT NULL
  WHERE n.times >= $few AND n.times * n.period >= $covers * n.work
  GROUP BY n.rank_key, n.device, n.name
  HAVING count(CASE WHEN abs(s.period - n.period) <= 0.05 * n.period THEN 1 END) >= $steady * count(*)
),
layered AS (
  SELECT
    a.rank_key, a.device, a.name, min(a.period) AS period,
    row_number() OVER (PARTITION BY a.rank_key, a.device ORDER BY min(a.first_at), a.name) AS place
  FROM agreeing AS a
  JOIN named AS n ON a.rank_key = n.rank_key AND a.device = n.device
  GROUP BY a.rank_key, a.device, a.name
  HAVING SUM(CASE WHEN n.times >= $layers * a.times THEN n.times ELSE 0 END) >= 0.5 * min(a.work)
),
periods AS (
  SELECT rank_key, device
  FROM layered
  GROUP BY rank_key, device
  HAVING max(period) <= 1.1 * min(period)
)
SELECT s.rank_key, s.device, s.nr, 'sampling' AS how
FROM sampled AS s
JOIN samples AS o ON s.rank_key = o.rank_key AND s.device = o.device
UNION ALL
SELECT r.rank_key, r.device, r.nr, 'graph'
FROM replay AS r
JOIN graphs AS g ON r.rank_key = g.rank_key AND r.device = g.device
UNION ALL
SELECT rank_key, device, nr, 'graph' FROM prompts
UNION ALL
SELECT s.rank_key, s.device, s.nr, 'period'
FROM spaced AS s
JOIN layered AS l ON s.rank_key = l.rank_key AND s.device = l.device AND s.name = l.name AND l.place = 1
JOIN periods AS p ON s.rank_key = p.rank_key AND s.device = p.device
