-- Blocks of the prompts whose text was logged: equal hashes are equal texts up to there. Their tokens
-- are the prompt's own, spread evenly over its characters. Prompts that tell hashes of tokens are
-- in resolve_prefix instead.
-- grain:   one row a request and block
-- needs:   resolve_instance, resolve_told, resolve_conversation, resolve_request, request, prompt_block
-- returns: request_key BIGINT        -- the request
-- returns: block_index BIGINT        -- block of its prompt, from 0
-- returns: prefix_hash VARCHAR       -- hash of the prompt up to and including the block
-- returns: end_tokens BIGINT         -- tokens of the prompt up to there, about
WITH written AS (
  SELECT
    i.request_key, min(i.row_id) AS row_id,
    min_by(r.prefix_block_chars, i.row_id) AS block_chars,
    max(r.input_chars) AS input_chars
  FROM resolve_instance AS i
  JOIN resolve_told AS t ON i.row_id = t.row_id
  JOIN request AS r
    ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
  WHERE r.prefix_block_chars > 0
  GROUP BY i.request_key
)
SELECT
  w.request_key, b.block_index, b.prefix_hash,
  CASE WHEN (b.block_index + 1) * w.block_chars < w.input_chars
    THEN CAST((b.block_index + 1) * w.block_chars * (CAST(q.input_tokens AS DOUBLE) / w.input_chars)
      AS BIGINT)
    ELSE q.input_tokens END AS end_tokens
FROM written AS w
JOIN resolve_conversation AS c ON w.request_key = c.request_key
JOIN resolve_request AS q ON w.request_key = q.request_key
JOIN resolve_told AS t ON w.row_id = t.row_id
JOIN prompt_block AS b ON t.source_id = b.source_id AND t.record = b.record
WHERE b.prefix_hash IS NOT NULL AND c.block_row IS NULL AND q.input_tokens > 0
  AND w.input_chars > 0
