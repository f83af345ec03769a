-- Kinds of requests that alone wait, with nobody ahead of them: time booked as queue that is
-- something else. Nobody was ahead where later ones were served at once on the same path, where nobody
-- was in service, or far fewer than the server takes and no prompt of others in work. A kind is at fault only where the others do not wait like that.
-- grain:   one row a request and kind that may be why it waits
-- needs:   latency_queue_stay, latency_queue_ahead, latency_queue_passed, latency_queue_state, resolve_asked
-- param:   alone = 0.5             -- mean number in service below which nobody was ahead
-- param:   standing_share = 0.3  -- of the wait with as many in service as the server takes: less is no limit
-- param:   prompt_share = 0.5    -- of the wait with prompts of others in work: less is no prefill work
-- param:   pause_ns = 2000000000   -- a request this long after the last one ended comes after a pause
-- param:   same_ns = 5000000       -- the queue time is the client's hold, up to this or
-- param:   same_share = 0.05       -- this share of it
-- param:   kind_share = 0.5        -- of a kind's requests that must wait
-- param:   strong_share = 0.8      -- from which on the kind explains its waits whatever else was going on
-- param:   times_others = 5        -- how much more often they must wait than the others
-- param:   fewest = 2              -- waits of a kind, and requests of the others; fewer are chance
-- returns: request_key BIGINT      -- the request, which waited long
-- returns: kind VARCHAR            -- client hold, new schema, response format, tools or after a pause
-- returns: is_free BOOLEAN         -- nobody was ahead of it
-- returns: is_strong BOOLEAN       -- nearly all of its kind wait
WITH stays AS (
  SELECT
    s.*, a.response_format, a.schema_hash, a.tools_count,
    s.is_long AND coalesce(e.engine_cause, '') <> 'capacity' AND coalesce(
      p.own > 0 OR h.in_service < $alone
        OR (h.standing_ratio < $standing_share AND h.prompt_ns < $prompt_share * s.queue_ns),
      FALSE) AS is_free,
    first_value(s.admit_ns) OVER (
      PARTITION BY s.server, a.schema_hash ORDER BY s.start_ns, s.request_key
    ) AS schema_ready_ns,
    max(s.end_ns) OVER (
      PARTITION BY s.server ORDER BY s.start_ns, s.request_key
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS last_end_ns
  FROM latency_queue_stay AS s
  JOIN resolve_asked AS a ON s.request_key = a.request_key
  LEFT JOIN latency_queue_passed AS p ON s.request_key = p.request_key
  LEFT JOIN latency_queue_ahead AS h ON s.request_key = h.request_key
  LEFT JOIN latency_queue_state AS e ON s.request_key = e.request_key
),
kinds AS (
  SELECT request_key, 'new schema' AS kind, 1 AS choice, is_free, is_long FROM stays
  WHERE schema_hash IS NOT NULL AND start_ns < schema_ready_ns
  UNION ALL
  SELECT request_key, 'response format', 2, is_free, is_long FROM stays
  WHERE schema_hash IS NOT NULL OR response_format IS NOT NULL
  UNION ALL
  SELECT request_key, 'tools', 3, is_free, is_long FROM stays WHERE tools_count > 0
  UNION ALL
  SELECT request_key, 'after a pause', 4, is_free, is_long FROM stays
  WHERE start_ns - last_end_ns >= $pause_ns
),
all_of_them AS (
  SELECT
    count(*) AS requests, count(*) FILTER (WHERE is_free) AS free,
    count(*) FILTER (WHERE is_long) AS waited
  FROM stays
),
shares AS (
  SELECT
    k.kind, k.choice,
    CAST(count(*) FILTER (WHERE k.is_free) AS DOUBLE) / count(*) AS share,
    count(*) FILTER (WHERE k.is_free) AS free,
    CAST(count(*) FILTER (WHERE k.is_long) AS DOUBLE) / count(*) AS long_share,
    max(a.requests) - count(*) AS others,
    max(a.waited) - count(*) FILTER (WHERE k.is_long) AS other_waited,
    max(a.free) - count(*) FILTER (WHERE k.is_free) AS other_free
  FROM kinds AS k
  CROSS JOIN all_of_them AS a
  GROUP BY k.kind, k.choice
),
guilty AS (
  SELECT
    kind, choice,
    share >= $strong_share OR (long_share >= $strong_share
      AND long_share * others >= $times_others * other_waited) AS is_strong
  FROM shares
  WHERE free >= $fewest AND others >= $fewest AND share >= $kind_share
    AND share * others >= $times_others * other_free
),
chosen AS (
  SELECT
    k.request_key, k.kind, k.is_free, g.is_strong,
    row_number() OVER (PARTITION BY k.request_key ORDER BY g.choice) AS choice
  FROM kinds AS k
  JOIN guilty AS g ON k.kind = g.kind
  WHERE k.is_long
),
held AS (
  SELECT request_key FROM stays
  WHERE is_long AND hold_ns > 0
    AND abs(hold_ns - queue_ns) <= greatest($same_ns, $same_share * queue_ns)
)
SELECT request_key, 'client hold' AS kind, TRUE AS is_free, TRUE AS is_strong FROM held
UNION ALL
SELECT request_key, kind, is_free, is_strong FROM chosen
WHERE choice = 1 AND request_key NOT IN (SELECT request_key FROM held)
