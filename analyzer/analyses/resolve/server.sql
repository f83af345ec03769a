-- When the server began each request, on the reference clock, which is that of the outermost log.
-- grain:   one row a request that its innermost vantage gives a time
-- needs:   resolve_instance, resolve_aligned, resolve_told
-- returns: request_key BIGINT          -- the request
-- returns: vantage VARCHAR             -- innermost vantage that gives it a time
-- returns: clock VARCHAR               -- the clock that stamped it
-- returns: server_start_ns BIGINT      -- server's start on the reference clock, ns
-- returns: own_start_ns BIGINT         -- the same on the server's own clock, ns
-- returns: loose_ns BIGINT             -- it may be this much off either way, ns; NULL = clocks unknown
WITH placed AS (
  SELECT
    i.request_key, a.vantage, a.clock, a.aligned_ns, a.start_ns, a.loose_ns,
    row_number() OVER (
      PARTITION BY i.request_key ORDER BY t.vantage_rank DESC, t.priority
    ) AS choice
  FROM resolve_instance AS i
  JOIN resolve_aligned AS a ON i.row_id = a.row_id
  JOIN resolve_told AS t ON i.row_id = t.row_id
)
SELECT
  request_key, vantage, clock, aligned_ns AS server_start_ns, start_ns AS own_start_ns, loose_ns
FROM placed
WHERE choice = 1
