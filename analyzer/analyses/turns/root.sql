-- The outermost parent of each thread that another one began.
-- grain:   one row a thread with a parent
-- needs:   resolve_conversation
-- python:  root -- following parents to the outermost is one pass, and no join
-- returns: session_id VARCHAR     -- the thread
-- returns: root VARCHAR           -- its outermost parent; parents in a circle end where it closes
SELECT session_id, min(parent_session_id) AS parent_session_id
FROM resolve_conversation
WHERE session_id IS NOT NULL AND parent_session_id IS NOT NULL
GROUP BY session_id
ORDER BY session_id
