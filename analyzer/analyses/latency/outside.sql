-- Requests that spent long outside the server, and answers that were held back on the way.
-- network is time that came on top; held is delivery delay that overlaps decode: the tokens were
-- ready, a hop kept them. Where the server's parts exceed its own whole, a wait may stand outside that
-- whole, and nothing is said of the network. A first token that came when the client's loop was blocked
-- was held by the client.
-- grain:   one row a request seen from two vantages
-- needs:   resolve_request, resolve_vantage, latency_segment, latency_token, stream_gap, stream_blocked
-- param:   usual_ns = 50000000        -- up to this a nearby network may take
-- param:   slow_ns = 100000000        -- shorter excesses are no finding
-- param:   slow_share = 0.2           -- of e2e that the excess must make up
-- param:   held_ns = 100000000        -- shorter holds are no finding
-- param:   held_share = 0.05          -- of decode that the hold must make up
-- param:   burst_share = 0.2          -- an answer held whole arrives in less than this share of decode
-- param:   clump_share = 0.25         -- in one held by pieces half the gaps are below this share of a token's time
-- param:   piece_ns = 250000000       -- hosted services flush every 50 to 200 ms: such pieces are how they stream
-- param:   few_tokens = 16            -- a smaller answer fits one packet: nothing to hold back
-- param:   mostly = 0.5               -- of a route's long ways: fewer holds are what a path does that varies so much
-- param:   blocked_share = 0.5        -- of a hold that the client's own block makes up
-- returns: request_key BIGINT         -- the request
-- returns: start_ns BIGINT            -- its start, ns UTC
-- returns: route VARCHAR              -- path taken
-- returns: hop VARCHAR                -- between which vantages most of it passed
-- returns: e2e_ns BIGINT              -- end to end, ns
-- returns: network_ns BIGINT          -- outside the server, to the end, ns
-- returns: network_excess_ns BIGINT   -- beyond the case's own baseline, ns
-- returns: held_ns BIGINT             -- delivery delay that overlaps decode, ns
-- returns: decode_ns BIGINT           -- the server's own decode, ns
-- returns: arrival_ns BIGINT          -- first to last token at the client, ns
-- returns: server_ttft_ns BIGINT      -- the server's own first token, ns
-- returns: ttft_ns BIGINT             -- first token at the client, ns
-- returns: blocked_ns BIGINT          -- before the first token the client's loop was blocked, ns
-- returns: is_late BOOLEAN            -- more time outside than usual, and no contradiction about it
-- returns: is_long BOOLEAN            -- and it makes up much of the whole, whatever made it
-- returns: is_held BOOLEAN            -- a hop held the stream back
WITH hops AS (
  SELECT
    request_key,
    min_by(vantage, vantage_rank) AS outer_vantage,
    max_by(vantage, vantage_rank) AS inner_vantage,
    max(CASE WHEN vantage = 'client' THEN e2e_ns END)
      - max(CASE WHEN vantage = 'gateway' THEN e2e_ns END) AS edge_ns
  FROM resolve_vantage
  WHERE e2e_ns IS NOT NULL
  GROUP BY request_key
),
-- An answer in one chunk does not show whether a stream was asked for. Where every answer of a route
-- is like that, and the model's answers stream over another, the route made it so.
ways AS (
  SELECT
    coalesce(model, '') AS model, coalesce(route, '') AS route,
    max(CASE WHEN streamed THEN 1 ELSE 0 END) AS streams
  FROM resolve_request
  GROUP BY coalesce(model, ''), coalesce(route, '')
),
joined AS (
  SELECT w.model, w.route
  FROM ways AS w
  JOIN ways AS o ON w.model = o.model
  GROUP BY w.model, w.route
  HAVING max(w.streams) = 0 AND max(o.streams) = 1
),
seen AS (
  SELECT
    s.request_key, r.start_ns, r.route, r.output_tokens,
    coalesce(r.streamed, j.route IS NOT NULL AND t.chunks > 0) AS streamed, s.e2e_ns, s.network_ns, s.held_ns,
    s.decode_ns, s.server_ttft_ns, s.ttft_ns, s.contradiction, t.arrival_ns, t.tpot_ns,
    g.median_gap_ns,
    CASE
      WHEN h.edge_ns IS NULL OR h.inner_vantage = 'gateway'
        THEN concat(h.outer_vantage, ' to ', h.inner_vantage)
      WHEN 2 * h.edge_ns >= s.network_ns THEN 'client to gateway'
      ELSE concat('gateway to ', h.inner_vantage)
    END AS hop
  FROM latency_segment AS s
  JOIN resolve_request AS r ON s.request_key = r.request_key
  JOIN latency_token AS t ON s.request_key = t.request_key
  JOIN hops AS h ON s.request_key = h.request_key
  LEFT JOIN stream_gap AS g ON s.request_key = g.request_key
  LEFT JOIN joined AS j ON coalesce(r.model, '') = j.model AND coalesce(r.route, '') = j.route
  WHERE s.network_ns IS NOT NULL
),
baseline AS (
  SELECT
    least(
      CAST(percentile_cont(0.1) WITHIN GROUP (ORDER BY network_ns) AS BIGINT), $usual_ns
    ) AS usual_ns
  FROM seen
),
measured AS (
  SELECT
    n.*, n.network_ns - b.usual_ns AS network_excess_ns,
    coalesce(c.blocked_ns, 0) AS blocked_ns
  FROM seen AS n
  CROSS JOIN baseline AS b
  LEFT JOIN stream_blocked AS c ON n.request_key = c.request_key
),
judged AS (
  SELECT
    *,
    network_excess_ns >= $slow_ns AND contradiction IS NULL AS is_late,
    network_excess_ns >= $slow_ns AND network_excess_ns >= $slow_share * e2e_ns
      AND contradiction IS NULL AS is_long,
    coalesce(
      held_ns >= $held_ns AND held_ns >= $held_share * decode_ns
        AND output_tokens >= $few_tokens AND streamed AND blocked_ns < $blocked_share * held_ns
        AND (
          arrival_ns <= $burst_share * decode_ns
          OR (held_ns >= $piece_ns AND median_gap_ns <= $clump_share * tpot_ns)
        ),
      FALSE
    ) AS came_late
  FROM measured
),
counted AS (
  SELECT
    *,
    SUM(CASE WHEN came_late THEN 1 ELSE 0 END) OVER path AS came_late_of_route,
    SUM(CASE WHEN is_long THEN 1 ELSE 0 END) OVER path AS long_of_route
  FROM judged
  WINDOW path AS (PARTITION BY route)
)
SELECT
  request_key, start_ns, route, hop, e2e_ns, network_ns, network_excess_ns, held_ns, decode_ns,
  arrival_ns, server_ttft_ns, ttft_ns, blocked_ns, is_late, is_long,
  came_late AND came_late_of_route >= $mostly * long_of_route AS is_held
FROM counted
