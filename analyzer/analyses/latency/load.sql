-- What each request waited for a model to be loaded, and why it was not there. A load is told by the
-- request, else by the server's log beside it; where neither tells anything, first tokens that are
-- slow after long pauses and after no others are suspected. A lane is one model of one server.
-- The limit of a lane is the pause that parts requests that found the model from those that did not.
-- grain:   one row a request with a start
-- needs:   resolve_request, resolve_vantage, latency_segment, engine_event
-- param:   long_ns = 500000000            -- a model that is in memory is found in milliseconds, none is read from disk in less
-- param:   slack_ns = 1500000000          -- lines of some logs know whole seconds only
-- param:   settle_ns = 60000000000        -- a load goes on with what is compiled within a minute
-- param:   rarer = 4                      -- times as rare as above the limit of pauses that reloads below it must be
-- param:   slow_ns = 2000000000           -- suspected: a connection that was closed meanwhile costs less
-- param:   slow_factor = 3                -- suspected: and this many times the usual first token
-- param:   slow_spread = 8                -- suspected: and this many deviations above it
-- param:   short_pause_ns = 10000000000   -- suspected: nobody stops a server after less
-- returns: request_key BIGINT             -- the request
-- returns: start_ns BIGINT                -- its start, ns UTC
-- returns: lane VARCHAR                   -- server and model
-- returns: e2e_ns BIGINT                  -- end to end, ns
-- returns: load_ns BIGINT                 -- what it waited for a load, ns; NULL = nothing tells
-- returns: is_told BOOLEAN                -- a source tells it, or tells loads of its server
-- returns: kind VARCHAR                   -- none, first (of the lane), idle, replaced (by another model), restart or other
-- returns: grade VARCHAR                  -- measured, derived, suspected or absent
-- returns: load_key BIGINT                -- the request that caused the load it waited for
-- returns: is_shared BOOLEAN              -- it came while that load was under way
-- returns: pause_ns BIGINT                -- since the lane was last in use, ns; NULL = never before
-- returns: is_bare BOOLEAN                -- found its model after that pause, and no load under way
-- returns: limit_ns BIGINT                -- longest pause of the lane up to which models stay, ns; NULL = no such rule
-- returns: unload_after_ns BIGINT         -- from its last use to the unload before this load, where logged, ns
WITH told AS (
  SELECT request_key, max(load_ns) AS load_ns
  FROM resolve_vantage
  GROUP BY request_key
),
asked AS (
  SELECT
    r.request_key, r.start_ns, s.e2e_ns, t.load_ns AS told_ns,
    coalesce(r.deployment, '') AS server,
    concat(coalesce(r.deployment, ''), '/', coalesce(r.model, '')) AS lane,
    coalesce(s.server_start_ns, r.start_ns) AS on_server_ns,
    coalesce(s.ttft_ns, s.e2e_ns) AS first_ns,
    r.input_fresh_tokens + coalesce(r.cache_write_tokens, 0) AS uncached_tokens,
    r.start_ns + coalesce(s.e2e_ns, 0) AS end_ns
  FROM resolve_request AS r
  JOIN latency_segment AS s ON r.request_key = s.request_key
  LEFT JOIN told AS t ON r.request_key = t.request_key
  WHERE r.start_ns IS NOT NULL
),
tellers AS (
  SELECT server, lane, count(told_ns) AS told FROM asked GROUP BY server, lane
),
starts AS (
  SELECT
    source_id, kind, time_ns AS begin_ns, time_ns + dur_ns AS end_ns, dur_ns, record,
    max(time_ns + dur_ns) OVER (
      PARTITION BY source_id ORDER BY time_ns, record
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before_ns
  FROM engine_event
  WHERE kind IN ('load', 'compile') AND dur_ns IS NOT NULL AND time_ns IS NOT NULL
),
numbered AS (
  SELECT
    source_id, kind, begin_ns, end_ns,
    SUM(CASE WHEN before_ns IS NULL OR (kind = 'load' AND begin_ns > before_ns)
      OR begin_ns > before_ns + $settle_ns THEN 1 ELSE 0 END)
      OVER (PARTITION BY source_id ORDER BY begin_ns, record) AS nth
  FROM starts
),
logged AS (
  SELECT
    source_id, nth, min(begin_ns) FILTER (WHERE kind = 'load') AS begin_ns, max(end_ns) AS end_ns
  FROM numbered
  GROUP BY source_id, nth
  HAVING count(*) FILTER (WHERE kind = 'load') > 0 AND max(end_ns) - min(begin_ns) >= $long_ns
),
-- A load that requests tell themselves needs no line of the log.
unsaid AS (
  SELECT l.source_id, l.nth, l.begin_ns, l.end_ns
  FROM logged AS l
  LEFT JOIN asked AS a
    ON a.told_ns >= $long_ns AND a.on_server_ns + a.told_ns >= l.end_ns - $slack_ns
    AND a.on_server_ns + a.told_ns <= l.end_ns + $slack_ns
  WHERE a.request_key IS NULL
),
seen AS (
  SELECT a.request_key, max(least(l.end_ns - a.on_server_ns, l.end_ns - l.begin_ns)) AS seen_ns
  FROM asked AS a
  JOIN unsaid AS l
    ON a.on_server_ns >= l.begin_ns - $slack_ns AND a.on_server_ns < l.end_ns
    AND a.on_server_ns + a.first_ns >= l.end_ns - $slack_ns
  WHERE a.told_ns IS NULL
  GROUP BY a.request_key
),
loads_logged AS (
  SELECT count(*) AS loads FROM logged
),
timed AS (
  SELECT
    a.*, t.told > 0 AS lane_tells,
    CASE
      WHEN a.told_ns IS NOT NULL THEN 'measured'
      WHEN s.seen_ns IS NOT NULL OR (t.told = 0 AND g.loads > 0) THEN 'derived'
      ELSE 'absent'
    END AS grade,
    coalesce(a.told_ns, s.seen_ns, CASE WHEN t.told = 0 AND g.loads > 0 THEN 0 END) AS known_ns,
    row_number() OVER (PARTITION BY a.lane ORDER BY a.start_ns, a.request_key) AS nth,
    a.start_ns - max(a.end_ns) OVER (
      PARTITION BY a.lane ORDER BY a.start_ns, a.request_key
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS since_ns,
    lag(a.start_ns) OVER (PARTITION BY a.lane ORDER BY a.start_ns, a.request_key) AS used_ns
  FROM asked AS a
  JOIN tellers AS t ON a.lane = t.lane
  LEFT JOIN seen AS s ON a.request_key = s.request_key
  CROSS JOIN loads_logged AS g
),
usual AS (
  SELECT
    lane,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY first_ns) AS first_ns,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY uncached_tokens) AS uncached_tokens
  FROM timed
  WHERE grade = 'absent'
  GROUP BY lane
),
spread AS (
  SELECT t.lane, percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(t.first_ns - u.first_ns)) AS off_ns
  FROM timed AS t
  JOIN usual AS u ON t.lane = u.lane
  WHERE t.grade = 'absent'
  GROUP BY t.lane
),
paused AS (
  SELECT
    t.*, greatest(t.since_ns, 0) AS pause_ns,
    CASE
      WHEN t.grade <> 'absent' THEN t.known_ns
      WHEN t.lane_tells THEN NULL
      -- A prompt of which more is computed than usual takes longer by itself.
      WHEN t.first_ns - u.first_ns >= $slow_ns AND t.first_ns >= $slow_factor * u.first_ns
        AND t.first_ns - u.first_ns >= $slow_spread * p.off_ns
        AND coalesce(t.uncached_tokens <= 2 * u.uncached_tokens, TRUE)
        THEN CAST(t.first_ns - u.first_ns AS BIGINT)
      ELSE 0
    END AS load_ns
  FROM timed AS t
  LEFT JOIN usual AS u ON t.lane = u.lane
  LEFT JOIN spread AS p ON t.lane = p.lane
),
windows AS (
  SELECT
    *,
    load_ns >= $long_ns AS is_load,
    max(CASE WHEN load_ns >= $long_ns THEN start_ns + load_ns END) OVER (
      PARTITION BY lane ORDER BY start_ns, request_key
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS loaded_until_ns,
    -- The last load on the server before this request.
    max(CASE WHEN load_ns >= $long_ns THEN start_ns END) OVER (
      PARTITION BY server ORDER BY start_ns, request_key
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS last_load_ns,
    lag(lane) OVER (PARTITION BY server ORDER BY start_ns, request_key) AS before_lane
  FROM paused
),
-- Models that were found right after the use of another: both fit beside each other.
beside AS (
  SELECT DISTINCT lane, before_lane
  FROM windows
  WHERE before_lane <> lane AND nth > 1 AND NOT is_load
),
whose AS (
  SELECT server, start_ns, min(lane) AS lane FROM windows WHERE is_load GROUP BY server, start_ns
),
led AS (
  SELECT
    *,
    coalesce(is_load, FALSE) AND coalesce(start_ns < loaded_until_ns, FALSE) AS is_shared,
    coalesce(is_load, FALSE) AND NOT coalesce(start_ns < loaded_until_ns, FALSE) AS is_leader
  FROM windows
),
loading AS (
  SELECT
    *,
    max(CASE WHEN is_leader THEN nth END) OVER (
      PARTITION BY lane ORDER BY start_ns, request_key
    ) AS leader_nth
  FROM led
),
happened AS (
  SELECT
    l.request_key,
    count(*) FILTER (WHERE e.kind IN ('restart', 'crash', 'out_of_memory')) AS restarts,
    max(e.time_ns) FILTER (WHERE e.kind = 'unload') AS unload_ns
  FROM loading AS l
  JOIN engine_event AS e
    ON e.kind IN ('restart', 'crash', 'out_of_memory', 'unload') AND e.time_ns IS NOT NULL
    AND e.time_ns > l.on_server_ns - l.pause_ns AND e.time_ns <= l.on_server_ns + $slack_ns
  WHERE l.is_leader AND l.pause_ns IS NOT NULL
  GROUP BY l.request_key
),
caused AS (
  SELECT
    l.*,
    CASE WHEN h.unload_ns IS NOT NULL THEN h.unload_ns - (l.on_server_ns - l.pause_ns) END
      AS unload_after_ns,
    CASE
      WHEN NOT l.is_leader THEN NULL
      WHEN l.nth = 1 THEN 'first'
      WHEN h.restarts > 0 THEN 'restart'
      WHEN w.lane <> l.lane AND l.last_load_ns >= l.used_ns AND b.lane IS NULL
        THEN 'replaced'
      ELSE 'open'
    END AS cause
  FROM loading AS l
  LEFT JOIN happened AS h ON l.request_key = h.request_key
  LEFT JOIN whose AS w ON l.server = w.server AND l.last_load_ns = w.start_ns
  LEFT JOIN beside AS b ON l.lane = b.lane AND w.lane = b.before_lane
),
-- For each pause of a lane: how many requests a limit there would get wrong.
judged AS (
  SELECT
    lane, pause_ns, request_key,
    CASE WHEN cause = 'open' THEN 1 ELSE 0 END AS reload,
    SUM(CASE WHEN cause = 'open' THEN 1 ELSE 0 END) OVER (
      PARTITION BY lane ORDER BY pause_ns, request_key
    ) AS reloads_below,
    SUM(CASE WHEN cause IS NULL THEN 1 ELSE 0 END) OVER (
      PARTITION BY lane ORDER BY pause_ns, request_key
    ) AS bare_below,
    SUM(CASE WHEN cause = 'open' THEN 1 ELSE 0 END) OVER (PARTITION BY lane) AS reloads,
    SUM(CASE WHEN cause IS NULL THEN 1 ELSE 0 END) OVER (PARTITION BY lane) AS bare,
    lead(pause_ns) OVER (PARTITION BY lane ORDER BY pause_ns, request_key) AS next_ns
  FROM caused
  WHERE pause_ns IS NOT NULL AND load_ns IS NOT NULL AND NOT is_shared
    AND (cause = 'open' OR cause IS NULL)
),
cuts AS (
  SELECT
    lane, pause_ns AS limit_ns, reloads_below + bare - bare_below AS wrong,
    reloads - reloads_below AS reloads_above, bare - bare_below AS bare_above, reloads_below,
    bare_below
  FROM judged
  WHERE next_ns IS NULL OR next_ns > pause_ns
  UNION ALL
  SELECT lane, CAST(0 AS BIGINT), max(bare), max(reloads), max(bare), CAST(0 AS BIGINT), CAST(0 AS BIGINT)
  FROM judged
  GROUP BY lane
  HAVING min(pause_ns) > 0
),
ranked AS (
  SELECT
    *, row_number() OVER (PARTITION BY lane ORDER BY wrong, limit_ns) AS choice
  FROM cuts
),
limits AS (
  SELECT lane, limit_ns, reloads_above, bare_above, reloads_below
  FROM ranked
  WHERE choice = 1 AND reloads_above > 0 AND reloads_above >= bare_above
    -- Where reloads are nearly as frequent below it, the pause is not what decides.
    AND $rarer * reloads_below * (reloads_above + bare_above)
      <= reloads_above * (reloads_below + bare_below)
),
-- Nothing is suspected of a lane whose slow requests do not keep to the pauses.
found AS (
  SELECT
    c.*, m.limit_ns,
    CASE
      WHEN c.cause <> 'open' THEN c.cause
      WHEN c.pause_ns > m.limit_ns THEN 'idle'
      WHEN c.cause = 'open' THEN 'other'
    END AS found_kind,
    c.grade = 'absent' AND NOT coalesce(
      m.limit_ns IS NOT NULL AND m.reloads_above >= 2 AND 5 * m.bare_above <= m.reloads_above
        AND 5 * m.reloads_below <= m.reloads_above,
      FALSE
    ) AS is_guess
  FROM caused AS c
  LEFT JOIN limits AS m ON c.lane = m.lane
),
leaders AS (
  SELECT lane, nth, request_key, found_kind, unload_after_ns, pause_ns
  FROM found
  WHERE is_leader
)
SELECT
  f.request_key, f.start_ns, f.lane, f.e2e_ns,
  CASE WHEN f.grade = 'absent' AND (f.is_guess OR f.load_ns = 0) THEN NULL ELSE f.load_ns END
    AS load_ns,
  f.grade <> 'absent' AS is_told,
  CASE
    WHEN NOT coalesce(f.is_load, FALSE) OR f.is_guess THEN 'none'
    WHEN f.grade = 'absent' AND (l.found_kind <> 'idle' OR l.pause_ns < $short_pause_ns) THEN 'none'
    ELSE l.found_kind
  END AS kind,
  CASE WHEN f.grade = 'absent' AND f.is_load AND NOT f.is_guess AND l.found_kind = 'idle'
    THEN 'suspected' ELSE f.grade END AS grade,
  CASE WHEN f.is_load THEN l.request_key END AS load_key,
  f.is_shared,
  f.pause_ns,
  NOT coalesce(f.is_load, FALSE) AND f.load_ns IS NOT NULL AS is_bare,
  CASE WHEN f.is_guess THEN NULL ELSE f.limit_ns END AS limit_ns,
  l.unload_after_ns
FROM found AS f
LEFT JOIN leaders AS l ON f.lane = l.lane AND f.leader_nth = l.nth
