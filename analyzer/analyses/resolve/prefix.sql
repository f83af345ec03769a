-- Blocks of the prompts whose prefixes are known as hashes: equal hashes are equal prompts up to there.
-- grain:   one row a request and block
-- needs:   resolve_conversation, resolve_told, resolve_request, prompt_block
-- returns: request_key BIGINT        -- the request
-- returns: block_index BIGINT        -- block of its prompt, from 0
-- returns: prefix_hash VARCHAR       -- hash of the prompt up to and including the block
-- returns: end_tokens BIGINT         -- tokens of the prompt up to there
SELECT
  c.request_key, b.block_index, b.prefix_hash,
  CASE WHEN q.input_tokens < (b.block_index + 1) * c.block_tokens THEN q.input_tokens
    ELSE (b.block_index + 1) * c.block_tokens END AS end_tokens
FROM resolve_conversation AS c
JOIN resolve_request AS q ON c.request_key = q.request_key
JOIN resolve_told AS t ON c.block_row = t.row_id
JOIN prompt_block AS b ON t.source_id = b.source_id AND t.record = b.record
WHERE b.prefix_hash IS NOT NULL
