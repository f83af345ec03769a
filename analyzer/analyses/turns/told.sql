-- What each request tells of the cache: cached tokens, writes, and which request it continues. An
-- engine's hit rate adds up over all requests since its start and stands in for none of these.
-- grain:   one row a request
-- needs:   resolve_request, resolve_conversation, resolve_text_prefix, resolve_cache_rule, turns_thread
-- returns: request_key BIGINT           -- the request
-- returns: tells_cached BOOLEAN         -- tokens read from the cache are told
-- returns: tells_thread BOOLEAN         -- its session, its prefix hashes, or what it continues are known
-- returns: tells_prefix BOOLEAN         -- hashes of its prompt are told
-- returns: tells_writes BOOLEAN         -- tokens written to the cache are told, or cost no more than others
WITH written AS (
  SELECT DISTINCT request_key FROM resolve_text_prefix
)
SELECT
  q.request_key,
  q.cache_read_tokens IS NOT NULL AS tells_cached,
  v.session_id IS NOT NULL OR v.block_row IS NOT NULL OR w.request_key IS NOT NULL
    OR coalesce(t.known, 'alone') <> 'alone' AS tells_thread,
  v.block_row IS NOT NULL OR w.request_key IS NOT NULL AS tells_prefix,
  q.cache_write_tokens IS NOT NULL OR coalesce(r.short_write_factor = 1, FALSE)
    OR coalesce(r.vendor = 'engine', FALSE) AS tells_writes
FROM resolve_request AS q
JOIN resolve_conversation AS v ON q.request_key = v.request_key
LEFT JOIN written AS w ON q.request_key = w.request_key
LEFT JOIN turns_thread AS t ON q.request_key = t.request_key
LEFT JOIN resolve_cache_rule AS r
  ON coalesce(q.provider, '') = r.provider AND coalesce(q.model, '') = r.model
WHERE NOT q.failed
