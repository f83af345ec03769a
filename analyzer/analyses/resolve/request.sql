-- Every request once: what it is, how large, how it ended, as all vantages together know it.
-- Filters of the command line apply here, and so to everything that follows.
-- grain:   one row a request (attempt)
-- needs:   resolve_instance, resolve_told, resolve_aligned, request, source
-- param:   since_ns = NULL    -- only requests that start at or after
-- param:   until_ns = NULL    -- only requests that start before
-- param:   model = NULL       -- only this model
-- param:   route = NULL       -- only this route
-- param:   session = NULL     -- only this session
-- returns: request_key BIGINT               -- the request
-- returns: id VARCHAR                       -- the id people see
-- returns: operation_id VARCHAR             -- one user intent over its retries
-- returns: attempt BIGINT                   -- attempt, from 1
-- returns: session_id VARCHAR               -- conversation
-- returns: turn BIGINT                      -- turn of it
-- returns: route VARCHAR                    -- path taken
-- returns: model VARCHAR                    -- model
-- returns: provider VARCHAR                 -- vendor
-- returns: deployment VARCHAR               -- engine instance
-- returns: source VARCHAR                   -- file of the outermost vantage that tells it
-- returns: start_ns BIGINT                  -- start at the outermost vantage that tells it, on the reference clock, ns UTC
-- returns: vantages BIGINT                  -- vantages that tell it
-- returns: outer_vantage VARCHAR            -- outermost of them
-- returns: inner_vantage VARCHAR            -- innermost of them
-- returns: input_fresh_tokens BIGINT        -- prompt tokens outside any cache
-- returns: cache_read_tokens BIGINT         -- prompt tokens read from a cache; NULL = not told
-- returns: cache_write_tokens BIGINT        -- prompt tokens written to a cache
-- returns: cache_write_short_tokens BIGINT  -- of those, to the short-lived cache
-- returns: cache_write_long_tokens BIGINT   -- of those, to the long-lived cache
-- returns: cache_write_unknown_tokens BIGINT -- of those, to a cache of unknown lifetime
-- returns: input_tokens BIGINT              -- context size: all prompt tokens
-- returns: output_visible_tokens BIGINT     -- output the user sees
-- returns: output_reasoning_tokens BIGINT   -- output spent on reasoning
-- returns: output_tokens BIGINT             -- both
-- returns: max_output_tokens BIGINT         -- limit asked for
-- returns: streamed BOOLEAN                 -- answered as a stream
-- returns: status BIGINT                    -- HTTP status, outermost
-- returns: error VARCHAR                    -- error class, outermost
-- returns: finish_reason VARCHAR            -- how it ended
-- returns: failed BOOLEAN                   -- it ended in an error, a timeout or an abort
-- returns: has_id BOOLEAN                   -- any source gave it an id
-- returns: service_tier VARCHAR             -- tier it was billed at, by the innermost that tells it
-- returns: speed VARCHAR                    -- speed that was asked for or billed
-- returns: reported_cost_usd DECIMAL(18,9)  -- cost by the innermost source that tells one
-- returns: reader VARCHAR                   -- reader of that file
WITH told AS (
  SELECT
    i.request_key, i.row_id, t.vantage_rank, t.own_id, t.answer_id, t.output_tokens, t.unfinished,
    a.aligned_ns AS wall_ns,
    -- What a side chain copied belongs to where it came from.
    t.vantage_rank * 1000000000000000 + CASE WHEN r.is_sidechain THEN 100000000000000 ELSE 0 END
      + t.source_id AS outer_order,
    -- The buckets of one prompt come from one source: the one that tells most of them, and for how
    -- long its cache keeps what was written, or that nothing was.
    CASE WHEN r.input_fresh_tokens IS NULL THEN 100 ELSE 0 END
      + CASE WHEN r.cache_read_tokens IS NULL THEN 10 ELSE 0 END
      + CASE WHEN r.cache_write_short_tokens > 0 OR r.cache_write_long_tokens > 0
        OR r.cache_write_unknown_tokens = 0 THEN 0 ELSE 5 END
      + t.vantage_rank AS input_order,
    CASE WHEN t.output_tokens IS NULL THEN 100 WHEN t.unfinished THEN 50 ELSE 0 END
      + CASE WHEN r.output_reasoning_tokens IS NULL THEN 10 ELSE 0 END + t.vantage_rank
      AS output_order,
    r.*
  FROM resolve_instance AS i
  JOIN resolve_told AS t ON i.row_id = t.row_id
  LEFT JOIN resolve_aligned AS a ON i.row_id = a.row_id
  JOIN request AS r
    ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
),
picked AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY request_key ORDER BY input_order, row_id) AS input_pick,
    row_number() OVER (
      PARTITION BY request_key ORDER BY output_order, coalesce(output_tokens, 0) DESC, row_id
    ) AS output_pick
  FROM told
),
merged AS (
  SELECT
    request_key,
    coalesce(
      min_by(request_id, outer_order) FILTER (WHERE request_id IS NOT NULL),
      min_by(response_id, outer_order) FILTER (WHERE response_id IS NOT NULL),
      concat('#', CAST(request_key AS VARCHAR))
    ) AS id,
    min_by(operation_id, outer_order) FILTER (WHERE operation_id IS NOT NULL) AS operation_id,
    min_by(attempt, outer_order) FILTER (WHERE attempt IS NOT NULL) AS attempt,
    min_by(session_id, outer_order) FILTER (WHERE session_id IS NOT NULL) AS session_id,
    min_by(turn, outer_order) FILTER (WHERE turn IS NOT NULL) AS turn,
    min_by(route, outer_order) FILTER (WHERE route IS NOT NULL) AS route,
    min_by(model, outer_order) FILTER (WHERE model IS NOT NULL) AS model,
    min_by(provider, outer_order) FILTER (WHERE provider IS NOT NULL) AS provider,
    min_by(deployment, outer_order) FILTER (WHERE deployment IS NOT NULL) AS deployment,
    min_by(source_id, outer_order) AS source_id,
    min_by(wall_ns, outer_order) FILTER (WHERE wall_ns IS NOT NULL) AS start_ns,
    count(DISTINCT vantage) AS vantages,
    min_by(vantage, outer_order) AS outer_vantage,
    max_by(vantage, outer_order) AS inner_vantage,
    max(CASE WHEN input_pick = 1 THEN input_fresh_tokens END) AS input_fresh_tokens,
    max(CASE WHEN input_pick = 1 THEN cache_read_tokens END) AS cache_read_tokens,
    max(CASE WHEN input_pick = 1 AND (cache_write_short_tokens IS NOT NULL
      OR cache_write_long_tokens IS NOT NULL OR cache_write_unknown_tokens IS NOT NULL)
      THEN coalesce(cache_write_short_tokens, 0) + coalesce(cache_write_long_tokens, 0)
        + coalesce(cache_write_unknown_tokens, 0) END) AS cache_write_tokens,
    max(CASE WHEN input_pick = 1 THEN cache_write_short_tokens END) AS cache_write_short_tokens,
    max(CASE WHEN input_pick = 1 THEN cache_write_long_tokens END) AS cache_write_long_tokens,
    max(CASE WHEN input_pick = 1 THEN cache_write_unknown_tokens END)
      AS cache_write_unknown_tokens,
    max(CASE WHEN output_pick = 1 THEN output_visible_tokens END) AS output_visible_tokens,
    max(CASE WHEN output_pick = 1 THEN output_reasoning_tokens END) AS output_reasoning_tokens,
    max(CASE WHEN output_pick = 1 THEN output_tokens END) AS output_tokens,
    min_by(max_output_tokens, outer_order) FILTER (WHERE max_output_tokens IS NOT NULL)
      AS max_output_tokens,
    min_by(streamed, outer_order) FILTER (WHERE streamed IS NOT NULL) AS streamed,
    min_by(status, outer_order) FILTER (WHERE status IS NOT NULL) AS status,
    min_by(error, outer_order) FILTER (WHERE error IS NOT NULL) AS error,
    min_by(finish_reason, outer_order) FILTER (WHERE finish_reason IS NOT NULL) AS finish_reason,
    count(own_id) + count(answer_id) > 0 AS has_id,
    max_by(service_tier, outer_order) FILTER (WHERE service_tier IS NOT NULL) AS service_tier,
    max_by(speed, outer_order) FILTER (WHERE speed IS NOT NULL) AS speed,
    min_by(reported_cost_usd, CASE WHEN unfinished THEN 1000000000000000000 ELSE 0 END - outer_order)
      FILTER (WHERE reported_cost_usd IS NOT NULL) AS reported_cost_usd
  FROM picked
  GROUP BY request_key
)
SELECT
  m.request_key, m.id, m.operation_id, m.attempt, m.session_id, m.turn, m.route, m.model,
  m.provider, m.deployment, s.path AS source, m.start_ns, m.vantages, m.outer_vantage,
  m.inner_vantage, m.input_fresh_tokens, m.cache_read_tokens, m.cache_write_tokens,
  m.cache_write_short_tokens, m.cache_write_long_tokens, m.cache_write_unknown_tokens,
  m.input_fresh_tokens + coalesce(m.cache_read_tokens, 0) + coalesce(m.cache_write_tokens, 0)
    AS input_tokens,
  m.output_visible_tokens, m.output_reasoning_tokens, m.output_tokens, m.max_output_tokens,
  m.streamed, m.status, m.error, m.finish_reason,
  m.error IS NOT NULL OR coalesce(m.status, 0) >= 400
    OR coalesce(m.finish_reason, '') IN ('abort', 'cancelled', 'timeout', 'error') AS failed,
  m.has_id, m.service_tier, m.speed, m.reported_cost_usd, s.reader
FROM merged AS m
JOIN source AS s ON m.source_id = s.source_id
WHERE ($since_ns IS NULL OR m.start_ns >= $since_ns)
  AND ($until_ns IS NULL OR m.start_ns < $until_ns)
  AND ($model IS NULL OR m.model = $model)
  AND ($route IS NULL OR m.route = $route)
  AND ($session IS NULL OR m.session_id = $session)
