-- Prompts whose processing is timed with the queue taken off: prefill where it is told, else the time
-- to first token less queue and network, where the queue is told.
-- grain:   one row a request with a timed prefill, prompt and cached tokens
-- needs:   resolve_request, latency_segment, hardware_setting
-- param:   few_tokens = 16              -- fewer new tokens say nothing of the rate
-- returns: request_key BIGINT           -- the request
-- returns: deployment VARCHAR           -- label of the request; empty = none
-- returns: model VARCHAR                -- its model; empty = not told
-- returns: unit VARCHAR                 -- engine, as far as that is told
-- returns: new_tokens BIGINT            -- prompt tokens that are processed
-- returns: cached_tokens BIGINT         -- prompt tokens that are known already
-- returns: new_cell BIGINT              -- new tokens, rounded down
-- returns: cached_cell BIGINT           -- cached tokens, rounded down
-- returns: prefill_ns BIGINT            -- time of their processing, ns
WITH timed AS (
  SELECT
    r.request_key, s.deployment, s.model, s.unit,
    r.input_tokens - r.cache_read_tokens AS new_tokens, r.cache_read_tokens AS cached_tokens,
    coalesce(
      g.prefill_ns, g.ttft_ns - g.queue_ns - coalesce(g.network_ttft_ns, 0)
    ) AS prefill_ns
  FROM resolve_request AS r
  JOIN latency_segment AS g ON r.request_key = g.request_key
  JOIN hardware_setting AS s
    ON coalesce(r.deployment, '') = s.deployment AND coalesce(r.model, '') = s.model AND s.usable
  -- Of an unknown cache nothing can be said: most of the prompt may have been there.
  WHERE NOT r.failed AND r.cache_read_tokens IS NOT NULL
),
stepped AS (
  SELECT
    *,
    CASE
      WHEN new_tokens < 256 THEN 1 WHEN new_tokens < 1024 THEN 4 WHEN new_tokens < 4096 THEN 16 WHEN new_tokens < 16384 THEN 64
      WHEN new_tokens < 65536 THEN 256 WHEN new_tokens < 262144 THEN 1024 ELSE 4096
    END AS new_step,
    CASE
      WHEN cached_tokens < 256 THEN 1 WHEN cached_tokens < 1024 THEN 4 WHEN cached_tokens < 4096 THEN 16 WHEN cached_tokens < 16384 THEN 64
      WHEN cached_tokens < 65536 THEN 256 WHEN cached_tokens < 262144 THEN 1024 ELSE 4096
    END AS cached_step
  FROM timed
  WHERE prefill_ns > 0 AND new_tokens >= $few_tokens AND cached_tokens >= 0
)
SELECT
  request_key, deployment, model, unit, new_tokens, cached_tokens,
  new_tokens - new_tokens % new_step AS new_cell,
  cached_tokens - cached_tokens % cached_step AS cached_cell,
  prefill_ns
FROM stepped
