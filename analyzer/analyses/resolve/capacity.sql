-- How many tokens the KV cache of a model server holds, where a log or deployment says so.
-- grain:   one row for the case
-- needs:   engine_sample, deployment
-- returns: capacity_tokens BIGINT   -- tokens, the smallest that is told; NULL = not told
SELECT min(capacity_tokens) AS capacity_tokens
FROM (
  SELECT capacity_tokens FROM engine_sample WHERE capacity_tokens > 0
  UNION ALL
  SELECT kv_capacity_tokens FROM deployment WHERE kv_capacity_tokens > 0
) AS told
