-- Which thread of calls each request belongs to: a conversation, or one agent of it. Told by ids, else
-- stitched to the request it continues; one that continues none is a thread of its own. What only a
-- provider's bill tells, without an id, is no call of a conversation beside those of the logs.
-- grain:   one row a request with a start
-- needs:   resolve_conversation, resolve_on_bill, resolve_request, turns_root, turns_stitched
-- returns: request_key BIGINT           -- the request
-- returns: thread VARCHAR               -- the thread
-- returns: session VARCHAR              -- the conversation it belongs to: its outermost parent
-- returns: is_agent BOOLEAN             -- a sub-agent's or side thread
-- returns: known VARCHAR                -- told, hashes, size (suspected) or alone
WITH sessions AS (
  SELECT DISTINCT session_id FROM resolve_conversation WHERE session_id IS NOT NULL
),
-- Ids come again in real runs; threads do not.
named AS (
  SELECT
    q.request_key,
    CASE WHEN s.session_id IS NULL
        AND row_number() OVER (PARTITION BY q.id ORDER BY c.at_ns, q.request_key) = 1 THEN q.id
      ELSE concat(q.id, '#', CAST(q.request_key AS VARCHAR)) END AS name
  FROM resolve_request AS q
  JOIN resolve_conversation AS c ON q.request_key = c.request_key
  LEFT JOIN sessions AS s ON q.id = s.session_id
  LEFT JOIN resolve_on_bill AS b ON q.request_key = b.request_key
  WHERE c.session_id IS NULL AND c.at_ns IS NOT NULL AND coalesce(b.is_logged, TRUE)
)
SELECT
  c.request_key,
  CASE WHEN c.is_sidechain AND r.session_id IS NULL THEN concat(c.session_id, '/side')
    ELSE c.session_id END AS thread,
  coalesce(r.root, c.session_id) AS session,
  coalesce(c.is_sidechain, FALSE) AS is_agent,
  'told' AS known
FROM resolve_conversation AS c
LEFT JOIN turns_root AS r ON c.session_id = r.session_id
WHERE c.session_id IS NOT NULL AND c.at_ns IS NOT NULL
UNION ALL
SELECT
  c.request_key, coalesce(t.name, n.name) AS thread, coalesce(w.name, n.name) AS session,
  coalesce(c.is_sidechain, FALSE) AS is_agent,
  coalesce(s.known, 'alone') AS known
FROM resolve_conversation AS c
JOIN named AS n ON c.request_key = n.request_key
LEFT JOIN turns_stitched AS s ON c.request_key = s.request_key
LEFT JOIN named AS t ON s.thread_key = t.request_key
LEFT JOIN named AS w ON s.session_key = w.request_key
