-- The model behind modelled segments: time to first token = floor + prefill of the uncached prompt +
-- queue, fitted to requests that found nobody ahead of them. floor is the network and the server's
-- fixed time together: no client can tell them apart. Prefill is at least one step, and a rate per
-- token beyond. Where the data cannot carry the fit, refused says why. Fitted to a sample of each
-- group that is spread over its time, so its cost does not grow with the case.
-- grain:   one row a group of requests and a window in which its level holds
-- needs:   latency_modelled_point
-- param:   quiet_points = 300        -- requests of a group with nobody ahead that are fitted
-- param:   other_points = 100        -- others, for what it takes when there is somebody
-- python:  model -- a robust fit of a bent line is no aggregate
-- returns: model VARCHAR             -- model; empty = not told
-- returns: deployment VARCHAR        -- engine instance; empty = not told
-- returns: route VARCHAR             -- path taken; empty = not told
-- returns: vantage VARCHAR           -- whose time to first token it is
-- returns: from_ns BIGINT            -- start of the window, ns UTC
-- returns: until_ns BIGINT           -- its end, exclusive, ns UTC
-- returns: requests BIGINT           -- requests of the group that could shape the fit
-- returns: idle_requests BIGINT      -- of them, with nobody ahead when they were sent
-- returns: told_requests BIGINT      -- of the points, with queue and prefill told: they calibrate
-- returns: points BIGINT             -- points in the fit
-- returns: refused VARCHAR           -- why there is no model; NULL = there is one
-- returns: floor_ns DOUBLE           -- network and fixed server time, ns
-- returns: floor_low_ns DOUBLE       -- lower edge of its 90 % interval, ns
-- returns: floor_high_ns DOUBLE      -- upper edge, ns
-- returns: token_ns DOUBLE           -- prefill per uncached prompt token, ns
-- returns: token_low_ns DOUBLE       -- lower edge of its 90 % interval, ns
-- returns: token_high_ns DOUBLE      -- upper edge, ns
-- returns: pair_ns DOUBLE            -- per uncached token and token before it (attention), ns; 0 where unsupported
-- returns: fixed_ns DOUBLE           -- part of prefill that does not grow with the prompt, ns
-- returns: least_ns DOUBLE           -- shortest prefill: one step, ns
-- returns: busy_ns DOUBLE            -- prefill beyond that beside running answers, ns
-- returns: wait_ns DOUBLE            -- wait for the running step, in the floor, beside them, ns
-- returns: chunk_ns DOUBLE           -- longest step of a prompt in chunks, as assumed, ns
-- returns: spread DOUBLE             -- scatter of what the model explains, 1 deviation, relative
WITH placed AS (
  SELECT
    *, first_ns IS NULL OR first_ns <= start_ns OR queue_ns IS NOT NULL AS is_quiet
  FROM latency_modelled_point
  WHERE usable
),
groups AS (
  SELECT
    model, deployment, route, vantage, count(*) AS requests,
    count(*) FILTER (WHERE is_quiet) AS idle_requests,
    count(*) FILTER (WHERE queue_ns IS NULL OR prefill_ns IS NULL) AS untold
  FROM placed
  GROUP BY model, deployment, route, vantage
),
counted AS (
  SELECT
    p.*, g.requests, g.idle_requests,
    CASE WHEN p.is_quiet THEN g.idle_requests ELSE g.requests - g.idle_requests END AS alike,
    row_number() OVER (
      PARTITION BY p.model, p.deployment, p.route, p.vantage, p.is_quiet
      ORDER BY p.start_ns, p.request_key
    ) AS nth
  FROM placed AS p
  JOIN groups AS g
    ON p.model = g.model AND p.deployment = g.deployment AND p.route = g.route
    AND p.vantage = g.vantage
  WHERE g.untold > 0
)
SELECT
  model, deployment, route, vantage, start_ns, ttft_ns, queue_ns, prefill_ns, fresh_tokens,
  cached_tokens, step_ns, first_ns, last_ns, next_ns, requests, idle_requests
FROM counted
WHERE nth * CASE WHEN is_quiet THEN $quiet_points ELSE $other_points END % alike
    < CASE WHEN is_quiet THEN $quiet_points ELSE $other_points END
ORDER BY model, deployment, route, vantage, start_ns, request_key
