-- What a client or a gateway alone knows of the time to first token, with what was on its way when a
-- request was sent: the points of the model that splits it.
-- grain:   one row a request with a start and a time to first token
-- needs:   resolve_request, latency_segment, latency_token
-- returns: request_key BIGINT          -- the request
-- returns: model VARCHAR               -- model; empty = not told
-- returns: deployment VARCHAR          -- engine instance; empty = not told
-- returns: route VARCHAR               -- path taken; empty = not told
-- returns: vantage VARCHAR             -- whose time to first token it is
-- returns: start_ns BIGINT             -- when it was sent, ns UTC
-- returns: ttft_ns BIGINT              -- time to first token at that vantage, ns
-- returns: queue_ns BIGINT             -- queue where a source tells it, ns
-- returns: prefill_ns BIGINT           -- prefill where a source tells it, ns
-- returns: fresh_tokens BIGINT         -- prompt tokens outside the cache, as far as told
-- returns: cached_tokens BIGINT        -- prompt tokens from the cache; NULL = not told
-- returns: step_ns DOUBLE              -- time per output token, ns
-- returns: first_ns BIGINT             -- last first token of requests sent before, ns UTC
-- returns: last_ns BIGINT              -- last end of requests sent before, ns UTC
-- returns: next_ns BIGINT              -- when the next request was sent, ns UTC
-- returns: usable BOOLEAN              -- an answer whose prompt is known: it may shape the fit
WITH timed AS (
  SELECT
    r.request_key, coalesce(r.model, '') AS model, coalesce(r.deployment, '') AS deployment,
    coalesce(r.route, '') AS route,
    -- What the server tells alone leaves the network out; with its parts told there is no need.
    CASE WHEN s.queue_ns IS NULL AND s.prefill_ns IS NULL AND s.server_ttft_ns IS NOT NULL
      THEN r.inner_vantage ELSE s.ttft_vantage END AS vantage,
    r.start_ns,
    CASE WHEN s.queue_ns IS NULL AND s.prefill_ns IS NULL AND s.server_ttft_ns IS NOT NULL
      THEN s.server_ttft_ns ELSE s.ttft_ns END AS ttft_ns,
    s.queue_ns, s.prefill_ns, s.ttft_ns AS outer_ttft_ns, s.e2e_ns,
    r.input_fresh_tokens + coalesce(r.cache_write_tokens, 0) AS fresh_tokens,
    r.cache_read_tokens AS cached_tokens, t.tpot_ns AS step_ns, r.failed
  FROM latency_segment AS s
  JOIN resolve_request AS r ON s.request_key = r.request_key
  JOIN latency_token AS t ON s.request_key = t.request_key
  WHERE r.start_ns IS NOT NULL AND s.ttft_ns > 0
)
SELECT
  request_key, model, deployment, route, vantage, start_ns, ttft_ns, queue_ns, prefill_ns,
  fresh_tokens, cached_tokens, step_ns,
  max(start_ns + outer_ttft_ns) OVER earlier AS first_ns,
  max(start_ns + coalesce(e2e_ns, outer_ttft_ns)) OVER earlier AS last_ns,
  lead(start_ns) OVER (PARTITION BY model, deployment ORDER BY start_ns, request_key) AS next_ns,
  fresh_tokens IS NOT NULL AND NOT failed AS usable
FROM timed
WINDOW earlier AS (
  PARTITION BY model, deployment ORDER BY start_ns, request_key
  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
)
