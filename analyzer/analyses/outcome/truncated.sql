-- Answers that were cut off at a limit on output: told by the finish reason, else by an output of
-- just the tokens that were asked for at most. Where neither is told, many answers of the very same
-- round length and none longer are suspected.
-- grain:   one row a request that was answered
-- needs:   resolve_request, latency_segment
-- param:   fewest_cut = 3                -- suspected: answers of the same greatest length
-- param:   least_tokens = 48             -- suspected: a limit nobody sets is lower
-- param:   round_tokens = 16             -- suspected: limits are multiples of this, or of 50
-- param:   many = 10                      -- answers from which on it means something that all end alike
-- returns: request_key BIGINT            -- the request
-- returns: start_ns BIGINT               -- its start, ns UTC
-- returns: e2e_ns BIGINT                 -- end to end, ns
-- returns: output_tokens BIGINT          -- visible and reasoning
-- returns: output_visible_tokens BIGINT  -- those the user sees
-- returns: limit_tokens BIGINT           -- limit asked for
-- returns: is_known BOOLEAN              -- its finish reason, or its limit and output, are told
-- returns: is_truncated BOOLEAN          -- it was cut off
-- returns: grade VARCHAR                 -- measured, derived or suspected
-- returns: is_asked BOOLEAN              -- so are nearly all of its model and route: their lengths are asked for
WITH answered AS (
  SELECT
    r.request_key, r.start_ns, s.e2e_ns, r.output_tokens, r.output_visible_tokens,
    r.max_output_tokens AS limit_tokens, r.finish_reason,
    concat(coalesce(r.model, ''), '/', coalesce(r.route, '')) AS lane
  FROM resolve_request AS r
  JOIN latency_segment AS s ON r.request_key = s.request_key
  WHERE NOT r.failed
),
longest AS (
  SELECT
    lane, max(output_tokens) AS most_tokens, count(output_tokens) AS answers,
    count(DISTINCT output_tokens) AS lengths
  FROM answered
  WHERE finish_reason IS NULL AND limit_tokens IS NULL
  GROUP BY lane
),
capped AS (
  SELECT l.lane, l.most_tokens
  FROM longest AS l
  JOIN answered AS a
    ON l.lane = a.lane AND a.output_tokens = l.most_tokens AND a.finish_reason IS NULL
    AND a.limit_tokens IS NULL
  WHERE l.most_tokens >= $least_tokens
    AND (l.most_tokens % $round_tokens = 0 OR l.most_tokens % 50 = 0)
  GROUP BY l.lane, l.most_tokens
  -- A length that comes by chance comes no more often than others.
  HAVING count(*) >= $fewest_cut AND count(*) * max(l.lengths) >= 3 * max(l.answers)
    AND 2 * count(*) <= max(l.answers)
),
judged AS (
  SELECT
    a.*,
    CASE
      WHEN a.finish_reason IN
        ('length', 'max_tokens', 'MAX_TOKENS', 'max_output_tokens', 'max_length', 'token_limit',
         'LENGTH', 'model_length', 'incomplete') THEN 'measured'
      WHEN a.finish_reason IS NULL AND a.output_tokens >= a.limit_tokens THEN 'derived'
      WHEN a.finish_reason IS NULL AND a.limit_tokens IS NULL AND c.lane IS NOT NULL
        AND a.output_tokens = c.most_tokens THEN 'suspected'
    END AS grade
  FROM answered AS a
  LEFT JOIN capped AS c ON a.lane = c.lane
),
lanes AS (
  SELECT
    lane, count(*) AS answers, count(grade) AS cut,
    count(*) FILTER (WHERE finish_reason IS NOT NULL OR limit_tokens IS NOT NULL) AS known
  FROM judged
  GROUP BY lane
)
SELECT
  j.request_key, j.start_ns, j.e2e_ns, j.output_tokens, j.output_visible_tokens, j.limit_tokens,
  j.finish_reason IS NOT NULL OR (j.limit_tokens IS NOT NULL AND j.output_tokens IS NOT NULL)
    AS is_known,
  j.grade IS NOT NULL AS is_truncated,
  j.grade,
  l.cut >= 0.98 * l.known AND l.known >= $many AS is_asked
FROM judged AS j
JOIN lanes AS l ON j.lane = l.lane
