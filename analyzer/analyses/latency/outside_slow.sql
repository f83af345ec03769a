-- Requests whose way to the server and back took long: neither a timer that runs out, nor a client that
-- was blocked, nor a queue that stands in front of the server, nor the last piece of an answer that a
-- hop passes on by pieces.
-- grain:   one row a request with long time outside the server
-- needs:   latency_outside, latency_outside_crowd, latency_outside_fixed, latency_offset, stream_lost
-- param:   fixed_share = 0.5            -- of a route's long ones: from then on a timer is what ails it
-- param:   held_share = 0.5             -- held answers of a route to its long ones: from then on the hop that holds is it
-- param:   blocked_share = 0.5          -- of the excess that the client's own block must make up
-- param:   told_share = 0.15            -- clocks known to this share of the excess tell the ways apart
-- returns: request_key BIGINT           -- the request
-- returns: start_ns BIGINT              -- its start, ns UTC
-- returns: route VARCHAR                -- path taken; empty = not told
-- returns: hop VARCHAR                  -- between which vantages most of it passed
-- returns: e2e_ns BIGINT                -- end to end, ns
-- returns: network_ns BIGINT            -- outside the server, to the end, ns
-- returns: network_excess_ns BIGINT     -- beyond the case's own baseline, ns
-- returns: before_ratio DOUBLE          -- part that passed before the server began; NULL = clocks do not tell
-- returns: is_slow BOOLEAN              -- the way is slow
WITH blocked AS (
  SELECT request_key, CAST(SUM(excess_ns) AS BIGINT) AS blocked_ns
  FROM stream_lost
  WHERE cause = 'client blocked'
  GROUP BY request_key
),
long_ones AS (
  SELECT
    o.request_key, o.start_ns, coalesce(o.route, '') AS route, o.hop, o.e2e_ns, o.network_ns,
    o.network_excess_ns, q.queues, coalesce(f.is_fixed, FALSE) AS is_fixed,
    o.blocked_ns + coalesce(c.blocked_ns, 0) >= $blocked_share * o.network_excess_ns AS is_blocked,
    CASE WHEN w.out_ns > 0 AND w.back_ns IS NOT NULL
        AND w.loose_ns <= $told_share * o.network_excess_ns
      THEN CAST(w.out_ns AS DOUBLE) / greatest(w.out_ns + greatest(w.back_ns, 0), o.network_ns)
    END AS before_ratio
  FROM latency_outside AS o
  JOIN latency_outside_crowd AS q ON o.request_key = q.request_key
  LEFT JOIN latency_outside_fixed AS f ON o.request_key = f.request_key
  LEFT JOIN latency_offset AS w ON o.request_key = w.request_key
  LEFT JOIN blocked AS c ON o.request_key = c.request_key
  WHERE o.is_long
),
held AS (
  SELECT coalesce(route, '') AS route, hop, count(*) AS held
  FROM latency_outside
  WHERE is_held
  GROUP BY coalesce(route, ''), hop
),
routes AS (
  SELECT l.route, l.hop, count(*) AS requests, count(*) FILTER (WHERE l.is_fixed) AS fixed,
    coalesce(max(h.held), 0) AS held
  FROM long_ones AS l
  LEFT JOIN held AS h ON l.route = h.route AND l.hop = h.hop
  GROUP BY l.route, l.hop
)
SELECT
  l.request_key, l.start_ns, l.route, l.hop, l.e2e_ns, l.network_ns, l.network_excess_ns,
  l.before_ratio,
  NOT l.is_fixed AND NOT l.is_blocked AND NOT l.queues AND r.fixed < $fixed_share * r.requests
    AND r.held < $held_share * r.requests AS is_slow
FROM long_ones AS l
JOIN routes AS r ON l.route = r.route AND l.hop = r.hop
