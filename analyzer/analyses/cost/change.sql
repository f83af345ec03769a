-- The moment since which the bill is higher and stays so, and the two windows that it parts. Calls of one
-- session are alike, so it has to stand out between sessions too: by what an operation costs in each, or
-- by how many there are; unless most of the cost since is that of sessions that were there before: then
-- several of those.
-- grain:   one row, where there is such a moment
-- needs:   cost_step, cost_tracked, cost_request, cost_attempt, resolve_request
-- param:   apart = 3.5                  -- standard errors between sessions; the cut is the best of many, so 3 are not enough
-- param:   fewest = 5                   -- sessions on each side
-- param:   several = 3                  -- sessions on both sides; one or two are a matter of their own
-- returns: baseline_from_ns BIGINT      -- the time before: from, ns UTC
-- returns: baseline_until_ns BIGINT     -- to, ns UTC
-- returns: window_from_ns BIGINT        -- the time since: from, ns UTC
-- returns: window_until_ns BIGINT       -- to, ns UTC
-- returns: moved VARCHAR                -- cost per call, or calls
-- returns: times DOUBLE                 -- what moved, as a multiple of before, like hours of the day compared
-- returns: is_compared BOOLEAN          -- like hours of the day could be compared: no rhythm of the day
-- returns: is_unlike BOOLEAN            -- one of the two has weekends only, the other none: may be the week's rhythm
-- returns: before_usd DOUBLE            -- dollars an operation in the baseline
-- returns: after_usd DOUBLE             -- since
-- returns: before_calls DOUBLE          -- operations a day in the baseline
-- returns: after_calls DOUBLE           -- since
-- returns: chance_z DOUBLE              -- how far from chance: rank sum in standard deviations
-- returns: sessions_z DOUBLE            -- how far from chance between sessions, in standard errors; NULL = too few
-- returns: known_share DOUBLE           -- part of the cost since by sessions that were there before
WITH sides AS (
  SELECT
    coalesce(q.session_id, concat('#', CAST(q.request_key AS VARCHAR))) AS session,
    q.start_ns >= s.window_from_ns AS is_after,
    round(sum(1.0 / coalesce(a.attempts, 1)), 9) AS operations,
    CAST(sum(c.usd) AS DOUBLE) AS usd
  FROM cost_step AS s
  CROSS JOIN cost_tracked AS t
  JOIN cost_request AS c ON t.request_key = c.request_key
  JOIN resolve_request AS q ON t.request_key = q.request_key
  LEFT JOIN cost_attempt AS a ON t.request_key = a.request_key
  WHERE t.is_metered AND c.usd > 0 AND q.start_ns IS NOT NULL
  GROUP BY 1, 2
),
shown AS (
  SELECT session, count(*) OVER (PARTITION BY session) AS windows, is_after, usd,
    ln(usd / operations) AS each
  FROM sides
),
summed AS (
  SELECT
    count(CASE WHEN NOT is_after THEN 1 END) AS before_count,
    count(CASE WHEN is_after THEN 1 END) AS after_count,
    avg(CASE WHEN NOT is_after THEN each END) AS before_mean,
    avg(CASE WHEN is_after THEN each END) AS after_mean,
    var_pop(CASE WHEN NOT is_after THEN each END) AS before_var,
    var_pop(CASE WHEN is_after THEN each END) AS after_var,
    count(CASE WHEN is_after AND windows = 2 THEN 1 END) AS known_count,
    sum(CASE WHEN is_after AND windows = 2 THEN usd ELSE 0 END)
      / nullif(sum(CASE WHEN is_after THEN usd ELSE 0 END), 0) AS known_share
  FROM shown
),
judged AS (
  SELECT
    s.*, m.known_count, m.known_share,
    CASE
      WHEN m.before_count < $fewest OR m.after_count < $fewest THEN NULL
      WHEN s.moved = 'calls' THEN ln(s.times)
        / power(1.0 / m.before_count + 1.0 / m.after_count, 0.5)
      ELSE (m.after_mean - m.before_mean) / nullif(power(
        m.before_var / (m.before_count - 1) + m.after_var / (m.after_count - 1), 0.5), 0)
    END AS sessions_z,
    m.before_count >= $fewest AND m.after_count >= $fewest AND s.moved <> 'calls'
      AND m.before_var + m.after_var = 0 AND m.after_mean > m.before_mean AS is_certain
  FROM cost_step AS s
  CROSS JOIN summed AS m
)
SELECT
  baseline_from_ns, baseline_until_ns, window_from_ns, window_until_ns, moved, times, is_compared,
  is_unlike, before_usd, after_usd, before_calls, after_calls, chance_z, sessions_z, known_share
FROM judged
WHERE sessions_z >= $apart OR is_certain OR (known_share >= 0.5 AND known_count >= $several)
