-- How changes of a prompt come again: at every call, at every call after a pause, at a turn of the day,
-- or now and then. Counted in a thread from its first change on; threads too short to show it are taken
-- together.
-- grain:   one row a call that lost its prefix because the prompt changed
-- needs:   turns_loss, turns_call, turns_expected, turns_kept
-- param:   every = 0.8                      -- of the calls is every call
-- param:   fewest = 3                       -- changes that make a habit; one less may be an edit and its undoing
-- param:   often = 0.2                      -- of the calls, and not every call of a kind: again and again
-- param:   fewest_often = 8                 -- changes that are again and again; fewer happen by chance
-- param:   numbered = 0.9                   -- turns of fewer calls than one in nine more are calls, counted
-- param:   pause_ns = 15000000000           -- shorter gaps are no pause; tools answer within
-- param:   pooled = 0.6                     -- of the calls of short threads, as clean ones are among them
-- param:   day_ns = 86400000000000          -- a date changes once in it
-- returns: request_key BIGINT               -- the call
-- returns: thread VARCHAR                   -- its thread
-- returns: model VARCHAR                    -- its model
-- returns: pattern VARCHAR                  -- every call, every woken call, again and again, day change or single
-- returns: is_recurring BOOLEAN             -- one of the first three
-- returns: is_shown BOOLEAN                 -- recurring, or any where none of the case recurs
-- returns: changed BIGINT                   -- changes of the thread and model
-- returns: comparable BIGINT                -- calls that could have changed, of that kind (woken, or all), since the first of them
WITH calls AS (
  SELECT
    c.request_key, c.clock, c.thread, c.model, c.is_agent, c.at_ns, c.at_ns - c.prior_since_ns AS prior_ns,
    coalesce(c.prior_idle_ns, 0) AS idle_ns, coalesce(c.is_first_of_turn, FALSE) AS is_first,
    l.request_key IS NOT NULL AS is_changed,
    e.same_tokens IS NOT NULL OR k.vendor <> 'engine' AS is_sure,
    e.same_tokens IS NOT NULL OR k.writes_told AS is_counted
  FROM turns_expected AS e
  JOIN turns_call AS c ON e.request_key = c.request_key
  JOIN turns_kept AS k ON c.model = k.model
  LEFT JOIN turns_loss AS l ON e.request_key = l.request_key AND l.reason = 'changed'
  WHERE c.prior_key IS NOT NULL AND (e.lost_tokens = 0 OR l.request_key IS NOT NULL)
),
begun AS (
  SELECT
    *, min(CASE WHEN is_changed THEN at_ns END) OVER (PARTITION BY clock, thread, model) AS first_ns
  FROM calls
),
lanes AS (
  SELECT
    clock, thread, model,
    count(*) AS calls,
    count(CASE WHEN at_ns >= first_ns THEN 1 END) AS since_calls,
    count(CASE WHEN is_changed THEN 1 END) AS changed,
    count(CASE WHEN is_first AND at_ns >= first_ns THEN 1 END) AS turns,
    -- Some logs number each call.
    count(CASE WHEN is_first THEN 1 END) < count(*) * $numbered AS tells_turns,
    count(CASE WHEN is_first AND is_changed THEN 1 END) AS changed_turns,
    percentile_cont(0.1) WITHIN GROUP (ORDER BY CASE WHEN is_changed THEN idle_ns END) AS pause_ns,
    min(CASE WHEN is_sure THEN 1 ELSE 0 END) = 1 AS is_sure,
    min(CASE WHEN is_counted THEN 1 ELSE 0 END) = 1 AS is_counted,
    max(CASE WHEN is_changed THEN at_ns END) - min(CASE WHEN is_changed THEN prior_ns END) AS span_ns
  FROM begun
  GROUP BY clock, thread, model
),
paused AS (
  SELECT
    b.clock, b.thread, b.model,
    count(CASE WHEN b.at_ns >= b.first_ns THEN 1 END) AS pauses,
    count(CASE WHEN b.is_changed THEN 1 END) AS changed_pauses
  FROM begun AS b
  JOIN lanes AS l ON b.clock = l.clock AND b.thread = l.thread AND b.model = l.model
  WHERE l.changed >= $fewest AND l.pause_ns >= $pause_ns AND b.idle_ns >= l.pause_ns * 0.9
  GROUP BY b.clock, b.thread, b.model
),
-- A date turns at one time of the day, whatever the zone: is there one that all changes lie across?
-- Only where there is about one change a day.
rare AS (
  SELECT b.clock, b.thread, b.model, b.request_key, b.prior_ns, b.at_ns
  FROM begun AS b
  JOIN lanes AS l ON b.clock = l.clock AND b.thread = l.thread AND b.model = l.model
  WHERE b.is_changed AND l.changed * $every <= l.span_ns / CAST($day_ns AS DOUBLE) + 2
),
across AS (
  SELECT t.clock, t.thread, t.model, t.request_key, count(*) AS days
  FROM rare AS t
  JOIN rare AS r ON t.clock = r.clock AND t.thread = r.thread AND t.model = r.model
  WHERE (r.at_ns - t.at_ns % $day_ns + $day_ns) - (r.at_ns - t.at_ns % $day_ns + $day_ns) % $day_ns
    > (r.prior_ns - t.at_ns % $day_ns + $day_ns)
      - (r.prior_ns - t.at_ns % $day_ns + $day_ns) % $day_ns
  GROUP BY t.clock, t.thread, t.model, t.request_key
),
daily AS (
  SELECT clock, thread, model, max(days) AS days
  FROM across
  GROUP BY clock, thread, model
),
short AS (
  SELECT l.model, sum(l.calls) AS calls, sum(l.changed) AS changed
  FROM lanes AS l
  WHERE l.calls < $fewest * 2
  GROUP BY l.model
),
judged AS (
  SELECT
    l.clock, l.thread, l.model, l.changed, l.since_calls, l.turns, l.changed_turns, l.tells_turns,
    p.pauses,
    CASE
      WHEN l.changed > 1 AND d.days >= l.changed * $every THEN 'day change'
      WHEN l.changed >= $fewest AND l.changed >= l.since_calls * $every THEN 'every call'
      WHEN l.calls < $fewest * 2 AND s.changed >= $fewest AND s.changed >= s.calls * $pooled
        THEN 'every call'
      WHEN l.is_sure AND l.tells_turns AND l.changed_turns >= $fewest AND l.changed_turns >= l.turns * $every
        AND l.changed_turns >= l.changed * $every THEN 'every woken call'
      WHEN l.is_sure AND p.changed_pauses >= $fewest AND p.changed_pauses >= p.pauses * $every
        THEN 'every woken call'
      WHEN l.is_counted AND l.changed >= $fewest_often AND l.changed >= l.since_calls * $often
        THEN 'again and again'
      ELSE 'single'
    END AS pattern
  FROM lanes AS l
  LEFT JOIN paused AS p ON l.clock = p.clock AND l.thread = p.thread AND l.model = p.model
  LEFT JOIN daily AS d ON l.clock = d.clock AND l.thread = d.thread AND l.model = d.model
  LEFT JOIN short AS s ON l.model = s.model
  WHERE l.changed > 0
),
ruled AS (
  SELECT *, pattern NOT IN ('day change', 'single') AS is_recurring FROM judged
),
whole AS (
  SELECT coalesce(max(CASE WHEN is_recurring THEN 1 ELSE 0 END), 0) = 1 AS some_recur FROM ruled
)
SELECT
  c.request_key, c.thread, c.model, j.pattern,
  j.is_recurring,
  j.is_recurring OR NOT g.some_recur AS is_shown,
  j.changed,
  CASE WHEN j.pattern <> 'every woken call' THEN j.since_calls
    WHEN j.tells_turns AND j.changed_turns >= j.changed * $every THEN j.turns
    ELSE coalesce(j.pauses, j.since_calls) END AS comparable
FROM calls AS c
JOIN ruled AS j ON c.clock = j.clock AND c.thread = j.thread AND c.model = j.model
CROSS JOIN whole AS g
WHERE c.is_changed
