-- What objectives are held to: the latencies of each request, how it ended, and the parts of its
-- time that an objective's budget is spent on.
-- grain:   one row a request
-- needs:   resolve_request, latency_segment, latency_token, latency_metric, stream_gap
-- returns: request_key BIGINT             -- the request
-- returns: start_ns BIGINT                -- its start, ns UTC
-- returns: failed BOOLEAN                 -- it ended in an error, a timeout or an abort
-- returns: is_single BOOLEAN              -- no token came after the first: none could be late
-- returns: output_tokens BIGINT           -- visible and reasoning
-- returns: ttft_ns BIGINT                 -- time to first token, ns
-- returns: tpot_ns DOUBLE                 -- time per output token, ns
-- returns: itl_ns DOUBLE                  -- median gap between chunks, ns
-- returns: e2e_ns BIGINT                  -- end to end, ns
-- returns: queue_ns BIGINT                -- wait for the model server, ns
-- returns: prefill_ns BIGINT              -- prompt processing, ns
-- returns: decode_ns BIGINT               -- first to last token, ns
-- returns: network_ns BIGINT              -- outside the server, to the end, ns
-- returns: unattributed_ns BIGINT         -- in no part, to the end, ns
-- returns: network_ttft_ns BIGINT         -- outside the server, to the first token, ns
-- returns: unattributed_ttft_ns BIGINT    -- in no part, to the first token, ns
-- returns: one_gap_ns DOUBLE              -- of tpot: what the longest gap takes beyond a usual one, ns
SELECT
  r.request_key, r.start_ns, r.failed,
  t.tpot_ns IS NULL AND coalesce(r.output_tokens <= 1, FALSE) AS is_single,
  r.output_tokens, s.ttft_ns, t.tpot_ns, m.value_ns AS itl_ns, s.e2e_ns,
  s.queue_ns, s.prefill_ns, s.decode_ns, s.network_ns, s.unattributed_ns, s.network_ttft_ns,
  s.unattributed_ttft_ns,
  -- An answer that a hop held back shows the hop's gaps, not the server's.
  CASE WHEN m.value_ns IS NOT NULL AND r.output_tokens > t.first_tokens THEN
    least((g.longest_gap_ns - g.median_gap_ns) / (r.output_tokens - t.first_tokens), t.tpot_ns)
  END AS one_gap_ns
FROM resolve_request AS r
JOIN latency_segment AS s ON r.request_key = s.request_key
JOIN latency_token AS t ON r.request_key = t.request_key
LEFT JOIN latency_metric AS m ON r.request_key = m.request_key AND m.metric = 'itl'
LEFT JOIN stream_gap AS g ON r.request_key = g.request_key
