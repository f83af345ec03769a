-- How long a client kept requests back before it sent them. Latency that is counted from the send
-- leaves this out (coordinated omission): users waited from the moment the request was due. How many
-- were open at each send says whether a limit of the client's own kept them.
-- grain:   one row a request that a client tells, with a start
-- needs:   resolve_request, resolve_vantage, latency_segment
-- param:   held_ns = 100000000          -- below this a timer or a busy loop explains it
-- param:   held_share = 0.05            -- of the time from due to end that the wait must make up
-- param:   follows_ns = 50000000        -- sent so soon after another's end, it had waited for that
-- returns: request_key BIGINT           -- the request
-- returns: start_ns BIGINT              -- when it was sent, ns UTC
-- returns: hold_ns BIGINT               -- wait before it was sent, ns; NULL = not told
-- returns: e2e_ns BIGINT                -- from the send to the end, ns
-- returns: ttft_ns BIGINT               -- from the send to the first token, ns
-- returns: due_ttft_ns BIGINT           -- from when it was due to the first token, ns
-- returns: due_e2e_ns BIGINT            -- from when it was due to the end, ns
-- returns: open_requests BIGINT         -- requests of this client's log under way once it was sent, itself included
-- returns: most_open_requests BIGINT    -- the most that ever were
-- returns: is_held BOOLEAN              -- it was kept back noticeably
-- returns: follows_end BOOLEAN          -- it was sent as another one ended
WITH sent AS (
  SELECT
    r.request_key, r.source, v.start_ns, v.hold_ns, v.e2e_ns, s.ttft_ns,
    v.start_ns + coalesce(v.e2e_ns, 0) AS end_ns,
    max(v.start_ns + coalesce(v.e2e_ns, 0)) OVER (
      PARTITION BY coalesce(r.operation_id, r.id) ORDER BY v.start_ns, r.request_key
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS tried_until_ns
  FROM resolve_request AS r
  JOIN resolve_vantage AS v ON r.request_key = v.request_key AND v.vantage = 'client'
  JOIN latency_segment AS s ON r.request_key = s.request_key
  WHERE v.start_ns IS NOT NULL
),
moments AS (
  SELECT source, request_key, start_ns AS at_ns, 1 AS step FROM sent
  UNION ALL
  SELECT source, request_key, end_ns, -1 FROM sent
),
counted AS (
  SELECT
    source, request_key, step, at_ns,
    -- What ends at the same moment has made way.
    SUM(step) OVER (PARTITION BY source ORDER BY at_ns, step, request_key) AS open_requests,
    max(CASE WHEN step < 0 THEN at_ns END) OVER (
      PARTITION BY source ORDER BY at_ns, step, request_key
    ) AS last_end_ns
  FROM moments
),
known AS (
  SELECT
    s.request_key, s.source, s.start_ns, s.e2e_ns, s.ttft_ns,
    -- A retry waits for the attempt before it, which is no hold.
    CASE WHEN s.start_ns - s.hold_ns < s.tried_until_ns THEN 0 ELSE s.hold_ns END AS hold_ns,
    CAST(c.open_requests AS BIGINT) AS open_requests,
    CAST(max(c.open_requests) OVER (PARTITION BY s.source) AS BIGINT) AS most_open_requests,
    coalesce(s.start_ns - c.last_end_ns <= $follows_ns, FALSE) AS follows_end
  FROM sent AS s
  JOIN counted AS c ON s.request_key = c.request_key AND c.step = 1
)
SELECT
  request_key, start_ns, hold_ns, e2e_ns, ttft_ns,
  hold_ns + ttft_ns AS due_ttft_ns,
  hold_ns + e2e_ns AS due_e2e_ns,
  open_requests, most_open_requests,
  coalesce(
    hold_ns >= $held_ns AND hold_ns >= $held_share * (hold_ns + coalesce(e2e_ns, 0)), FALSE
  ) AS is_held,
  follows_end
FROM known
