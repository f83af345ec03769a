-- Who was in service while a request waited, from the stays of all requests of its server: how many,
-- for how much of the wait as many as it ever took at about that time, what they held, and the one
-- large request that came through last before it.
-- grain:   one row a request that waited long
-- needs:   latency_queue_stay
-- param:   nearby_ns = 30000000000    -- the largest batch within this of a moment is what it could take then
-- param:   at_limit_share = 0.9       -- of that batch, from which on it stands at its limit
-- param:   even_ns = 1000000000      -- a batch is a mean over this: ends and begins are told a step apart
-- param:   large = 4                  -- a request is large from this many times the median on
-- param:   large_ns = 100000000       -- and its prompt takes at least this
-- param:   early_share = 0.5          -- of its prefill: who begins later may join its last steps
-- returns: request_key BIGINT         -- the request
-- returns: in_service DOUBLE          -- mean number in service during its wait
-- returns: largest DOUBLE             -- largest batch at about that time
-- returns: standing_ratio DOUBLE      -- share of the wait in which as many were in service, 0 to 1
-- returns: held_tokens DOUBLE         -- mean of what those in service hold at their end, tokens
-- returns: most_tokens DOUBLE         -- most that were ever in service on that server, tokens
-- returns: prompt_ns DOUBLE           -- prompts of others in work during the wait, added up, ns
-- returns: prompted_ratio DOUBLE      -- share of the wait with any prompt of others in work, 0 to 1
-- returns: large_ns DOUBLE            -- of them, prompts of large requests, ns
-- returns: blocker_key BIGINT         -- the large request that came through last before it
-- returns: blocker_start_ns BIGINT    -- when that came, ns UTC
-- returns: blocker_admit_ns BIGINT    -- when the server began with it, ns UTC
-- returns: blocker_prefilled_ns BIGINT -- when its prompt was done, ns UTC
-- returns: passed BIGINT              -- others that the server began with in the first half of that prompt's work
WITH stays AS (
  SELECT * FROM latency_queue_stay WHERE start_ns IS NOT NULL
),
-- Sizes are judged against all requests of the server: where most are large, none is.
usual AS (
  SELECT
    server,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY prefill_ns) AS prefill_ns,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY input_tokens) AS input_tokens
  FROM stays
  GROUP BY server
),
sized AS (
  SELECT
    s.*,
    coalesce(s.prefill_ns >= $large_ns AND s.prefill_ns >= $large * u.prefill_ns
      AND coalesce(s.input_tokens >= $large * u.input_tokens, TRUE), FALSE) AS is_slow,
    coalesce(s.input_tokens >= $large * u.input_tokens
      AND coalesce(s.prefill_ns >= $large * u.prefill_ns, TRUE), FALSE) AS is_large,
    s.admit_ns + CAST(round($early_share * coalesce(s.prefill_ns, 0)) AS BIGINT) AS early_ns
  FROM stays AS s
  JOIN usual AS u ON s.server = u.server
),
edges AS (
  SELECT
    server, admit_ns AS at_ns, 1 AS more, tokens, CASE WHEN prefill_ns > 0 THEN 1 ELSE 0 END AS prompts,
    CASE WHEN is_slow THEN 1 ELSE 0 END AS slow, 1 AS admitted
  FROM sized
  UNION ALL
  SELECT
    server, prefilled_ns, 0, 0, CASE WHEN prefill_ns > 0 THEN -1 ELSE 0 END,
    CASE WHEN is_slow THEN -1 ELSE 0 END, 0
  FROM sized
  UNION ALL
  SELECT server, end_ns, -1, -tokens, 0, 0, 0 FROM sized
  UNION ALL
  SELECT server, start_ns, 0, 0, 0, 0, 0 FROM sized WHERE is_long
  UNION ALL
    SELECT server, early_ns, 0, 0, 0, 0, 0 FROM sized WHERE is_slow OR is_large
),
points AS (
  SELECT
    server, at_ns, SUM(more) AS more, SUM(tokens) AS tokens, SUM(prompts) AS prompts, SUM(slow) AS slow,
    SUM(admitted) AS admitted
  FROM edges
  GROUP BY server, at_ns
),
levels AS (
  SELECT
    server, at_ns,
    CAST(SUM(more) OVER (PARTITION BY server ORDER BY at_ns) AS DOUBLE) AS in_service,
    CAST(SUM(tokens) OVER (PARTITION BY server ORDER BY at_ns) AS DOUBLE) AS tokens,
    CAST(SUM(prompts) OVER (PARTITION BY server ORDER BY at_ns) AS DOUBLE) AS prompts,
    CAST(SUM(slow) OVER (PARTITION BY server ORDER BY at_ns) AS DOUBLE) AS slow,
    CAST(SUM(admitted) OVER (PARTITION BY server ORDER BY at_ns) AS BIGINT) AS admitted
  FROM points
),
-- What held until a moment: the level after the one before it, times the time between them.
pieces AS (
  SELECT
    server, at_ns, admitted,
    CAST(at_ns - lag(at_ns) OVER line AS DOUBLE) AS lasts_ns,
    lag(in_service) OVER line AS in_service,
    lag(tokens) OVER line AS tokens,
    lag(prompts) OVER line AS prompts,
    lag(slow) OVER line AS slow
  FROM levels
  WINDOW line AS (PARTITION BY server ORDER BY at_ns)
),
evened AS (
  SELECT
    *,
    coalesce(
      SUM(in_service * lasts_ns) OVER shortly / nullif(SUM(lasts_ns) OVER shortly, 0),
      CAST(0 AS DOUBLE)) AS batch,
    max(tokens) OVER (PARTITION BY server) AS most_tokens
  FROM pieces
  WINDOW shortly AS (
    PARTITION BY server ORDER BY at_ns RANGE BETWEEN $even_ns PRECEDING AND CURRENT ROW
  )
),
measured AS (
  SELECT
    *,
    max(batch) OVER (
      PARTITION BY server ORDER BY at_ns RANGE BETWEEN $nearby_ns PRECEDING AND $nearby_ns FOLLOWING
    ) AS largest
  FROM evened
),
areas AS (
  SELECT
    server, at_ns, largest, most_tokens, admitted,
    coalesce(SUM(in_service * lasts_ns) OVER before, CAST(0 AS DOUBLE)) AS in_service,
    coalesce(SUM(tokens * lasts_ns) OVER before, CAST(0 AS DOUBLE)) AS tokens,
    coalesce(SUM(prompts * lasts_ns) OVER before, CAST(0 AS DOUBLE)) AS prompts,
    coalesce(SUM(slow * lasts_ns) OVER before, CAST(0 AS DOUBLE)) AS slow,
    coalesce(SUM(CASE WHEN prompts > 0 THEN lasts_ns ELSE CAST(0 AS DOUBLE) END) OVER before,
      CAST(0 AS DOUBLE)) AS prompted,
    coalesce(SUM(CASE WHEN largest > 0 AND in_service >= $at_limit_share * largest THEN lasts_ns
      ELSE CAST(0 AS DOUBLE) END) OVER before, CAST(0 AS DOUBLE)) AS standing
  FROM measured
  WINDOW before AS (PARTITION BY server ORDER BY at_ns)
),
-- The server begins with requests in some order; the last large one before each.
ordered AS (
  SELECT
    *,
    last_value(CASE WHEN is_slow OR is_large THEN request_key END IGNORE NULLS) OVER (
      PARTITION BY server ORDER BY admit_ns, start_ns, request_key
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS blocker_key
  FROM sized
),
blockers AS (
  SELECT
    s.request_key, s.start_ns, s.admit_ns, s.prefilled_ns, s.prefill_ns, s.input_tokens,
    greatest(b.admitted - a.admitted, 0) AS passed
  FROM sized AS s
  JOIN areas AS a ON s.server = a.server AND s.admit_ns = a.at_ns
  JOIN areas AS b ON s.server = b.server AND s.early_ns = b.at_ns
  WHERE s.is_slow OR s.is_large
)
SELECT
  w.request_key,
  (b.in_service - a.in_service) / w.queue_ns AS in_service,
  greatest(a.largest, b.largest) AS largest,
  (b.standing - a.standing) / w.queue_ns AS standing_ratio,
  (b.tokens - a.tokens) / w.queue_ns AS held_tokens,
  a.most_tokens,
  b.prompts - a.prompts AS prompt_ns,
  (b.prompted - a.prompted) / w.queue_ns AS prompted_ratio,
  b.slow - a.slow AS large_ns,
  o.request_key AS blocker_key, o.start_ns AS blocker_start_ns, o.admit_ns AS blocker_admit_ns,
  o.prefilled_ns AS blocker_prefilled_ns, o.passed
FROM ordered AS w
JOIN areas AS a ON w.server = a.server AND w.start_ns = a.at_ns
JOIN areas AS b ON w.server = b.server AND w.admit_ns = b.at_ns
-- Only one that is large beside this request, too, and was there before it got its turn.
LEFT JOIN blockers AS o
  ON w.blocker_key = o.request_key AND o.prefilled_ns > w.start_ns
    AND coalesce(o.input_tokens >= $large * w.input_tokens, o.prefill_ns >= $large * w.prefill_ns)
WHERE w.is_long
