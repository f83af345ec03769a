-- How far prompt processing follows the length of the prompt. Only tokens outside the cache are
-- processed, so only those are counted; a turn whose history was in the cache before and is not now
-- is no long prompt but a lost cache. Prefill where it is told, else modelled, else the time to
-- first token. Requests are held against short ones of the same model.
-- grain:   one row a request with a prompt length and a time to hold against it
-- needs:   resolve_request, latency_segment, latency_modelled, turns_loss
-- param:   long_factor = 2             -- a long prompt has this many times the short ones' tokens
-- param:   short_factor = 1.5          -- a short prompt has at most this many
-- param:   whole_share = 0.5           -- of the short ones' length with the cache: a prompt below it is not long, it was just not cached
-- param:   kept_share = 0.5            -- of the turn before that a working cache still holds
-- param:   lost_share = 0.5            -- of its tokens outside the cache: a lost cache, and no long prompt
-- param:   slow_ns = 100000000         -- shorter excesses are no finding
-- param:   slow_share = 0.3            -- of all long prompts' time to first token that the excess must make up
-- param:   together = 0.8              -- correlation from which on time follows length
-- returns: request_key BIGINT          -- the request
-- returns: start_ns BIGINT             -- its start, ns UTC
-- returns: model VARCHAR               -- its model; empty = not told
-- returns: prompt_tokens BIGINT        -- prompt tokens outside the cache
-- returns: prefill_ns BIGINT           -- prefill, or the time to first token, ns
-- returns: known VARCHAR               -- told, modelled, or ttft: what that time is
-- returns: whole_ns BIGINT             -- time to first token, ns
-- returns: short_tokens DOUBLE         -- prompt tokens of the short requests of the model
-- returns: short_prefill_ns DOUBLE     -- their median time, ns
-- returns: correlation DOUBLE          -- of prompt length and time over the model, -1 to 1
-- returns: excess_ns BIGINT            -- time beyond the short ones' median, ns
-- returns: is_lost BOOLEAN             -- its session's history fell out of the cache
-- returns: is_long BOOLEAN             -- long prompt that took long because of it
WITH cached AS (
  SELECT max(cache_read_tokens) AS most FROM resolve_request
),
turns AS (
  SELECT
    *,
    CASE WHEN session_id IS NOT NULL THEN lag(input_tokens) OVER (
      PARTITION BY session_id ORDER BY start_ns, request_key
    ) END AS before_tokens
  FROM resolve_request
),
timed AS (
  SELECT
    s.request_key, r.start_ns, coalesce(r.model, '') AS model,
    r.input_tokens,
    r.input_fresh_tokens + coalesce(r.cache_write_tokens, 0) AS prompt_tokens,
    coalesce(
      s.prefill_ns, m.prefill_ns,
      s.ttft_ns - coalesce(s.queue_ns, 0) - coalesce(s.network_ttft_ns, 0)
    ) AS prefill_ns,
    -- What was modelled from the length follows it by its making: what was seen has to.
    coalesce(s.prefill_ns, s.ttft_ns - coalesce(s.queue_ns, 0) - coalesce(s.network_ttft_ns, 0))
      AS seen_ns,
    CASE WHEN s.prefill_ns IS NOT NULL THEN 'told' WHEN m.prefill_ns IS NOT NULL THEN 'modelled'
      ELSE 'ttft' END AS known,
    coalesce(s.ttft_ns, s.e2e_ns) AS whole_ns,
    coalesce(
      c.most > 0 AND r.cache_read_tokens < $kept_share * r.before_tokens
        AND r.input_tokens >= r.before_tokens,
      FALSE
    ) OR coalesce(
      l.lost_tokens >= $lost_share * (r.input_fresh_tokens + coalesce(r.cache_write_tokens, 0)), FALSE
    ) AS is_lost,
    coalesce(l.lost_tokens, 0) AS lost_tokens
  FROM latency_segment AS s
  JOIN turns AS r ON s.request_key = r.request_key
  LEFT JOIN latency_modelled AS m ON s.request_key = m.request_key
  -- A cache that never served anything is not lost, and a compacted history is another prompt.
  LEFT JOIN turns_loss AS l
    ON s.request_key = l.request_key AND l.reason NOT IN ('off', 'compaction')
  CROSS JOIN cached AS c
),
usable AS (
  SELECT * FROM timed WHERE prompt_tokens IS NOT NULL AND prefill_ns IS NOT NULL
),
shape AS (
  SELECT
    model,
    CAST(percentile_cont(0.1) WITHIN GROUP (ORDER BY prompt_tokens) AS DOUBLE) AS short_tokens,
    corr(CAST(prompt_tokens AS DOUBLE), CAST(seen_ns AS DOUBLE)) AS correlation
  FROM usable
  GROUP BY model
),
short AS (
  SELECT
    u.model,
    CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY u.prefill_ns) AS DOUBLE) AS short_prefill_ns,
    CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY u.input_tokens) AS DOUBLE) AS short_input_tokens
  FROM usable AS u
  JOIN shape AS p ON u.model = p.model
  WHERE u.prompt_tokens <= $short_factor * p.short_tokens
  GROUP BY u.model
),
held_against AS (
  SELECT
    u.*, p.short_tokens, b.short_prefill_ns, b.short_input_tokens, p.correlation,
    CAST(u.prefill_ns - b.short_prefill_ns AS BIGINT) AS excess_ns
  FROM usable AS u
  JOIN shape AS p ON u.model = p.model
  JOIN short AS b ON u.model = b.model
),
candidates AS (
  SELECT
    *,
    coalesce(
      NOT is_lost AND excess_ns >= $slow_ns
        -- Long without what its cache lost, too.
        AND prompt_tokens - lost_tokens >= $long_factor * short_tokens
        AND input_tokens >= $whole_share * short_input_tokens
        -- A model stands only where requests with nobody ahead follow their length: queues beside
        -- it blur what was seen.
        AND (correlation >= $together OR known = 'modelled'),
      FALSE
    ) AS is_candidate
  FROM held_against
),
-- Long prompts are judged together: where they mostly wait for something else, that is the finding.
together AS (
  SELECT
    model, CAST(SUM(excess_ns) AS DOUBLE) / CASE WHEN SUM(whole_ns) > 0 THEN SUM(whole_ns) END AS weight
  FROM candidates
  WHERE is_candidate
  GROUP BY model
)
SELECT
  c.request_key, c.start_ns, c.model, c.prompt_tokens, c.prefill_ns, c.known, c.whole_ns,
  c.short_tokens, c.short_prefill_ns, c.correlation, c.excess_ns, c.is_lost,
  c.is_candidate AND coalesce(t.weight >= $slow_share, FALSE) AS is_long
FROM candidates AS c
LEFT JOIN together AS t ON c.model = t.model
