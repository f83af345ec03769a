-- What each request asked for beside its prompt, who asked, and what it was told when it was refused.
-- grain:   one row a request
-- needs:   resolve_instance, resolve_told, resolve_request, request, request_tag
-- returns: request_key BIGINT         -- the request
-- returns: response_format VARCHAR    -- json, schema, grammar, ...; NULL = plain text or not told
-- returns: schema_hash VARCHAR        -- hash of the output schema
-- returns: tools_count BIGINT         -- tool definitions sent
-- returns: payload_hash VARCHAR       -- hash of the request body
-- returns: retry_after_ns BIGINT      -- wait the server asked for, ns
-- returns: tenant VARCHAR             -- user, team or key on whose behalf, by its tags
WITH tenants AS (
  SELECT
    source_id, record,
    min_by(value, CASE name WHEN 'tenant' THEN 1 WHEN 'customer' THEN 2 WHEN 'organization' THEN 3
      WHEN 'team' THEN 4 WHEN 'project' THEN 5 WHEN 'api_key' THEN 6 WHEN 'key' THEN 7 ELSE 8 END)
      AS tenant
  FROM request_tag
  WHERE name IN ('tenant', 'customer', 'organization', 'team', 'project', 'api_key', 'key', 'user')
  GROUP BY source_id, record
)
SELECT
  i.request_key,
  min_by(r.response_format, i.row_id)
    FILTER (WHERE r.response_format IS NOT NULL AND r.response_format <> 'text') AS response_format,
  min_by(r.schema_hash, i.row_id) FILTER (WHERE r.schema_hash IS NOT NULL) AS schema_hash,
  max(r.tools_count) AS tools_count,
  min_by(r.payload_hash, i.row_id) FILTER (WHERE r.payload_hash IS NOT NULL) AS payload_hash,
  max(r.retry_after_ns) AS retry_after_ns,
  min_by(t.tenant, i.row_id) FILTER (WHERE t.tenant IS NOT NULL) AS tenant
FROM resolve_instance AS i
JOIN resolve_request AS q ON i.request_key = q.request_key
JOIN resolve_told AS o ON i.row_id = o.row_id
JOIN request AS r ON o.source_id = r.source_id AND o.record = r.record AND o.vantage = r.vantage
LEFT JOIN tenants AS t ON r.source_id = t.source_id AND r.record = t.record
GROUP BY i.request_key
