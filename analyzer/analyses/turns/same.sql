-- How much of each prompt is word for word the prompt it continues, by the hashes of their blocks: of
-- tokens, or of the text where it was logged.
-- grain:   one row a call whose prompt and prior prompt are both known as hashes
-- needs:   turns_call, resolve_prefix, resolve_text_prefix, resolve_conversation
-- returns: request_key BIGINT        -- the call
-- returns: block_tokens BIGINT       -- tokens a block covers; of a text, on average
-- returns: same_tokens BIGINT        -- beginning that both prompts share, in whole blocks, tokens
-- returns: prior_tokens BIGINT       -- whole blocks of the prior prompt, tokens
-- returns: is_whole BOOLEAN          -- the prior prompt stands unchanged at the beginning
WITH pairs AS (
  SELECT c.request_key, c.prior_key, v.block_tokens
  FROM turns_call AS c
  JOIN resolve_conversation AS v ON c.prior_key = v.request_key
  JOIN resolve_conversation AS w ON c.request_key = w.request_key
  WHERE v.block_tokens = w.block_tokens
),
written AS (
  SELECT request_key, max(end_tokens) / count(*) AS block_tokens
  FROM resolve_text_prefix
  GROUP BY request_key
),
beside AS (
  SELECT
    p.request_key, p.block_tokens, b.end_tokens, b.end_tokens AS prior_tokens,
    b.end_tokens = (b.block_index + 1) * p.block_tokens AS is_full,
    a.prefix_hash IS NOT NULL AND a.prefix_hash = b.prefix_hash AS is_same
  FROM pairs AS p
  JOIN resolve_prefix AS b ON p.prior_key = b.request_key
  LEFT JOIN resolve_prefix AS a ON p.request_key = a.request_key AND b.block_index = a.block_index
  UNION ALL
  SELECT
    c.request_key, CAST(w.block_tokens AS BIGINT) AS block_tokens,
    coalesce(a.end_tokens, 0) AS end_tokens, b.end_tokens AS prior_tokens, TRUE AS is_full,
    a.prefix_hash IS NOT NULL AND a.prefix_hash = b.prefix_hash AS is_same
  FROM turns_call AS c
  JOIN written AS w ON c.request_key = w.request_key
  JOIN resolve_text_prefix AS b ON c.prior_key = b.request_key
  LEFT JOIN resolve_text_prefix AS a
    ON c.request_key = a.request_key AND b.block_index = a.block_index
)
SELECT
  request_key,
  max(block_tokens) AS block_tokens,
  max(CASE WHEN is_same AND is_full THEN end_tokens ELSE 0 END) AS same_tokens,
  max(CASE WHEN is_full THEN prior_tokens ELSE 0 END) AS prior_tokens,
  min(CASE WHEN is_same OR NOT is_full THEN 1 ELSE 0 END) = 1 AS is_whole
FROM beside
GROUP BY request_key
