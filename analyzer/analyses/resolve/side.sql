-- What the logs tell of each request, and what the provider's own record of it tells. A provider's
-- record beside logs of the same model is its bill; where nothing else tells requests, it is the log.
-- grain:   one row a request
-- needs:   resolve_instance, resolve_told, resolve_aligned, resolve_request, resolve_bill_source, request
-- returns: request_key BIGINT              -- the request
-- returns: is_logged BOOLEAN               -- a log tells it
-- returns: log_has_usage BOOLEAN           -- a log tells its tokens
-- returns: log_input_tokens BIGINT         -- the whole prompt, by the logs
-- returns: log_output_tokens BIGINT        -- output, by the logs
-- returns: log_start_ns BIGINT             -- its start, by the logs, ns UTC
-- returns: log_e2e_ns BIGINT               -- end to end, by the outermost log, ns
-- returns: bytes_sent BIGINT               -- request bytes that left
-- returns: is_billed BOOLEAN               -- a record of the provider tells its tokens or what it cost
-- returns: bill_input_tokens BIGINT        -- the whole prompt, by the provider
-- returns: bill_output_tokens BIGINT       -- output, by the provider
-- returns: bill_start_ns BIGINT            -- accepted, on the provider's clock, ns UTC
-- returns: bill_e2e_ns BIGINT              -- how long the provider took, ns
-- returns: bill_usd DECIMAL(18,9)          -- what the provider charged, where told
WITH told AS (
  SELECT
    i.request_key, t.vantage_rank, a.aligned_ns, t.start_ns, r.e2e_ns, r.bytes_sent,
    r.reported_cost_usd,
    b.source_id IS NOT NULL AND r.vantage = 'provider' AS is_bill,
    r.input_fresh_tokens + coalesce(r.cache_read_tokens, 0)
      + coalesce(r.cache_write_short_tokens, 0) + coalesce(r.cache_write_long_tokens, 0)
      + coalesce(r.cache_write_unknown_tokens, 0) AS input_tokens,
    t.output_tokens,
    r.input_fresh_tokens IS NOT NULL OR r.cache_read_tokens IS NOT NULL
      OR t.output_tokens IS NOT NULL AS has_usage
  FROM resolve_instance AS i
  JOIN resolve_request AS q ON i.request_key = q.request_key
  JOIN resolve_told AS t ON i.row_id = t.row_id
  LEFT JOIN resolve_aligned AS a ON i.row_id = a.row_id
  JOIN request AS r
    ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
  LEFT JOIN resolve_bill_source AS b ON t.source_id = b.source_id
)
SELECT
  request_key,
  max(CASE WHEN is_bill THEN 0 ELSE 1 END) = 1 AS is_logged,
  max(CASE WHEN NOT is_bill AND has_usage THEN 1 ELSE 0 END) = 1 AS log_has_usage,
  max(CASE WHEN NOT is_bill THEN input_tokens END) AS log_input_tokens,
  max(CASE WHEN NOT is_bill THEN output_tokens END) AS log_output_tokens,
  min_by(aligned_ns, vantage_rank) FILTER (WHERE NOT is_bill AND aligned_ns IS NOT NULL)
    AS log_start_ns,
  min_by(e2e_ns, vantage_rank) FILTER (WHERE NOT is_bill AND e2e_ns IS NOT NULL) AS log_e2e_ns,
  max(CASE WHEN NOT is_bill THEN bytes_sent END) AS bytes_sent,
  max(CASE WHEN is_bill AND (has_usage OR reported_cost_usd IS NOT NULL) THEN 1 ELSE 0 END) = 1
    AS is_billed,
  max(CASE WHEN is_bill THEN input_tokens END) AS bill_input_tokens,
  max(CASE WHEN is_bill THEN output_tokens END) AS bill_output_tokens,
  min(CASE WHEN is_bill THEN start_ns END) AS bill_start_ns,
  max(CASE WHEN is_bill THEN e2e_ns END) AS bill_e2e_ns,
  max(CASE WHEN is_bill THEN reported_cost_usd END) AS bill_usd
FROM told
GROUP BY request_key
