-- How far prompt processing follows the length of the prompt. Only tokens outside the cache are
-- processed, so only those are counted. Prefill where it is told, else the time to first token.
-- grain:   one row a request with a prompt length and a time to hold against it
-- needs:   resolve_request, latency_segment
-- param:   long_factor = 2             -- a long prompt has this many times the short ones' tokens
-- param:   short_factor = 1.5          -- a short prompt has at most this many
-- param:   slow_ns = 100000000         -- shorter excesses are no finding
-- param:   slow_share = 0.3            -- of all long prompts' time to first token that the excess must make up
-- returns: request_key BIGINT          -- the request
-- returns: start_ns BIGINT             -- its start, ns UTC
-- returns: prompt_tokens BIGINT        -- prompt tokens outside the cache
-- returns: prefill_ns BIGINT           -- prefill, or the time to first token, ns
-- returns: is_prefill BOOLEAN          -- it is a told prefill
-- returns: whole_ns BIGINT             -- time to first token, ns
-- returns: short_tokens DOUBLE         -- prompt tokens of the short requests of the case
-- returns: short_prefill_ns DOUBLE     -- their median time, ns
-- returns: correlation DOUBLE          -- of prompt length and time over the case, -1 to 1
-- returns: excess_ns BIGINT            -- time beyond the short ones' median, ns
-- returns: is_long BOOLEAN             -- long prompt that took long because of it
WITH timed AS (
  SELECT
    s.request_key, r.start_ns,
    r.input_fresh_tokens + coalesce(r.cache_write_tokens, 0) AS prompt_tokens,
    coalesce(s.prefill_ns, s.ttft_ns - coalesce(s.queue_ns, 0) - coalesce(s.network_ttft_ns, 0))
      AS prefill_ns,
    s.prefill_ns IS NOT NULL AS is_prefill,
    coalesce(s.ttft_ns, s.e2e_ns) AS whole_ns
  FROM latency_segment AS s
  JOIN resolve_request AS r ON s.request_key = r.request_key
),
usable AS (
  SELECT * FROM timed WHERE prompt_tokens IS NOT NULL AND prefill_ns IS NOT NULL
),
shape AS (
  SELECT
    CAST(percentile_cont(0.1) WITHIN GROUP (ORDER BY prompt_tokens) AS DOUBLE) AS short_tokens,
    corr(CAST(prompt_tokens AS DOUBLE), CAST(prefill_ns AS DOUBLE)) AS correlation
  FROM usable
),
short AS (
  SELECT
    CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY u.prefill_ns) AS DOUBLE) AS short_prefill_ns
  FROM usable AS u
  CROSS JOIN shape AS p
  WHERE u.prompt_tokens <= $short_factor * p.short_tokens
),
held_against AS (
  SELECT
    u.*, p.short_tokens, b.short_prefill_ns, p.correlation,
    CAST(u.prefill_ns - b.short_prefill_ns AS BIGINT) AS excess_ns
  FROM usable AS u
  CROSS JOIN shape AS p
  CROSS JOIN short AS b
),
candidates AS (
  SELECT
    *,
    coalesce(
      prompt_tokens >= $long_factor * short_tokens AND excess_ns >= $slow_ns, FALSE
    ) AS is_candidate
  FROM held_against
),
-- Long prompts are judged together: where they mostly wait for something else, that is the finding.
together AS (
  SELECT
    CAST(SUM(excess_ns) AS DOUBLE) / CASE WHEN SUM(whole_ns) > 0 THEN SUM(whole_ns) END AS weight
  FROM candidates
  WHERE is_candidate
)
SELECT
  c.request_key, c.start_ns, c.prompt_tokens, c.prefill_ns, c.is_prefill, c.whole_ns,
  c.short_tokens, c.short_prefill_ns, c.correlation, c.excess_ns,
  c.is_candidate AND coalesce(t.weight >= $slow_share, FALSE) AS is_long
FROM candidates AS c
CROSS JOIN together AS t
