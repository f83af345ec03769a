-- What each source says of each request, with the ids under which other vantages may know it.
-- grain:   one row a request row of the case
-- needs:   request
-- returns: row_id BIGINT            -- stable number of the row: source, record, vantage
-- returns: source_id INTEGER        -- where it was read
-- returns: record BIGINT            -- record of that source
-- returns: vantage VARCHAR          -- client, gateway, provider or engine
-- returns: vantage_rank INTEGER     -- 1 outermost (client) to 4 innermost (engine)
-- returns: priority BIGINT          -- rows of one vantage complete each other in this order
-- returns: own_id VARCHAR           -- request id without the engine's own prefix
-- returns: answer_id VARCHAR        -- response id without the engine's own prefix
-- returns: attempt BIGINT           -- attempt, where told
-- returns: start_ns BIGINT          -- start on that vantage's clock, ns
-- returns: end_ns BIGINT            -- last moment the row tells of, ns
-- returns: output_tokens BIGINT     -- visible and reasoning together
-- returns: unfinished BOOLEAN       -- its tokens are not the last word of the answer
WITH ranked AS (
  SELECT
    *,
    CASE vantage WHEN 'client' THEN 1 WHEN 'gateway' THEN 2 WHEN 'provider' THEN 3 ELSE 4 END
      AS rank_of,
    CASE timing WHEN 'stream' THEN 0 WHEN 'stated' THEN 1 ELSE 2 END AS preference,
    nullif(request_id, '') AS asked_id,
    nullif(response_id, '') AS given_id
  FROM request
)
SELECT
  CAST(source_id AS BIGINT) * 40000000000000 + record * 4 + rank_of - 1 AS row_id,
  source_id,
  record,
  vantage,
  CAST(rank_of AS INTEGER) AS vantage_rank,
  preference * 1000000000000000000 + CAST(source_id AS BIGINT) * 10000000000000 + record AS priority,
  -- vLLM: header X-Request-Id abc becomes chatcmpl-abc, or cmpl-abc-0 for completions.
  CASE
    WHEN asked_id LIKE 'chatcmpl-%' THEN substr(asked_id, 10)
    WHEN asked_id LIKE 'cmpl-%-0' THEN substr(asked_id, 6, length(asked_id) - 7)
    WHEN asked_id LIKE 'cmpl-%' THEN substr(asked_id, 6)
    ELSE asked_id
  END AS own_id,
  CASE
    WHEN given_id LIKE 'chatcmpl-%' THEN substr(given_id, 10)
    WHEN given_id LIKE 'cmpl-%-0' THEN substr(given_id, 6, length(given_id) - 7)
    WHEN given_id LIKE 'cmpl-%' THEN substr(given_id, 6)
    ELSE given_id
  END AS answer_id,
  attempt,
  CASE WHEN coalesce(clock, 'wall') = 'wall' THEN start_ns END AS start_ns,
  CASE WHEN coalesce(clock, 'wall') = 'wall'
    THEN start_ns + greatest(coalesce(e2e_ns, 0), coalesce(ttft_ns, 0)) END AS end_ns,
  CASE WHEN output_visible_tokens IS NULL AND output_reasoning_tokens IS NULL THEN NULL
    ELSE coalesce(output_visible_tokens, 0) + coalesce(output_reasoning_tokens, 0)
  END AS output_tokens,
  usage_final IS NOT NULL AND NOT usage_final AS unfinished
FROM ranked
