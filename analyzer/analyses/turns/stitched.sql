-- Threads of requests whose session nobody tells, from who continues whom. The first to continue a
-- request goes on with its thread; a second is a fork: a thread of its own in the same session.
-- grain:   one row a request that continues another or is continued
-- needs:   resolve_conversation, turns_before
-- python:  stitched -- following who continues whom to its beginning is one pass, and no join
-- returns: request_key BIGINT     -- the request
-- returns: thread_key BIGINT      -- the request that began its thread
-- returns: session_key BIGINT     -- the request that began its session
-- returns: known VARCHAR          -- hashes, size (suspected), or alone: it continues none itself
WITH joined AS (
  SELECT request_key FROM turns_before
  UNION
  SELECT before_key FROM turns_before
)
SELECT j.request_key, b.before_key, b.known
FROM joined AS j
JOIN resolve_conversation AS c ON j.request_key = c.request_key
LEFT JOIN turns_before AS b ON j.request_key = b.request_key
ORDER BY c.at_ns, j.request_key
