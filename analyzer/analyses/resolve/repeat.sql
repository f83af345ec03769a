-- Requests whose sources tell their usage in several records, or that several files of one vantage
-- tell: as they count, and as they would if each record counted.
-- grain:   one row a request with a source that tells its usage record by record (transcripts)
-- needs:   resolve_instance, resolve_told, resolve_request, request
-- returns: request_key BIGINT                -- the request
-- returns: start_ns BIGINT                   -- its start, ns UTC
-- returns: model VARCHAR                     -- model
-- returns: is_sidechain BOOLEAN              -- a sub-agent's
-- returns: has_request_id BOOLEAN            -- the vendor's request id is told beside the answer's
-- returns: files BIGINT                      -- sources that tell it
-- returns: records BIGINT                    -- records that tell its usage, over all of them
-- returns: input_fresh_tokens BIGINT         -- as it counts
-- returns: cache_read_tokens BIGINT          -- as it counts
-- returns: cache_write_short_tokens BIGINT   -- as it counts
-- returns: cache_write_long_tokens BIGINT    -- as it counts
-- returns: cache_write_unknown_tokens BIGINT -- as it counts
-- returns: output_tokens BIGINT              -- as it counts: what the fullest record says
-- returns: input_tokens BIGINT               -- the whole prompt, as it counts
-- returns: first_output_tokens BIGINT        -- output that the first record of all tells
-- returns: records_output_tokens BIGINT      -- output added up over the records
WITH told AS (
  SELECT
    i.request_key, r.model, r.is_sidechain, t.own_id, t.source_id, r.usage_records,
    r.input_fresh_tokens, r.cache_read_tokens, r.cache_write_short_tokens,
    r.cache_write_long_tokens, r.cache_write_unknown_tokens, t.output_tokens,
    r.usage_first_output_tokens, r.usage_records_output_tokens,
    row_number() OVER (
      PARTITION BY i.request_key
      ORDER BY CASE WHEN t.unfinished THEN 1 ELSE 0 END, coalesce(t.output_tokens, 0) DESC, i.row_id
    ) AS pick,
    row_number() OVER (PARTITION BY i.request_key ORDER BY i.row_id) AS nth
  FROM resolve_instance AS i
  JOIN resolve_told AS t ON i.row_id = t.row_id
  JOIN request AS r
    ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
  WHERE r.usage_records IS NOT NULL
),
merged AS (
  SELECT
    request_key,
    max(CASE WHEN pick = 1 THEN model END) AS model,
    min(CASE WHEN is_sidechain THEN 1 ELSE 0 END) = 1 AS is_sidechain,
    count(own_id) > 0 AS has_request_id,
    count(DISTINCT source_id) AS files,
    CAST(sum(usage_records) AS BIGINT) AS records,
    max(CASE WHEN pick = 1 THEN input_fresh_tokens END) AS input_fresh_tokens,
    max(CASE WHEN pick = 1 THEN cache_read_tokens END) AS cache_read_tokens,
    max(CASE WHEN pick = 1 THEN cache_write_short_tokens END) AS cache_write_short_tokens,
    max(CASE WHEN pick = 1 THEN cache_write_long_tokens END) AS cache_write_long_tokens,
    max(CASE WHEN pick = 1 THEN cache_write_unknown_tokens END) AS cache_write_unknown_tokens,
    max(CASE WHEN pick = 1 THEN output_tokens END) AS output_tokens,
    max(CASE WHEN nth = 1 THEN usage_first_output_tokens END) AS first_output_tokens,
    CAST(sum(usage_records_output_tokens) AS BIGINT) AS records_output_tokens
  FROM told
  GROUP BY request_key
)
SELECT
  m.request_key, q.start_ns, m.model, m.is_sidechain, m.has_request_id, m.files, m.records,
  m.input_fresh_tokens, m.cache_read_tokens, m.cache_write_short_tokens,
  m.cache_write_long_tokens, m.cache_write_unknown_tokens, m.output_tokens,
  coalesce(m.input_fresh_tokens, 0) + coalesce(m.cache_read_tokens, 0)
    + coalesce(m.cache_write_short_tokens, 0) + coalesce(m.cache_write_long_tokens, 0)
    + coalesce(m.cache_write_unknown_tokens, 0) AS input_tokens,
  m.first_output_tokens, m.records_output_tokens
FROM merged AS m
JOIN resolve_request AS q ON m.request_key = q.request_key
