-- Whether answers became longer at one moment, and what that costs at the observed time per token.
-- The moment is the split of the case in time that explains most of the variance of output tokens.
-- grain:   one row a request with output tokens and a time per token
-- needs:   resolve_request, latency_segment, latency_token
-- param:   fewest = 10                   -- requests on each side of the split
-- returns: request_key BIGINT            -- the request
-- returns: start_ns BIGINT               -- its start, ns UTC
-- returns: output_tokens BIGINT          -- visible and reasoning
-- returns: e2e_ns BIGINT                 -- end to end, ns
-- returns: tpot_ns DOUBLE                -- time per output token, ns
-- returns: is_after BOOLEAN              -- after the split
-- returns: split_ns BIGINT               -- when answers changed, ns UTC
-- returns: explained DOUBLE              -- variance of output tokens that the split explains, 0 to 1
-- returns: before_tokens DOUBLE          -- mean output tokens before it
-- returns: after_tokens DOUBLE           -- mean output tokens after it
-- returns: before_tpot_ns DOUBLE         -- mean time per token before it, ns
-- returns: after_tpot_ns DOUBLE          -- mean time per token after it, ns
-- returns: before_e2e_ns DOUBLE          -- mean e2e before it, ns
-- returns: after_e2e_ns DOUBLE           -- mean e2e after it, ns
-- returns: excess_ns BIGINT              -- tokens beyond the mean before it, at this request's pace, ns
WITH timed AS (
  SELECT
    r.request_key, r.start_ns, r.output_tokens, s.e2e_ns, t.tpot_ns,
    row_number() OVER (ORDER BY r.start_ns, r.request_key) AS nth,
    count(*) OVER () AS n,
    SUM(r.output_tokens) OVER (ORDER BY r.start_ns, r.request_key) AS running_tokens,
    SUM(r.output_tokens) OVER () AS all_tokens
  FROM resolve_request AS r
  JOIN latency_segment AS s ON r.request_key = s.request_key
  JOIN latency_token AS t ON r.request_key = t.request_key
  WHERE r.start_ns IS NOT NULL AND r.output_tokens IS NOT NULL AND t.tpot_ns IS NOT NULL
    AND s.e2e_ns IS NOT NULL
),
scatter AS (
  SELECT var_pop(CAST(output_tokens AS DOUBLE)) AS variance FROM timed
),
splits AS (
  SELECT
    nth, start_ns,
    -- between-group variance n1 n2 (m2 - m1)^2 / n^2
    CAST(nth AS DOUBLE) * (n - nth) / n / n
      * power(
        CAST(all_tokens - running_tokens AS DOUBLE) / (n - nth)
          - CAST(running_tokens AS DOUBLE) / nth,
        2
      ) AS between_variance
  FROM timed
  WHERE nth >= $fewest AND n - nth >= $fewest
),
best AS (
  SELECT s.nth, s.between_variance / v.variance AS explained
  FROM splits AS s
  CROSS JOIN scatter AS v
  WHERE v.variance > 0
  ORDER BY s.between_variance DESC, s.nth
  LIMIT 1
),
sides AS (
  SELECT t.*, b.explained, t.nth > b.nth AS is_after
  FROM timed AS t
  CROSS JOIN best AS b
),
levels AS (
  SELECT
    min(start_ns) FILTER (WHERE is_after) AS split_ns,
    avg(CAST(output_tokens AS DOUBLE)) FILTER (WHERE NOT is_after) AS before_tokens,
    avg(CAST(output_tokens AS DOUBLE)) FILTER (WHERE is_after) AS after_tokens,
    avg(tpot_ns) FILTER (WHERE NOT is_after) AS before_tpot_ns,
    avg(tpot_ns) FILTER (WHERE is_after) AS after_tpot_ns,
    avg(CAST(e2e_ns AS DOUBLE)) FILTER (WHERE NOT is_after) AS before_e2e_ns,
    avg(CAST(e2e_ns AS DOUBLE)) FILTER (WHERE is_after) AS after_e2e_ns
  FROM sides
)
SELECT
  s.request_key, s.start_ns, s.output_tokens, s.e2e_ns, s.tpot_ns, s.is_after, l.split_ns,
  s.explained, l.before_tokens, l.after_tokens, l.before_tpot_ns, l.after_tpot_ns,
  l.before_e2e_ns, l.after_e2e_ns,
  CASE WHEN s.is_after
    THEN CAST((s.output_tokens - l.before_tokens) * s.tpot_ns AS BIGINT) ELSE 0 END AS excess_ns
FROM sides AS s
CROSS JOIN levels AS l
