-- Requests that a provider's record tells as its bill, and what of them stands in a log.
-- grain:   one row a request with such a record
-- needs:   resolve_instance, resolve_told, resolve_bill_source, request
-- returns: request_key BIGINT       -- the request
-- returns: is_logged BOOLEAN        -- a log tells it too
-- returns: log_has_usage BOOLEAN    -- a log tells its tokens
WITH billed AS (
  SELECT DISTINCT i.request_key
  FROM resolve_instance AS i
  JOIN resolve_told AS t ON i.row_id = t.row_id
  JOIN resolve_bill_source AS b ON t.source_id = b.source_id
  WHERE t.vantage = 'provider'
)
SELECT
  i.request_key,
  max(CASE WHEN b.source_id IS NULL OR t.vantage <> 'provider' THEN 1 ELSE 0 END) = 1 AS is_logged,
  max(CASE WHEN (b.source_id IS NULL OR t.vantage <> 'provider')
    AND (t.output_tokens IS NOT NULL OR r.input_fresh_tokens IS NOT NULL
      OR r.cache_read_tokens IS NOT NULL) THEN 1 ELSE 0 END) = 1 AS log_has_usage
FROM billed AS k
JOIN resolve_instance AS i ON k.request_key = i.request_key
JOIN resolve_told AS t ON i.row_id = t.row_id
JOIN request AS r
  ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
LEFT JOIN resolve_bill_source AS b ON t.source_id = b.source_id
GROUP BY i.request_key
