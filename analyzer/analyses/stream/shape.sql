-- What the chunks of one answer carried, as the client saw them.
-- grain:   one row a streamed request with at least one chunk that carries a token
-- needs:   resolve_instance, resolve_told, resolve_request, chunk
-- returns: request_key BIGINT          -- the request
-- returns: chunks BIGINT               -- chunks that carried a token
-- returns: content_chunks BIGINT       -- of them visible text or tool calls
-- returns: reasoning_chunks BIGINT     -- of them reasoning
-- returns: chars BIGINT                -- characters, where all are told
-- returns: told_tokens BIGINT          -- tokens, where every chunk tells its own
SELECT
  i.request_key,
  count(*) AS chunks,
  count(*) FILTER (WHERE c.kind <> 'reasoning') AS content_chunks,
  count(*) FILTER (WHERE c.kind = 'reasoning') AS reasoning_chunks,
  CASE WHEN count(c.chars) = count(*) THEN CAST(SUM(c.chars) AS BIGINT) END AS chars,
  CASE WHEN count(c.tokens) = count(*) THEN CAST(SUM(c.tokens) AS BIGINT) END AS told_tokens
FROM chunk AS c
JOIN resolve_told AS t
  ON c.source_id = t.source_id AND c.record = t.record AND t.vantage = 'client'
JOIN resolve_instance AS i ON t.row_id = i.row_id
JOIN resolve_request AS r ON i.request_key = r.request_key
WHERE c.kind <> 'role' AND coalesce(c.chars, 1) + coalesce(c.tokens, 0) > 0
GROUP BY i.request_key
