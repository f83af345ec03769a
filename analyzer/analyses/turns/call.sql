-- Calls of each thread in order, each beside the call whose prompt it continues. That is the call
-- before it, or one or two further back where a small helper call, or a call of another branch, stands
-- between: the latest of the same model with a prompt of at least half its size that is no longer than
-- its own. A thread that was forked or resumed goes on from its parent's last call.
-- grain:   one row a call with a time and a thread
-- needs:   turns_thread, resolve_conversation, resolve_request
-- param:   slack = 1.02                      -- a prompt this much longer is still the same (reasoning left out)
-- param:   near = 0.5                        -- a prompt of at least this share may be what is continued
-- param:   shrunk = 0.6                      -- a prompt below this share was compacted, or is another
-- param:   back = 0.8                        -- a prompt that is followed by one of this share was a side call
-- returns: request_key BIGINT                -- the call
-- returns: thread VARCHAR                    -- thread of calls
-- returns: session VARCHAR                   -- conversation it belongs to
-- returns: is_agent BOOLEAN                  -- of a sub-agent or side thread
-- returns: known VARCHAR                     -- how the thread is known: told, hashes, size or alone
-- returns: nth BIGINT                        -- call of the thread, from 1
-- returns: turn BIGINT                       -- turn, as told
-- returns: is_first_of_turn BOOLEAN          -- first call of a told turn; NULL = turns are not told
-- returns: clock VARCHAR                     -- wall, or the source whose own clock tells its time
-- returns: at_ns BIGINT                      -- its start on that clock, ns
-- returns: model VARCHAR                     -- model; empty = not told
-- returns: input_tokens BIGINT               -- its prompt
-- returns: read_tokens BIGINT                -- of it read from the cache; NULL = not told
-- returns: write_tokens BIGINT               -- of it written to the cache; NULL = not told
-- returns: fresh_tokens BIGINT               -- of it neither
-- returns: output_tokens BIGINT              -- its answer
-- returns: last_key BIGINT                   -- the call before it in the thread
-- returns: last_model VARCHAR                -- that call's model
-- returns: last_input_tokens BIGINT          -- that call's prompt
-- returns: since_ns BIGINT                   -- from that call's start to this one's, ns
-- returns: idle_ns BIGINT                    -- from that call's end to this one's start, ns; 0 = they overlap
-- returns: prior_key BIGINT                  -- the call whose prompt it continues; NULL = none
-- returns: prior_since_ns BIGINT             -- from that call's start to this one's, ns
-- returns: prior_idle_ns BIGINT              -- from that call's end to this one's start, ns
-- returns: prior_input_tokens BIGINT         -- that call's prompt
-- returns: prior_output_tokens BIGINT        -- that call's answer
-- returns: prior_read_tokens BIGINT          -- what that call read from the cache
-- returns: prior_write_tokens BIGINT         -- what that call wrote to it
-- returns: growth_tokens BIGINT              -- its prompt less that call's
-- returns: event VARCHAR                     -- first, agent, fork, side call, compaction, shrunk, model switch; NULL = goes on
WITH parents AS (
  SELECT t.thread, min(c.parent_session_id) AS parent
  FROM turns_thread AS t
  JOIN resolve_conversation AS c ON t.request_key = c.request_key
  WHERE c.parent_session_id IS NOT NULL
  GROUP BY t.thread
),
calls AS (
  SELECT
    t.request_key, t.thread, t.session, t.is_agent, t.known, q.turn, c.clock, c.at_ns,
    CASE WHEN c.end_ns > c.at_ns THEN c.end_ns ELSE c.at_ns END AS end_ns, c.is_compacted,
    coalesce(q.model, '') AS model, q.input_tokens, q.cache_read_tokens AS read_tokens,
    q.cache_write_tokens AS write_tokens, q.input_fresh_tokens AS fresh_tokens, q.output_tokens
  FROM turns_thread AS t
  JOIN resolve_conversation AS c ON t.request_key = c.request_key
  JOIN resolve_request AS q ON t.request_key = q.request_key
  WHERE q.input_tokens IS NOT NULL
),
placed AS (
  SELECT
    *,
    row_number() OVER thread_order AS nth,
    lag(request_key) OVER thread_order AS last_key,
    lag(model) OVER thread_order AS last_model,
    lag(input_tokens) OVER thread_order AS last_input_tokens,
    lag(turn) OVER thread_order AS last_turn,
    lag(at_ns) OVER thread_order AS last_ns,
    lag(end_ns) OVER thread_order AS last_end_ns,
    lag(request_key, 1) OVER lane_order AS key_1,
    lag(request_key, 2) OVER lane_order AS key_2,
    lag(request_key, 3) OVER lane_order AS key_3,
    lag(input_tokens, 1) OVER lane_order AS input_1,
    lag(input_tokens, 2) OVER lane_order AS input_2,
    lag(input_tokens, 3) OVER lane_order AS input_3,
    lead(input_tokens, 1) OVER lane_order AS next_1,
    lead(input_tokens, 2) OVER lane_order AS next_2,
    CAST(input_tokens * $slack AS BIGINT) + 64 AS room_tokens
  FROM calls
  WINDOW
    thread_order AS (PARTITION BY clock, thread ORDER BY at_ns, turn NULLS FIRST, request_key),
    lane_order AS (PARTITION BY clock, thread, model ORDER BY at_ns, turn NULLS FIRST, request_key)
),
-- What a forked or resumed thread goes on from.
grown AS (
  SELECT f.request_key, max_by(c.request_key, c.at_ns) AS parent_key
  FROM placed AS f
  JOIN parents AS p ON f.thread = p.thread
  JOIN calls AS c ON p.parent = c.thread AND c.clock = f.clock AND c.at_ns < f.at_ns
  WHERE f.nth = 1 AND NOT f.is_agent
  GROUP BY f.request_key
),
chosen AS (
  SELECT
    p.*, g.parent_key,
    CASE
      WHEN p.nth = 1 THEN g.parent_key
      WHEN p.is_compacted THEN p.key_1
      WHEN p.input_1 <= p.room_tokens AND p.input_1 >= p.input_tokens * $near THEN p.key_1
      WHEN p.input_2 <= p.room_tokens AND p.input_2 >= p.input_tokens * $near THEN p.key_2
      WHEN p.input_3 <= p.room_tokens AND p.input_3 >= p.input_tokens * $near THEN p.key_3
      WHEN p.key_1 IS NULL THEN p.last_key
      ELSE p.key_1
    END AS prior_key
  FROM placed AS p
  LEFT JOIN grown AS g ON p.request_key = g.request_key
),
beside AS (
  SELECT
    c.*,
    r.at_ns AS prior_ns, r.end_ns AS prior_end_ns, r.model AS prior_model,
    r.input_tokens AS prior_input_tokens, r.output_tokens AS prior_output_tokens,
    r.read_tokens AS prior_read_tokens, r.write_tokens AS prior_write_tokens,
    CASE
      WHEN c.is_compacted THEN 'compaction'
      WHEN c.nth = 1 AND c.parent_key IS NOT NULL THEN 'fork'
      WHEN c.nth = 1 AND c.is_agent THEN 'agent'
      WHEN c.nth = 1 THEN 'first'
      WHEN r.model <> c.model AND c.input_tokens >= r.input_tokens * $near THEN 'model switch'
      WHEN r.model <> c.model THEN 'side call'
      WHEN r.input_tokens > c.room_tokens
        AND (c.next_1 >= r.input_tokens * $back OR c.next_2 >= r.input_tokens * $back
          OR r.input_tokens * 0.1 > c.input_tokens)
        AND c.input_tokens < r.input_tokens * $shrunk THEN 'side call'
      WHEN c.input_tokens < r.input_tokens * $shrunk THEN 'compaction'
      WHEN r.input_tokens > c.room_tokens THEN 'shrunk'
    END AS event
  FROM chosen AS c
  LEFT JOIN calls AS r ON c.prior_key = r.request_key
)
SELECT
  request_key, thread, session, is_agent, known, nth, turn,
  CASE WHEN turn IS NULL THEN NULL WHEN nth = 1 THEN TRUE ELSE turn <> coalesce(last_turn, -1) END
    AS is_first_of_turn,
  clock, at_ns, model, input_tokens, read_tokens, write_tokens, fresh_tokens, output_tokens,
  last_key, last_model, last_input_tokens,
  at_ns - last_ns AS since_ns,
  CASE WHEN last_ns IS NULL THEN NULL WHEN at_ns > last_end_ns THEN at_ns - last_end_ns ELSE 0 END
    AS idle_ns,
  CASE WHEN event = 'side call' THEN NULL ELSE prior_key END AS prior_key,
  CASE WHEN event = 'side call' THEN NULL ELSE at_ns - prior_ns END AS prior_since_ns,
  CASE WHEN event = 'side call' OR prior_ns IS NULL THEN NULL
    WHEN at_ns > prior_end_ns THEN at_ns - prior_end_ns ELSE 0 END AS prior_idle_ns,
  CASE WHEN event = 'side call' THEN NULL ELSE prior_input_tokens END AS prior_input_tokens,
  CASE WHEN event = 'side call' THEN NULL ELSE prior_output_tokens END AS prior_output_tokens,
  CASE WHEN event = 'side call' THEN NULL ELSE prior_read_tokens END AS prior_read_tokens,
  CASE WHEN event = 'side call' THEN NULL ELSE prior_write_tokens END AS prior_write_tokens,
  CASE WHEN event = 'side call' THEN NULL ELSE input_tokens - prior_input_tokens END
    AS growth_tokens,
  event
FROM beside
