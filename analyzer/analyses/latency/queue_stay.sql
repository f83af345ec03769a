-- The stay of each request in its server: when it came, when the server began with it, when its
-- prompt was done and when it left; and whether its wait was long. Loading a model is no wait here.
-- grain:   one row a request whose queue time is known
-- needs:   resolve_request, resolve_vantage, latency_segment
-- param:   free_wait_ns = 50000000    -- up to this an unloaded scheduler may take
-- param:   long_wait_ns = 100000000   -- shorter waits are no finding
-- param:   wait_share = 0.2           -- of the time to first token that a wait must make up
-- returns: request_key BIGINT         -- the request
-- returns: server VARCHAR             -- its deployment; empty = not told
-- returns: model VARCHAR              -- its model; empty = not told
-- returns: route VARCHAR              -- its route; empty = not told
-- returns: start_ns BIGINT            -- its wait began, on the server's clock, ns UTC
-- returns: admit_ns BIGINT            -- the server began with it, ns UTC
-- returns: prefilled_ns BIGINT        -- its prompt was done, ns UTC
-- returns: end_ns BIGINT              -- it left, ns UTC
-- returns: queue_ns BIGINT            -- its wait without loading a model, ns
-- returns: load_ns BIGINT             -- loading a model, ns; NULL = not told
-- returns: hold_ns BIGINT             -- the client's wait before sending, ns; NULL = not told
-- returns: prefill_ns BIGINT          -- prompt processing, ns; NULL = not told
-- returns: input_tokens BIGINT        -- its prompt
-- returns: tokens BIGINT              -- what it holds in the cache at its end
-- returns: whole_ns BIGINT            -- its time to first token, or e2e, ns
-- returns: excess_ns BIGINT           -- wait beyond the case's own baseline, ns
-- returns: is_prompt BOOLEAN          -- it was served without a wait to speak of
-- returns: is_long BOOLEAN            -- it waited long
WITH loads AS (
  SELECT request_key, max(load_ns) AS load_ns
  FROM resolve_vantage
  WHERE load_ns > 0
  GROUP BY request_key
),
stays AS (
  SELECT
    s.request_key, coalesce(r.deployment, '') AS server, coalesce(r.model, '') AS model,
    coalesce(r.route, '') AS route,
    coalesce(s.server_start_ns, r.start_ns) AS came_ns,
    greatest(s.queue_ns - coalesce(l.load_ns, 0), 0) AS queue_ns,
    s.queue_ns AS told_ns, l.load_ns, s.hold_ns,
    coalesce(s.prefill_ns, coalesce(s.server_ttft_ns, s.ttft_ns) - s.queue_ns) AS prefill_ns,
    r.input_tokens, coalesce(r.input_tokens, 0) + coalesce(r.output_tokens, 0) AS tokens,
    coalesce(s.server_e2e_ns, s.e2e_ns) AS stay_ns, s.decode_ns, coalesce(s.ttft_ns, s.e2e_ns) AS whole_ns
  FROM latency_segment AS s
  JOIN resolve_request AS r ON s.request_key = r.request_key
  LEFT JOIN loads AS l ON s.request_key = l.request_key
  WHERE s.queue_ns IS NOT NULL
),
baseline AS (
  SELECT
    least(
      CAST(percentile_cont(0.1) WITHIN GROUP (ORDER BY queue_ns) AS BIGINT), $free_wait_ns
    ) AS usual_ns
  FROM stays
)
SELECT
  s.request_key, s.server, s.model, s.route,
  s.came_ns + s.told_ns - s.queue_ns AS start_ns,
  s.came_ns + s.told_ns AS admit_ns,
  s.came_ns + s.told_ns + greatest(coalesce(s.prefill_ns, 0), 0) AS prefilled_ns,
  -- By its parts where they are told: a front end before and behind them takes no place.
  s.came_ns + coalesce(
    s.told_ns + s.prefill_ns + s.decode_ns,
    greatest(coalesce(s.stay_ns, 0), s.told_ns + greatest(coalesce(s.prefill_ns, 0), 0)))
    AS end_ns,
  s.queue_ns, s.load_ns, s.hold_ns,
  CASE WHEN s.prefill_ns >= 0 THEN s.prefill_ns END AS prefill_ns,
  s.input_tokens, s.tokens, s.whole_ns,
  s.queue_ns - b.usual_ns AS excess_ns,
  s.told_ns - b.usual_ns <= $free_wait_ns AS is_prompt,
  s.queue_ns - b.usual_ns >= $long_wait_ns
    AND coalesce(s.queue_ns - b.usual_ns >= $wait_share * s.whole_ns, FALSE) AS is_long
FROM stays AS s
CROSS JOIN baseline AS b
