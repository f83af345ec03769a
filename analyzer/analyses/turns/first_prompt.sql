-- Prompts with which conversations begin: tools, system prompt and the first question, no history yet.
-- Where neither turns nor conversations are told, any request may be one, and says so.
-- grain:   one row a first request of a conversation or agent, or a request that may be one
-- needs:   turns_call, resolve_conversation, resolve_request, resolve_instance, resolve_told, request_tag
-- param:   helpers = 3                     -- a small helper call of another model may come before the first prompt
-- param:   buckets = 200                   -- parts of equal count into which a group is summed up
-- returns: request_key BIGINT              -- the request
-- returns: group_name VARCHAR              -- model, route, application and kind of thread: only like is compared with like
-- returns: model VARCHAR                   -- model; empty = not told
-- returns: route VARCHAR                   -- path taken; empty = not told
-- returns: app VARCHAR                     -- application, by the labels; empty = not told
-- returns: is_agent BOOLEAN                -- of a sub-agent or side thread
-- returns: is_known BOOLEAN                -- it does begin a conversation; FALSE = it may, nothing tells
-- returns: is_single BOOLEAN               -- the only call of its conversation
-- returns: nth BIGINT                      -- place in its group by time, from 1
-- returns: requests BIGINT                 -- requests of its group
-- returns: bucket BIGINT                   -- part of the group it falls into, from 0
-- returns: start_ns BIGINT                 -- its start, ns UTC
-- returns: input_tokens BIGINT             -- its prompt
-- returns: fresh_tokens BIGINT             -- of it neither read from nor written to a cache
-- returns: read_tokens BIGINT              -- of it read from the cache
-- returns: write_tokens BIGINT             -- of it written to the cache
-- returns: tools_count BIGINT              -- tool definitions sent
-- returns: tools_chars BIGINT              -- characters of the tool definitions
-- returns: system_chars BIGINT             -- characters of the system prompt
WITH apps AS (
  SELECT i.request_key, min(concat(g.name, ' ', g.value)) AS app
  FROM resolve_instance AS i
  JOIN resolve_told AS t ON i.row_id = t.row_id
  JOIN request_tag AS g ON t.source_id = g.source_id AND t.record = g.record
  WHERE g.name IN (
    'app', 'application', 'app_name', 'service', 'service_name', 'feature', 'product', 'agent',
    'agent_name', 'workflow', 'use_case', 'tenant', 'customer'
  )
  GROUP BY i.request_key
),
calls AS (
  SELECT
    c.request_key, c.model, c.is_agent, c.at_ns, c.input_tokens, c.fresh_tokens, c.read_tokens,
    c.write_tokens, c.nth, c.turn, c.is_first_of_turn, c.event,
    c.known = 'alone' AND v.block_row IS NULL AND c.turn IS NULL AS is_alone,
    row_number() OVER (
      PARTITION BY c.thread, c.model ORDER BY c.at_ns, c.nth, c.request_key
    ) AS nth_of_model,
    count(*) OVER (PARTITION BY c.clock, c.thread) = 1 AS is_single,
    v.tools_count, v.tools_chars, v.system_chars
  FROM turns_call AS c
  JOIN resolve_conversation AS v ON c.request_key = v.request_key
  WHERE c.clock = 'wall'
),
firsts AS (
  SELECT
    c.request_key, c.model, coalesce(q.route, '') AS route, coalesce(a.app, '') AS app, c.is_agent,
    NOT c.is_alone AS is_known, c.is_single, c.at_ns AS start_ns, c.input_tokens, c.fresh_tokens, c.read_tokens,
    c.write_tokens, c.tools_count, c.tools_chars, c.system_chars,
    concat(
      c.model, ' | ', coalesce(q.route, ''), ' | ', coalesce(a.app, ''),
      CASE WHEN c.is_agent THEN ' | agent' ELSE '' END,
      CASE WHEN c.is_alone THEN ' | any turn' ELSE '' END
    ) AS group_name
  FROM calls AS c
  JOIN resolve_request AS q ON c.request_key = q.request_key
  LEFT JOIN apps AS a ON c.request_key = a.request_key
  WHERE c.is_alone
    OR (c.turn = 1 AND c.is_first_of_turn)
    OR (c.turn IS NULL AND c.nth_of_model = 1 AND c.nth <= $helpers
      AND coalesce(c.event, '') <> 'fork')
),
placed AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY group_name ORDER BY start_ns, request_key) AS nth,
    count(*) OVER (PARTITION BY group_name) AS requests
  FROM firsts
)
SELECT
  request_key, group_name, model, route, app, is_agent, is_known, is_single, nth, requests,
  CAST(CASE WHEN requests <= $buckets THEN nth - 1
    ELSE ((nth - 1) * $buckets - (nth - 1) * $buckets % requests) / requests END AS BIGINT)
    AS bucket,
  start_ns, input_tokens, fresh_tokens, read_tokens, write_tokens, tools_count, tools_chars,
  system_chars
FROM placed
