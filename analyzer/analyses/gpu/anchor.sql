-- Where steps begin in ranks whose work no annotation encloses, read off what repeats: a graph that
-- is the whole step, the first kernel that samples, or the kernel with the longest steady period.
-- grain:   one row a device of a rank and inferred step
-- needs:   gpu_placed
-- param:   whole_graph = 40              -- kernels of a replay that is a whole step: ten layers have as many
-- param:   few = 4                       -- repetitions below which a period is chance
-- param:   shortest = 8                  -- kernels between two of a name that can bound a step
-- param:   steady = 0.75                 -- share of the periods that have to be the usual one
-- param:   covers = 0.6                  -- share of the device's work that the periods have to cover
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: device BIGINT                 -- device of that rank
-- returns: nr BIGINT                     -- number of the step's first piece of work on that device
-- returns: how VARCHAR                   -- graph, sampling, period
WITH unmarked AS (
  SELECT rank_key, device, count(*) AS work, count(mark) AS marked
  FROM gpu_placed
  GROUP BY rank_key, device
  HAVING count(mark) = 0
),
mine AS (
  SELECT p.rank_key, p.device, p.nr, p.name, p.class, p.correlation, p.is_graph, u.work
  FROM gpu_placed AS p
  JOIN unmarked AS u ON p.rank_key = u.rank_key AND p.device = u.device
),
replay AS (
  SELECT rank_key, device, correlation, min(nr) AS nr, count(*) AS kernels
  FROM mine
  WHERE is_graph
  GROUP BY rank_key, device, correlation
),
graphs AS (
  SELECT rank_key, device, count(*) AS replays
  FROM replay
  GROUP BY rank_key, device
  HAVING count(*) >= 2 AND percentile_cont(0.5) WITHIN GROUP (ORDER BY kernels) >= $whole_graph
),
spaced AS (
  SELECT
    m.rank_key, m.device, m.nr, m.work,
    CASE WHEN m.class = 'sampling' THEN '' ELSE m.name END AS name,
    m.class = 'sampling' AS samples,
    m.nr - lag(m.nr) OVER (
      PARTITION BY m.rank_key, m.device, CASE WHEN m.class = 'sampling' THEN '' ELSE m.name END
      ORDER BY m.nr
    ) AS period
  FROM mine AS m
  LEFT JOIN graphs AS g ON m.rank_key = g.rank_key AND m.device = g.device
  WHERE g.rank_key IS NULL
),
bounding AS (
  SELECT * FROM spaced WHERE period IS NULL OR NOT samples OR period >= $shortest
),
usual AS (
  SELECT
    rank_key, device, name, samples, min(work) AS work, count(*) AS times, min(nr) AS first_at,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY period) AS period
  FROM bounding
  GROUP BY rank_key, device, name, samples
  HAVING count(*) >= $few
),
agreeing AS (
  SELECT
    u.rank_key, u.device, u.name, u.samples, u.times, u.period, u.first_at, min(u.work) AS work,
    CAST(count(CASE WHEN abs(b.period - u.period) <= 0.05 * u.period THEN 1 END) AS DOUBLE)
    / (u.times - 1) AS same
  FROM usual AS u
  JOIN bounding AS b
    ON u.rank_key = b.rank_key AND u.device = b.device AND u.name = b.name AND b.period IS NOT NULL
  WHERE u.period >= $shortest
  GROUP BY u.rank_key, u.device, u.name, u.samples, u.times, u.period, u.first_at
),
chosen AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY rank_key, device ORDER BY samples DESC, period DESC, first_at, name
    ) AS place
  FROM agreeing
  WHERE samples OR (same >= $steady AND times * period >= $covers * work)
)
SELECT r.rank_key, r.device, r.nr, 'graph' AS how
FROM replay AS r
JOIN graphs AS g ON r.rank_key = g.rank_key AND r.device = g.device
UNION ALL
SELECT b.rank_key, b.device, b.nr, CASE WHEN c.samples THEN 'sampling' ELSE 'period' END
FROM bounding AS b
JOIN chosen AS c ON b.rank_key = c.rank_key AND b.device = c.device AND b.name = c.name
WHERE c.place = 1
