-- Requests that spent long outside the server, and answers that were held back on the way.
-- network is time that came on top; held is delivery delay that overlaps decode: the tokens were
-- ready, a hop kept them.
-- grain:   one row a request seen from two vantages
-- needs:   resolve_request, latency_segment, latency_token, stream_gap
-- param:   usual_ns = 50000000        -- up to this a nearby network may take
-- param:   slow_ns = 100000000        -- shorter excesses are no finding
-- param:   slow_share = 0.2           -- of e2e that the excess must make up
-- param:   held_ns = 100000000        -- shorter holds are no finding
-- param:   held_share = 0.05          -- of decode that the hold must make up
-- param:   burst_share = 0.2          -- an answer held whole arrives in less than this share of decode
-- param:   clump_share = 0.25         -- in one held by pieces half the gaps are below this share of a token's time
-- param:   few_tokens = 16            -- a smaller answer fits one packet: nothing to hold back
-- returns: request_key BIGINT         -- the request
-- returns: start_ns BIGINT            -- its start, ns UTC
-- returns: route VARCHAR              -- path taken
-- returns: e2e_ns BIGINT              -- end to end, ns
-- returns: network_ns BIGINT          -- outside the server, to the end, ns
-- returns: network_excess_ns BIGINT   -- beyond the case's own baseline, ns
-- returns: held_ns BIGINT             -- delivery delay that overlaps decode, ns
-- returns: decode_ns BIGINT           -- the server's own decode, ns
-- returns: arrival_ns BIGINT          -- first to last token at the client, ns
-- returns: server_ttft_ns BIGINT      -- the server's own first token, ns
-- returns: ttft_ns BIGINT             -- first token at the client, ns
-- returns: is_slow BOOLEAN            -- the network took long
-- returns: is_held BOOLEAN            -- a hop held the stream back
WITH seen AS (
  SELECT
    s.request_key, r.start_ns, r.route, r.output_tokens, r.streamed, s.e2e_ns, s.network_ns, s.held_ns,
    s.decode_ns, s.server_ttft_ns, s.ttft_ns, t.arrival_ns, t.tpot_ns, g.median_gap_ns
  FROM latency_segment AS s
  JOIN resolve_request AS r ON s.request_key = r.request_key
  JOIN latency_token AS t ON s.request_key = t.request_key
  LEFT JOIN stream_gap AS g ON s.request_key = g.request_key
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
  SELECT n.*, n.network_ns - b.usual_ns AS network_excess_ns
  FROM seen AS n
  CROSS JOIN baseline AS b
)
SELECT
  request_key, start_ns, route, e2e_ns, network_ns, network_excess_ns, held_ns, decode_ns,
  arrival_ns, server_ttft_ns, ttft_ns,
  network_excess_ns >= $slow_ns AND network_excess_ns >= $slow_share * e2e_ns AS is_slow,
  coalesce(
    held_ns >= $held_ns AND held_ns >= $held_share * decode_ns
      AND output_tokens >= $few_tokens AND streamed
      AND (arrival_ns <= $burst_share * decode_ns OR median_gap_ns <= $clump_share * tpot_ns),
    FALSE
  ) AS is_held
FROM measured
