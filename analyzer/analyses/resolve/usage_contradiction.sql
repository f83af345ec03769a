-- Token counts of one source that cannot all be right, as its reader found them: a total that is no
-- sum of its parts, cache writes by lifetime that are not their total, more cached than was asked.
-- What a vendor counts inside or beside a total, as its documentation says, is no contradiction.
-- grain:   one row a request row whose counts contradict each other
-- needs:   resolve_request, resolve_instance, resolve_told, request, source
-- returns: row_id BIGINT            -- row of resolve_told
-- returns: request_key BIGINT       -- the request
-- returns: vantage VARCHAR          -- who tells it
-- returns: source VARCHAR           -- file that tells it
-- returns: kind VARCHAR             -- what is wrong
-- returns: told_tokens BIGINT       -- tokens of the row, all buckets that are told
SELECT
  i.row_id,
  i.request_key,
  t.vantage,
  s.path AS source,
  r.usage_contradiction AS kind,
  coalesce(r.input_fresh_tokens, 0) + coalesce(r.cache_read_tokens, 0)
    + coalesce(r.cache_write_short_tokens, 0) + coalesce(r.cache_write_long_tokens, 0)
    + coalesce(r.cache_write_unknown_tokens, 0) + coalesce(t.output_tokens, 0) AS told_tokens
FROM resolve_instance AS i
JOIN resolve_told AS t ON i.row_id = t.row_id
JOIN request AS r
  ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
JOIN resolve_request AS q ON i.request_key = q.request_key
JOIN source AS s ON t.source_id = s.source_id
WHERE r.usage_contradiction IS NOT NULL
