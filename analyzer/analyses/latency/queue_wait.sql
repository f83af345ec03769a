-- Requests that waited for the model server, each with one cause. Time that is no queue comes first
-- (mislabelled), then room that others had (imbalance), then one large request in the way (head of
-- line), then what the engine's samples say (capacity, prefill work, admission limit), then what
-- the stays of the requests themselves say, and last what was said of waits beside it.
-- grain:   one row a request that waited
-- needs:   latency_queue_stay, latency_queue_ahead, latency_queue_state, latency_queue_passed, latency_queue_tilt, latency_queue_kind, resolve_capacity, resolve_deployment
-- param:   full_ratio = 0.95          -- from here on the cache is full whatever a request takes
-- param:   standing_share = 0.7       -- of the wait in which the batch must stand at its limit
-- param:   little_share = 0.3         -- of the wait at the largest batch: a limit is not why
-- param:   often_share = 0.6          -- of a server's long waits that must stand there, where no engine tells
-- param:   prompted_share = 0.9       -- of the wait with prompts in work, while the batch could be larger
-- param:   prompt_share = 0.5         -- of the time of those in service that prompts must take to explain a wait
-- param:   behind_share = 0.5         -- of the wait that one large prompt must take up
-- param:   few_passed = 2             -- requests begun while a prompt was in work: it was in nobody's way
-- param:   nearby_ns = 30000000000    -- a wait that its own samples do not explain is like its neighbours this near
-- param:   fewest_standing = 2        -- a batch of one is no limit that can be seen
-- param:   room_share = 0.9           -- of what the server held at other times: with less in service it had room
-- param:   small_tokens = 16384       -- pools of servers hold more: so little in service never fills one
-- returns: request_key BIGINT         -- the request
-- returns: start_ns BIGINT            -- when its wait began, on the server's clock, ns UTC
-- returns: queue_ns BIGINT            -- its wait, without loading a model, ns
-- returns: excess_ns BIGINT           -- wait beyond the case's own baseline, ns
-- returns: whole_ns BIGINT            -- its time to first token, or e2e, ns
-- returns: samples BIGINT             -- server samples during the wait with requests queued
-- returns: kv_used_ratio DOUBLE       -- highest KV use in them, 0 to 1
-- returns: kv_next_ratio DOUBLE       -- KV use if one more request had been let in, 0 to 1 and above
-- returns: running DOUBLE             -- mean batch in them, else in service by the requests' own stays
-- returns: waiting BIGINT             -- most requests queued in them
-- returns: prompt_ratio DOUBLE        -- share of the batch's time spent on prefill meanwhile, 0 to 1
-- returns: cause VARCHAR              -- mislabelled, imbalance, head of line, capacity, prefill work, admission limit or unknown
-- returns: detail VARCHAR             -- mislabelled: the kind; imbalance: whose requests wait
-- returns: blocker_key BIGINT         -- head of line: the request in the way
-- returns: told_by VARCHAR            -- samples, stays, neighbours or nothing: how the cause is known
WITH limits AS (
  SELECT CAST(min(max_running) AS DOUBLE) AS max_running FROM resolve_deployment WHERE max_running > 0
),
tilted AS (
  SELECT
    p.request_key,
    min_by(concat(t.dimension, ' ', t.value), CASE t.dimension WHEN 'deployment' THEN 1
      WHEN 'route' THEN 2 ELSE 3 END) AS detail
  FROM latency_queue_passed AS p
  JOIN latency_queue_stay AS s ON p.request_key = s.request_key
  JOIN latency_queue_tilt AS t
    ON t.is_tilted AND s.model = t.model AND (
      (t.dimension = 'deployment' AND t.value = p.deployment AND p.same_deployment = 0)
      OR (t.dimension = 'route' AND t.value = p.route AND p.same_route = 0)
      OR (t.dimension = 'tenant' AND t.value = p.tenant AND p.same_tenant = 0))
  GROUP BY p.request_key
),
facts AS (
  SELECT
    w.request_key, w.server, w.start_ns, w.admit_ns, w.queue_ns, w.excess_ns, w.whole_ns,
    coalesce(s.samples, 0) AS samples, s.kv_used_ratio, s.kv_next_ratio,
    coalesce(s.running, a.in_service) AS running, s.waiting, s.engine_cause,
    coalesce(s.prompt_ratio,
      least(a.prompt_ns / (w.queue_ns * greatest(a.in_service, 1)), CAST(1 AS DOUBLE)),
      CAST(0 AS DOUBLE)) AS prompt_ratio,
    a.largest, a.in_service, a.standing_ratio, a.prompted_ratio,
    -- A limit shows in most waits of a server; a batch of varying size stands somewhere by chance.
    avg(CASE WHEN a.standing_ratio >= $standing_share THEN CAST(1 AS DOUBLE) ELSE CAST(0 AS DOUBLE) END)
      OVER (PARTITION BY w.server) AS stood_share, a.held_tokens, a.most_tokens, a.large_ns,
    a.blocker_key, a.blocker_start_ns, a.blocker_admit_ns, a.blocker_prefilled_ns, a.passed,
    b.engine_cause AS blocker_cause,
    coalesce(k.kind, t.detail) AS detail,
    k.is_free, k.is_strong, t.detail IS NOT NULL AS is_tilted,
    w.input_tokens, c.capacity_tokens, l.max_running
  FROM latency_queue_stay AS w
  LEFT JOIN latency_queue_ahead AS a ON w.request_key = a.request_key
  LEFT JOIN latency_queue_state AS s ON w.request_key = s.request_key
  LEFT JOIN latency_queue_state AS b ON a.blocker_key = b.request_key
  LEFT JOIN latency_queue_kind AS k ON w.request_key = k.request_key
  LEFT JOIN tilted AS t ON w.request_key = t.request_key
  CROSS JOIN resolve_capacity AS c
  CROSS JOIN limits AS l
  WHERE w.is_long
),
judged AS (
  SELECT
    *,
    CASE
      WHEN is_free AND (is_strong OR coalesce(engine_cause, 'unknown') = 'unknown')
        AND coalesce(kv_used_ratio < $full_ratio, TRUE) THEN 'mislabelled'
      WHEN is_strong AND coalesce(engine_cause, '') <> 'capacity' THEN 'mislabelled'
      WHEN is_tilted THEN 'imbalance'
      WHEN coalesce(kv_used_ratio >= $full_ratio, FALSE) THEN 'capacity'
      -- Its prompt was in work for most of the wait, and hardly anybody got in beside it.
      WHEN large_ns >= $behind_share * queue_ns AND blocker_admit_ns <= admit_ns
        AND passed <= $few_passed THEN 'head of line'
      -- It was ahead and did not fit, while this one would have.
      WHEN blocker_start_ns <= start_ns AND blocker_cause = 'capacity'
        AND coalesce(engine_cause, '') <> 'capacity'
        AND blocker_admit_ns - start_ns >= $behind_share * queue_ns THEN 'head of line'
      ELSE engine_cause
    END AS own_cause,
    CASE
      WHEN held_tokens + coalesce(input_tokens, 0) > $full_ratio * capacity_tokens THEN 'capacity'
      WHEN prompt_ratio >= $prompt_share
        OR (prompted_ratio >= $prompted_share AND standing_ratio < $little_share) THEN 'prefill work'
      WHEN standing_ratio >= $standing_share AND stood_share >= $often_share
        AND largest >= $fewest_standing AND (
        coalesce(largest >= $standing_share * max_running, FALSE)
        OR (max_running IS NULL AND (
          capacity_tokens IS NOT NULL
          OR held_tokens + coalesce(input_tokens, 0) <= $room_share * most_tokens
          OR (input_tokens IS NOT NULL AND held_tokens + input_tokens <= $small_tokens))))
        THEN 'admission limit'
    END AS stay_cause
  FROM facts
),
told AS (
  SELECT
    *,
    coalesce(own_cause, CASE WHEN samples = 0 THEN stay_cause END) AS first_cause,
    CASE WHEN coalesce(own_cause, CASE WHEN samples = 0 THEN stay_cause END)
      IN ('capacity', 'prefill work', 'admission limit', 'unknown')
      THEN coalesce(own_cause, stay_cause) END AS state_cause
  FROM judged
),
-- A wait without an answer is like its neighbours.
neighbours AS (
  SELECT
    *,
    last_value(state_cause IGNORE NULLS) OVER before AS cause_before,
    last_value(CASE WHEN state_cause IS NOT NULL THEN start_ns END IGNORE NULLS) OVER before
      AS judged_before_ns,
    first_value(state_cause IGNORE NULLS) OVER behind AS cause_behind,
    first_value(CASE WHEN state_cause IS NOT NULL THEN start_ns END IGNORE NULLS) OVER behind
      AS judged_behind_ns
  FROM told
  WINDOW
    before AS (
      PARTITION BY server ORDER BY start_ns, request_key
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ),
    behind AS (
      PARTITION BY server ORDER BY start_ns, request_key
      ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
    )
),
near AS (
  SELECT
    *,
    CASE
      WHEN judged_behind_ns - start_ns <= $nearby_ns
        AND (judged_before_ns IS NULL OR judged_behind_ns - start_ns <= start_ns - judged_before_ns)
        THEN cause_behind
      WHEN start_ns - judged_before_ns <= $nearby_ns THEN cause_before
    END AS near_cause
  FROM neighbours
),
-- What its own stay speaks against is not taken over.
checked AS (
  SELECT
    *,
    CASE WHEN near_cause <> 'admission limit'
      OR NOT coalesce(standing_ratio < $little_share AND in_service >= 1, FALSE) THEN near_cause END
      AS taken_cause
  FROM near
)
SELECT
  request_key, start_ns, queue_ns, excess_ns, whole_ns, CAST(samples AS BIGINT) AS samples,
  kv_used_ratio, kv_next_ratio, running, waiting, prompt_ratio,
  coalesce(first_cause, taken_cause, 'unknown') AS cause,
  CASE WHEN first_cause IN ('mislabelled', 'imbalance') THEN detail END AS detail,
  CASE WHEN first_cause = 'head of line' THEN blocker_key END AS blocker_key,
  CASE
    WHEN own_cause IS NOT NULL AND own_cause = engine_cause THEN 'samples'
    WHEN first_cause IS NOT NULL THEN 'stays'
    WHEN taken_cause IS NOT NULL THEN 'neighbours'
    ELSE 'nothing'
  END AS told_by
FROM checked
