-- Whether answers became longer at one moment, and what that costs at the observed time per token.
-- The moment is the split of a route in time that explains most of the variance of output tokens, on
-- a scale of ratios: lengths vary by factors, and a few very long answers are no change.
-- grain:   one row a request with output tokens and a time per token
-- needs:   resolve_request, latency_segment, latency_token, latency_law
-- param:   fewest = 10                   -- requests on each side of the split
-- param:   weak = 0.2                    -- variance that a split has to explain however many requests
-- param:   strong = 0.6                  -- and that is enough however few
-- param:   chance = 20                   -- over the requests: random lengths reach it in at most 2 of 15,000 trials
-- param:   factor = 1.5                  -- how much longer answers are after it
-- param:   own_share = 0.5               -- of the rise of e2e that the tokens have to make
-- returns: request_key BIGINT            -- the request
-- returns: route VARCHAR                 -- its route; empty = not told
-- returns: start_ns BIGINT               -- its start, ns UTC
-- returns: output_tokens BIGINT          -- visible and reasoning
-- returns: reasoning_tokens BIGINT       -- of them reasoning, where told
-- returns: e2e_ns BIGINT                 -- end to end, ns
-- returns: tpot_ns DOUBLE                -- time per output token, ns; of the linear law where its own is not told
-- returns: is_own_pace BOOLEAN           -- that time is its own
-- returns: is_after BOOLEAN              -- after the split of its route
-- returns: is_grown BOOLEAN              -- after it, in a route whose answers grew
-- returns: split_ns BIGINT               -- when answers changed, ns UTC
-- returns: explained DOUBLE              -- variance of output tokens, as ratios, that the split explains, 0 to 1
-- returns: before_tokens DOUBLE          -- mean output tokens before it
-- returns: after_tokens DOUBLE           -- mean output tokens after it
-- returns: before_tpot_ns DOUBLE         -- mean time per token before it, ns
-- returns: after_tpot_ns DOUBLE          -- mean time per token after it, ns
-- returns: before_e2e_ns DOUBLE          -- mean e2e before it, ns
-- returns: after_e2e_ns DOUBLE           -- mean e2e after it, ns
-- returns: excess_ns BIGINT              -- tokens beyond the mean before it, at this request's pace, ns
WITH timed AS (
  SELECT
    r.request_key, coalesce(r.route, '') AS route, r.start_ns, r.output_tokens,
    r.output_reasoning_tokens AS reasoning_tokens, s.e2e_ns,
    coalesce(t.tpot_ns, w.step_ns) AS tpot_ns, t.tpot_ns IS NOT NULL AS is_own_pace,
    ln(CAST(r.output_tokens AS DOUBLE)) AS size
  FROM resolve_request AS r
  JOIN latency_segment AS s ON r.request_key = s.request_key
  JOIN latency_token AS t ON r.request_key = t.request_key
  LEFT JOIN latency_law AS w
    ON coalesce(r.model, '') = w.model AND coalesce(r.route, '') = w.route AND w.refused IS NULL
  WHERE r.start_ns IS NOT NULL AND r.output_tokens > 0 AND s.e2e_ns IS NOT NULL AND NOT r.failed
    AND coalesce(t.tpot_ns, w.step_ns) IS NOT NULL
),
ordered AS (
  SELECT
    *,
    row_number() OVER so_far AS nth,
    SUM(size) OVER so_far AS running_size,
    count(*) OVER (PARTITION BY route) AS n,
    SUM(size) OVER (PARTITION BY route) AS all_size
  FROM timed
  WINDOW so_far AS (PARTITION BY route ORDER BY start_ns, request_key)
),
scatter AS (
  SELECT route, var_pop(size) AS variance FROM timed GROUP BY route
),
splits AS (
  SELECT
    route, nth, n,
    -- between-group variance n1 n2 (m2 - m1)^2 / n^2
    CAST(nth AS DOUBLE) * (n - nth) / n / n
      * power((all_size - running_size) / (n - nth) - running_size / nth, 2) AS between_variance
  FROM ordered
  WHERE nth >= $fewest AND n - nth >= $fewest
),
ranked AS (
  SELECT
    s.route, s.nth, s.n, s.between_variance / v.variance AS explained,
    row_number() OVER (PARTITION BY s.route ORDER BY s.between_variance DESC, s.nth) AS choice
  FROM splits AS s
  JOIN scatter AS v ON s.route = v.route
  WHERE v.variance > 0
),
sides AS (
  SELECT t.*, b.explained, t.nth > b.nth AS is_after
  FROM ordered AS t
  JOIN ranked AS b ON t.route = b.route AND b.choice = 1
),
levels AS (
  SELECT
    route,
    min(start_ns) FILTER (WHERE is_after) AS split_ns,
    avg(CAST(output_tokens AS DOUBLE)) FILTER (WHERE NOT is_after) AS before_tokens,
    avg(CAST(output_tokens AS DOUBLE)) FILTER (WHERE is_after) AS after_tokens,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY output_tokens) FILTER (WHERE NOT is_after)
      AS before_middle,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY output_tokens) FILTER (WHERE is_after)
      AS after_middle,
    avg(tpot_ns) FILTER (WHERE NOT is_after) AS before_tpot_ns,
    avg(tpot_ns) FILTER (WHERE is_after) AS after_tpot_ns,
    avg(CAST(e2e_ns AS DOUBLE)) FILTER (WHERE NOT is_after) AS before_e2e_ns,
    avg(CAST(e2e_ns AS DOUBLE)) FILTER (WHERE is_after) AS after_e2e_ns,
    max(explained) AS explained,
    max(n) AS n
  FROM sides
  GROUP BY route
),
judged AS (
  SELECT
    *,
    explained >= greatest($weak, least($strong, CAST($chance AS DOUBLE) / n))
      AND after_middle >= $factor * before_middle
      AND after_tokens >= $factor * before_tokens
      AND after_e2e_ns > before_e2e_ns
      AND (after_tokens - before_tokens) * before_tpot_ns
        >= $own_share * (after_e2e_ns - before_e2e_ns) AS is_growth
  FROM levels
)
SELECT
  s.request_key, s.route, s.start_ns, s.output_tokens, s.reasoning_tokens, s.e2e_ns, s.tpot_ns,
  s.is_own_pace, s.is_after, s.is_after AND l.is_growth AS is_grown, l.split_ns, s.explained,
  l.before_tokens, l.after_tokens, l.before_tpot_ns, l.after_tpot_ns, l.before_e2e_ns,
  l.after_e2e_ns,
  CASE WHEN s.is_after
    THEN CAST((s.output_tokens - l.before_tokens) * s.tpot_ns AS BIGINT) ELSE 0 END AS excess_ns
FROM sides AS s
JOIN judged AS l ON s.route = l.route
