-- What the prompt cache of each provider and model keeps, how long, and what it asks for: by name, by
-- the platform, else by how the log counts; an engine keeps what there is room for.
-- grain:   one row a provider and model of the requests
-- needs:   resolve_request, resolve_instance, resolve_told, resolve_deployment, request, engine_sample, source
-- python:  cache_rule -- patterns of names, from catalogs/cache_rules.toml
-- param:   most_pairs = 1000                  -- providers and models; more are names gone wild
-- returns: provider VARCHAR                   -- vendor as the requests tell it; empty = not told
-- returns: model VARCHAR                      -- model as the requests tell it; empty = not told
-- returns: vendor VARCHAR                     -- whose rules: openai, anthropic, google, deepseek, bedrock, vertex, azure, engine or unknown
-- returns: family VARCHAR                     -- part of the name that decided, the engine, or the way of counting; NULL = vendor alone
-- returns: min_tokens BIGINT                  -- shortest prefix that is cached, tokens; NULL = not known
-- returns: step_tokens BIGINT                 -- counts of cached tokens are multiples of this, tokens; NULL = not known
-- returns: short_life_ns BIGINT               -- idle time that a prefix is kept for, ns; NULL = none promised
-- returns: long_life_ns BIGINT                -- for the longer choice, ns; NULL = there is none
-- returns: life_unknown BOOLEAN               -- nothing is promised: a prefix may go sooner or stay longer
-- returns: refreshed_by_hit BOOLEAN           -- a hit starts the lifetime again; NULL = not known
-- returns: short_write_factor DOUBLE          -- what a written token costs, times the price of an input token
-- returns: long_write_factor DOUBLE           -- likewise for the longer choice
-- returns: read_factor DOUBLE                 -- likewise what a token costs that is read; NULL = not known
-- returns: max_breakpoints BIGINT             -- marks a request may set; NULL = no marks
-- returns: look_back_blocks BIGINT            -- blocks of content searched before a mark; NULL = no marks
-- returns: scope VARCHAR                      -- who shares it: engine, organisation, workspace, account, ...
-- returns: switch_drops VARCHAR               -- what makes a known prefix a new one
-- returns: source VARCHAR                     -- where the rule stands
-- returns: as_of VARCHAR                      -- day it was looked up
WITH counted AS (
  SELECT
    i.request_key,
    max(t.vantage_rank) AS innermost,
    max(coalesce(r.cache_write_short_tokens, r.cache_write_long_tokens)) AS apart_tokens,
    max(r.cache_write_unknown_tokens) AS written_tokens,
    max(CASE WHEN r.usage_convention = 'exclusive' THEN 1 ELSE 0 END) AS exclusive
  FROM resolve_instance AS i
  JOIN resolve_told AS t ON i.row_id = t.row_id
  JOIN request AS r
    ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
  GROUP BY i.request_key
),
pairs AS (
  SELECT
    coalesce(q.provider, '') AS provider, coalesce(q.model, '') AS model,
    count(*) AS requests,
    max(CASE WHEN c.innermost = 4 THEN 1 ELSE 0 END) AS by_engine,
    max(c.exclusive) AS exclusive,
    max(c.apart_tokens) AS apart_tokens,
    max(c.written_tokens) AS written_tokens
  FROM resolve_request AS q
  JOIN counted AS c ON q.request_key = c.request_key
  GROUP BY coalesce(q.provider, ''), coalesce(q.model, '')
),
placed AS (
  SELECT *, row_number() OVER (ORDER BY requests DESC, provider, model) AS place FROM pairs
),
engine_sources AS (
  SELECT source_id, CAST(NULL AS VARCHAR) AS model FROM engine_sample
  UNION
  SELECT source_id, model FROM resolve_deployment
  UNION
  SELECT source_id, CAST(NULL AS VARCHAR) AS model FROM request WHERE vantage = 'engine'
),
engines AS (
  SELECT DISTINCT s.reader, e.model AS deployed
  FROM engine_sources AS e
  JOIN source AS s ON e.source_id = s.source_id
)
SELECT
  p.provider, p.model, p.by_engine, p.exclusive, p.apart_tokens, p.written_tokens, e.reader,
  e.deployed
FROM placed AS p
LEFT JOIN engines AS e ON TRUE
WHERE p.place <= $most_pairs
ORDER BY p.place, e.reader, e.deployed
