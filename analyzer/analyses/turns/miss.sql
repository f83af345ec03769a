-- Calls whose time to first token rose because they read less from the cache than the call before them
-- had left there: what they took longer than with the cache. By what an uncached token takes on this
-- model and route; where that is not seen, against the calls of the model that did hit. Never more than
-- its prefill where that is measured, else than the call took beyond the quickest. Where a cache never
-- served anything, or the prompt was compacted, nothing could have been cached.
-- grain:   one row a call that lost tokens it could have read, with a time to first token
-- needs:   turns_loss, turns_loss_cost, turns_expected, turns_call, latency_segment, resolve_request
-- param:   near_all = 0.9               -- of what it could read, is a hit
-- param:   fewest_hits = 3              -- calls that hit, below which their time to first token is chance
-- param:   slow_ns = 20000000           -- shorter extra times are scatter
-- param:   slow_share = 0.2             -- of the time to first token, queue left out, that they must make up
-- returns: request_key BIGINT           -- the call
-- returns: at_ns BIGINT                 -- its start, ns
-- returns: reason VARCHAR               -- why it lost them, as in turns_loss
-- returns: confidence VARCHAR           -- of that: measured, derived or suspected
-- returns: could_tokens BIGINT          -- what it could have read
-- returns: read_tokens BIGINT           -- what it read
-- returns: lost_tokens BIGINT           -- what it read less
-- returns: ttft_ns BIGINT               -- its time to first token, ns
-- returns: extra_ns BIGINT              -- of it, for what was not in the cache, ns; NULL = cannot be told
-- returns: kept_ns BIGINT               -- what it would have been with the cache, ns
-- returns: known VARCHAR                -- rate (time an uncached token takes) or hits (calls that did hit)
-- returns: matters BOOLEAN              -- it waited noticeably longer
WITH timed AS (
  SELECT
    q.request_key, coalesce(q.model, '') AS model, coalesce(q.route, '') AS route,
    s.ttft_ns - coalesce(s.queue_ns, 0) AS first_ns, s.ttft_ns,
    CASE WHEN s.prefill_grade = 'measured' THEN s.prefill_ns END AS told_prefill_ns,
    e.read_tokens >= $near_all * e.could_tokens AND c.prior_key IS NOT NULL AND e.could_tokens > 0
      AS is_hit
  FROM resolve_request AS q
  JOIN latency_segment AS s ON q.request_key = s.request_key
  LEFT JOIN turns_expected AS e ON q.request_key = e.request_key
  LEFT JOIN turns_call AS c ON q.request_key = c.request_key
  WHERE s.ttft_ns IS NOT NULL AND NOT q.failed
),
usual AS (
  SELECT
    model, route, min(first_ns) AS quickest_ns,
    count(*) FILTER (WHERE is_hit) AS hits,
    CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY CASE WHEN is_hit THEN first_ns END) AS BIGINT)
      AS hit_ns
  FROM timed
  GROUP BY model, route
),
held_against AS (
  SELECT
    l.request_key, l.at_ns, l.reason, l.confidence, l.could_tokens, l.read_tokens, l.lost_tokens,
    t.ttft_ns, t.first_ns, t.told_prefill_ns, u.quickest_ns,
    CASE WHEN c.extra_ns IS NOT NULL THEN 'rate' WHEN u.hits >= $fewest_hits THEN 'hits' END AS known,
    CASE WHEN c.extra_ns IS NOT NULL THEN c.extra_ns
      WHEN u.hits >= $fewest_hits THEN t.first_ns - u.hit_ns END AS asked_ns
  FROM turns_loss AS l
  JOIN turns_loss_cost AS c ON l.request_key = c.request_key
  JOIN timed AS t ON l.request_key = t.request_key
  JOIN usual AS u ON t.model = u.model AND t.route = u.route
  -- A log that does not tell what was read does not show that it fell.
  WHERE l.reason NOT IN ('off', 'compaction') AND l.read_tokens IS NOT NULL
),
bounded AS (
  SELECT
    *,
    CASE
      WHEN asked_ns IS NULL THEN NULL
      WHEN asked_ns > coalesce(told_prefill_ns, first_ns - quickest_ns)
        THEN coalesce(told_prefill_ns, first_ns - quickest_ns)
      WHEN asked_ns < 0 THEN 0
      ELSE asked_ns
    END AS extra_ns
  FROM held_against
)
SELECT
  request_key, at_ns, reason, confidence, could_tokens, read_tokens, lost_tokens, ttft_ns, extra_ns,
  ttft_ns - extra_ns AS kept_ns, known,
  coalesce(extra_ns >= $slow_ns AND extra_ns >= $slow_share * first_ns, FALSE) AS matters
FROM bounded
