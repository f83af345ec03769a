-- Why a call read less from the cache than it could have. Shown by hashes or by the provider's counts
-- where there are any; what only fits is called suspected. An engine gives up the end of a prefix first,
-- so a shared head that is still read does not tell a changed prompt from an evicted one. Without hashes
-- the traffic meanwhile does: more than any prefix of the model survived, and not lost at the same token
-- after less.
-- grain:   one row a call that lost tokens it could have read
-- needs:   turns_call, turns_expected, turns_between, turns_kept, turns_changed_part, resolve_conversation, resolve_request, resolve_capacity, resolve_outage
-- param:   mostly = 0.5                     -- the larger part of a loss names it
-- param:   habit = 3                        -- losses of a thread at one token, that make a habit
-- param:   every = 0.8                      -- where they are this share of its calls
-- param:   head_tokens = 256                -- reading fewer is reading nothing: no beginning is shared
-- param:   idle_ns = 300000000000           -- where nothing is promised, shorter pauses are not held to be expiry
-- returns: request_key BIGINT               -- the call
-- returns: thread VARCHAR                   -- its thread
-- returns: session VARCHAR                  -- its conversation
-- returns: model VARCHAR                    -- its model
-- returns: at_ns BIGINT                     -- its start, ns
-- returns: lost_tokens BIGINT               -- what it read less than it could, unbroken
-- returns: could_tokens BIGINT              -- what it could read, had nothing in the prompt changed
-- returns: read_tokens BIGINT               -- what it read
-- returns: reason VARCHAR                   -- compaction, rewritten, model switch, tier switch, changed, expired, elsewhere, restart, evicted, off (this model's cache never served anything) or unknown
-- returns: confidence VARCHAR               -- measured, derived or suspected
-- returns: at_token BIGINT                  -- the prompt is known, or suspected, to differ from here on; NULL = it does not
-- returns: since_ns BIGINT                  -- since the prefix was last used, ns
-- returns: life_ns BIGINT                   -- how long it is kept, ns; NULL = nothing is promised
-- returns: uses_long BOOLEAN                -- the thread writes to the long-lived cache
-- returns: foreign_tokens BIGINT            -- computed for others meanwhile, tokens
-- returns: capacity_tokens BIGINT           -- tokens the cache holds; NULL = not told, or a provider's
-- returns: survived_ns BIGINT               -- longest idle time that a prefix of this model survived, ns
-- returns: diagnosis VARCHAR                -- the provider's own reason
-- returns: is_first_of_turn BOOLEAN         -- first call of a told turn
-- returns: idle_ns BIGINT                   -- since the thread's call before ended, ns
WITH lives AS (
  SELECT
    t.thread,
    sum(coalesce(v.write_long_tokens, 0)) > sum(coalesce(v.write_short_tokens, 0)) AS uses_long,
    count(t.prior_key) AS continued
  FROM turns_call AS t
  JOIN resolve_conversation AS v ON t.request_key = v.request_key
  GROUP BY t.thread
),
outages AS (
  SELECT e.request_key, count(*) AS outages
  FROM turns_between AS e
  JOIN turns_call AS c ON e.request_key = c.request_key
  JOIN resolve_outage AS o ON o.time_ns > c.at_ns - c.prior_since_ns AND o.time_ns <= c.at_ns
  WHERE c.clock = 'wall'
  GROUP BY e.request_key
),
told AS (
  SELECT
    c.request_key, c.clock, c.thread, c.session, c.model, c.at_ns, c.event, c.is_first_of_turn,
    c.idle_ns,
    c.prior_since_ns AS since_ns, e.lost_tokens, e.unbroken_tokens AS could_tokens,
    e.read_tokens, e.changed_tokens, e.gone_tokens, e.same_tokens, e.is_whole,
    v.diagnosis, k.vendor, k.is_used, l.uses_long, l.continued, b.foreign_tokens, b.could_be_emptied, b.survived_ns,
    b.survived_tokens,
    CASE WHEN l.uses_long THEN k.long_life_ns ELSE k.short_life_ns END AS life_ns,
    CASE WHEN k.vendor IN ('engine', 'unknown') AND NOT k.writes_told THEN p.capacity_tokens END
      AS capacity_tokens,
    e.read_tokens < $head_tokens AS read_nothing,
    coalesce(q.deployment, '') <> coalesce(r.deployment, coalesce(q.deployment, ''))
      OR coalesce(q.provider, '') <> coalesce(r.provider, coalesce(q.provider, ''))
      OR coalesce(q.route, '') <> coalesce(r.route, coalesce(q.route, '')) AS is_elsewhere,
    coalesce(v.tier, '') <> coalesce(w.tier, coalesce(v.tier, '')) AS is_other_tier,
    c.last_model <> c.model AND c.last_input_tokens >= c.input_tokens * $mostly AS is_back,
    coalesce(h.is_reason, NOT h.is_logged, FALSE) AS is_shown, coalesce(h.is_logged, FALSE) AS is_logged,
    h.is_reason,
    coalesce(v.diagnosis, '') IN ('system_changed', 'tools_changed', 'messages_changed',
      'input_changed', 'text_format_changed') AS is_diagnosed,
    o.outages IS NOT NULL AS has_outage
  FROM turns_expected AS e
  JOIN turns_call AS c ON e.request_key = c.request_key
  JOIN turns_between AS b ON e.request_key = b.request_key
  JOIN turns_kept AS k ON c.model = k.model
  JOIN lives AS l ON c.thread = l.thread
  JOIN resolve_conversation AS v ON e.request_key = v.request_key
  JOIN resolve_request AS q ON e.request_key = q.request_key
  LEFT JOIN resolve_conversation AS w ON c.prior_key = w.request_key
  LEFT JOIN resolve_request AS r ON c.prior_key = r.request_key
  LEFT JOIN outages AS o ON e.request_key = o.request_key
  LEFT JOIN turns_changed_part AS h ON e.request_key = h.request_key
  CROSS JOIN resolve_capacity AS p
  WHERE e.lost_tokens > 0
),
-- Losses at the same token that little traffic came before, of the thread or most of the model, or that
-- come with nearly every call.
counted AS (
  SELECT
    *,
    count(CASE WHEN is_quiet THEN 1 END) OVER (PARTITION BY clock, thread, model, read_tokens) > 0
      OR count(CASE WHEN is_quiet THEN 1 END) OVER (PARTITION BY clock, model, read_tokens)
        >= count(*) OVER (PARTITION BY clock, model, read_tokens) * $mostly
      OR count(*) OVER (PARTITION BY clock, thread, model, read_tokens)
        >= greatest(CAST($habit AS DOUBLE), continued * $every) AS is_habit
  FROM (
    SELECT *, event IS NULL AND foreign_tokens <= survived_tokens AS is_quiet FROM told
  ) AS weighed
),
reasoned AS (
  SELECT
    *,
    CASE
      WHEN NOT is_used THEN 'off'
      WHEN event = 'model switch' THEN 'model switch'
      WHEN event = 'compaction' THEN 'compaction'
      WHEN is_other_tier THEN 'tier switch'
      WHEN changed_tokens >= lost_tokens * $mostly THEN
        CASE WHEN event = 'shrunk' THEN 'rewritten' ELSE 'changed' END
      -- Another model served the calls in between, and nobody kept this one's prefix warm.
      WHEN is_back AND since_ns > coalesce(life_ns, $idle_ns)
        AND idle_ns <= coalesce(life_ns, $idle_ns) THEN 'model switch'
      WHEN since_ns > life_ns THEN 'expired'
      WHEN is_elsewhere THEN 'elsewhere'
      WHEN has_outage THEN 'restart'
      WHEN foreign_tokens + could_tokens > capacity_tokens AND (same_tokens IS NOT NULL
        OR since_ns < coalesce(life_ns, since_ns + 1)) THEN 'evicted'
      WHEN event = 'shrunk' THEN 'rewritten'
      WHEN life_ns IS NULL AND since_ns > $idle_ns
        AND (survived_ns IS NULL OR since_ns > survived_ns) AND vendor <> 'engine' THEN 'expired'
      WHEN same_tokens IS NULL AND (is_shown OR is_diagnosed) THEN 'changed'
      WHEN same_tokens IS NULL AND vendor = 'engine' AND foreign_tokens > survived_tokens
        AND NOT is_habit AND (NOT read_nothing OR NOT could_be_emptied) THEN 'evicted'
      WHEN same_tokens IS NULL AND NOT read_nothing THEN 'changed'
      -- No prefix lived through, and least recently used ones had not to go yet.
      WHEN is_whole AND vendor = 'engine' AND could_be_emptied
        AND (capacity_tokens IS NOT NULL OR foreign_tokens <= survived_tokens) THEN 'restart'
      WHEN is_whole AND vendor = 'engine' THEN 'evicted'
      ELSE 'unknown'
    END AS reason
  FROM counted
)
SELECT
  request_key, thread, session, model, at_ns, lost_tokens, could_tokens, read_tokens, reason,
  CASE
    WHEN reason IN ('model switch', 'tier switch', 'elsewhere') THEN 'derived'
    WHEN reason IN ('changed', 'off') AND same_tokens IS NOT NULL THEN 'measured'
    WHEN reason = 'changed' AND is_shown AND is_logged THEN 'measured'
    WHEN reason = 'changed' AND (is_diagnosed OR is_reason) THEN 'derived'
    WHEN reason = 'expired' AND life_ns IS NOT NULL THEN 'derived'
    WHEN reason = 'evicted' AND is_whole AND capacity_tokens IS NOT NULL
      AND foreign_tokens + could_tokens > capacity_tokens THEN 'derived'
    WHEN reason = 'restart' AND has_outage THEN 'derived'
    WHEN reason = 'compaction' THEN 'derived'
    ELSE 'suspected'
  END AS confidence,
  CASE
    WHEN reason IN ('changed', 'rewritten') THEN coalesce(same_tokens, read_tokens)
  END AS at_token,
  since_ns, life_ns, uses_long, foreign_tokens, capacity_tokens, survived_ns, diagnosis,
  is_first_of_turn, idle_ns
FROM reasoned
