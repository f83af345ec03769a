-- Which thread of calls each request belongs to: a conversation, or one agent of it. Told by ids, else
-- stitched to the request it continues; one that continues none is a thread of its own.
-- grain:   one row a request with a start
-- needs:   resolve_conversation, resolve_request, turns_before
-- python:  thread -- following who continues whom to its beginning is one pass, and no join
-- returns: request_key BIGINT           -- the request
-- returns: thread VARCHAR               -- the thread
-- returns: session VARCHAR              -- the conversation it belongs to: its outermost parent
-- returns: is_agent BOOLEAN             -- a sub-agent's or side thread
-- returns: known VARCHAR                -- told, hashes, size (suspected) or alone
SELECT
  q.request_key, q.id, c.session_id, c.parent_session_id, c.is_sidechain, b.before_key, b.known
FROM resolve_request AS q
JOIN resolve_conversation AS c ON q.request_key = c.request_key
LEFT JOIN turns_before AS b ON q.request_key = b.request_key
WHERE c.at_ns IS NOT NULL
ORDER BY c.at_ns, q.request_key
