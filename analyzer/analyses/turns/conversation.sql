-- Each conversation: how long it is, how its prompts develop, how much of them had been sent before, and
-- what a cache served of that.
-- grain:   one row a conversation
-- needs:   turns_call, turns_growth, turns_history, turns_compaction, turns_call_cost
-- returns: session VARCHAR                  -- the conversation
-- returns: known VARCHAR                    -- told, hashes, size (suspected) or alone
-- returns: confidence VARCHAR               -- measured, derived or suspected: that these calls are one conversation
-- returns: calls BIGINT                     -- calls
-- returns: turns BIGINT                     -- turns of its main thread; NULL = not told
-- returns: threads BIGINT                   -- threads of calls
-- returns: agents BIGINT                    -- of those, sub-agents or side threads
-- returns: agent_calls BIGINT               -- calls of those
-- returns: models BIGINT                    -- models
-- returns: model VARCHAR                    -- the one with most calls
-- returns: clock VARCHAR                    -- wall, or the source whose own clock tells most of its times
-- returns: first_ns BIGINT                  -- start of its first call on that clock, ns
-- returns: last_ns BIGINT                   -- start of its last call on that clock, ns
-- returns: first_tokens BIGINT              -- first prompt of its main thread
-- returns: last_tokens BIGINT               -- last prompt of it
-- returns: max_tokens BIGINT                -- largest prompt of it
-- returns: growth_tokens DOUBLE             -- mean growth a turn, or a call where turns are not told
-- returns: call_growth_tokens DOUBLE        -- median growth from call to call
-- returns: state VARCHAR                    -- of its main thread: short, compacted, plateau, growing or flat
-- returns: compactions BIGINT               -- compactions and cuts, all threads
-- returns: freed_tokens BIGINT              -- tokens they freed; NULL = there was none
-- returns: back_calls DOUBLE                -- median calls until the prompt was as large again; NULL = it never was
-- returns: sent_tokens BIGINT               -- prompt tokens of all calls
-- returns: flat_tokens BIGINT               -- what would have been sent had each call carried the thread's first prompt and its own new part only
-- returns: resent_tokens BIGINT             -- prompt tokens that the call before had sent, too
-- returns: resent_ratio DOUBLE              -- of all prompt tokens
-- returns: history_tokens BIGINT            -- of those beyond the first prompt: the sum that grows with the square of the calls
-- returns: again_tokens BIGINT              -- history that is known to have been computed again though nothing was lost from a cache
-- returns: read_tokens BIGINT               -- prompt tokens read from a cache; NULL = not told
-- returns: cached_ratio DOUBLE              -- of the prompt tokens of calls that tell it; NULL = not told
-- returns: usd DECIMAL(38,15)               -- cost of the calls that are priced; NULL = none is
WITH summed AS (
  SELECT
    session, count(*) AS calls, count(DISTINCT thread) AS threads,
    count(DISTINCT CASE WHEN is_agent THEN thread END) AS agents,
    count(CASE WHEN is_agent THEN 1 END) AS agent_calls, count(DISTINCT model) AS models,
    max(CASE known WHEN 'size' THEN 3 WHEN 'hashes' THEN 2 WHEN 'told' THEN 1 ELSE 0 END) AS rank,
    CAST(SUM(input_tokens) AS BIGINT) AS sent_tokens,
    CAST(SUM(read_tokens) AS BIGINT) AS read_tokens,
    CAST(SUM(CASE WHEN read_tokens IS NOT NULL THEN input_tokens END) AS BIGINT) AS told_tokens
  FROM turns_call
  GROUP BY session
),
-- Times of two clocks cannot be compared.
timed AS (
  SELECT
    session, clock, min(at_ns) AS first_ns, max(at_ns) AS last_ns,
    row_number() OVER (
      PARTITION BY session
      ORDER BY CASE WHEN clock = 'wall' THEN 0 ELSE 1 END, count(*) DESC, clock
    ) AS place
  FROM turns_call
  GROUP BY session, clock
),
by_model AS (
  SELECT
    session, model,
    row_number() OVER (PARTITION BY session ORDER BY count(*) DESC, model) AS place
  FROM turns_call
  GROUP BY session, model
),
main AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY session
      ORDER BY CASE WHEN is_agent THEN 1 ELSE 0 END, calls DESC,
        CASE WHEN clock = 'wall' THEN 0 ELSE 1 END, clock, first_ns, thread
    ) AS place
  FROM turns_growth
),
sent AS (
  SELECT
    c.session,
    CAST(SUM(h.resent_tokens) AS BIGINT) AS resent_tokens,
    CAST(SUM(h.history_tokens) AS BIGINT) AS history_tokens,
    CAST(SUM(CASE WHEN g.cache IN ('told', 'none') THEN h.again_tokens ELSE 0 END) AS BIGINT) AS again_tokens
  FROM turns_history AS h
  JOIN turns_call AS c ON h.request_key = c.request_key
  JOIN turns_growth AS g ON h.clock = g.clock AND h.thread = g.thread
  GROUP BY c.session
),
cut AS (
  SELECT
    session, count(*) AS compactions, CAST(SUM(freed_tokens) AS BIGINT) AS freed_tokens,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY back_calls) AS back_calls
  FROM turns_compaction
  GROUP BY session
),
money AS (
  SELECT c.session, SUM(m.usd) AS usd
  FROM turns_call AS c
  JOIN turns_call_cost AS m ON c.request_key = m.request_key
  GROUP BY c.session
)
SELECT
  s.session,
  CASE s.rank WHEN 3 THEN 'size' WHEN 2 THEN 'hashes' WHEN 1 THEN 'told' ELSE 'alone' END AS known,
  CASE s.rank WHEN 3 THEN 'suspected' WHEN 1 THEN 'measured' ELSE 'derived' END AS confidence,
  s.calls, m.turns, s.threads, s.agents, s.agent_calls, s.models, b.model, w.clock, w.first_ns,
  w.last_ns,
  m.first_tokens, m.last_tokens, m.max_tokens, m.growth_tokens, m.call_growth_tokens, m.state,
  coalesce(c.compactions, 0) AS compactions, c.freed_tokens, c.back_calls, s.sent_tokens,
  s.sent_tokens - coalesce(t.history_tokens, 0) AS flat_tokens,
  coalesce(t.resent_tokens, 0) AS resent_tokens,
  CAST(coalesce(t.resent_tokens, 0) AS DOUBLE) / nullif(s.sent_tokens, 0) AS resent_ratio,
  coalesce(t.history_tokens, 0) AS history_tokens, coalesce(t.again_tokens, 0) AS again_tokens,
  s.read_tokens, CAST(s.read_tokens AS DOUBLE) / nullif(s.told_tokens, 0) AS cached_ratio,
  CAST(y.usd AS DECIMAL(38,15)) AS usd
FROM summed AS s
JOIN by_model AS b ON s.session = b.session AND b.place = 1
JOIN timed AS w ON s.session = w.session AND w.place = 1
LEFT JOIN main AS m ON s.session = m.session AND m.place = 1
LEFT JOIN sent AS t ON s.session = t.session
LEFT JOIN cut AS c ON s.session = c.session
LEFT JOIN money AS y ON s.session = y.session
