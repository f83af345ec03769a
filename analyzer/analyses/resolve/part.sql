-- Parts of the prompts that were logged, without their text.
-- grain:   one row a request and part
-- needs:   resolve_instance, resolve_told, prompt_part
-- returns: request_key BIGINT            -- the request
-- returns: part_index BIGINT             -- place in the prompt, from 0: tools, system, messages
-- returns: kind VARCHAR                  -- tools, system, user, assistant, tool_result, ...
-- returns: chars BIGINT                  -- characters of it
-- returns: part_hash VARCHAR             -- hash of its content
-- returns: plain_hash VARCHAR            -- the same with each volatile value replaced by its class
-- returns: volatile VARCHAR              -- classes of the volatile values in it; NULL = none
-- returns: first_volatile_chars BIGINT   -- characters before the first of them
WITH chosen AS (
  SELECT i.request_key, min(i.row_id) AS row_id
  FROM resolve_instance AS i
  JOIN resolve_told AS t ON i.row_id = t.row_id
  JOIN (SELECT DISTINCT source_id, record FROM prompt_part) AS p
    ON t.source_id = p.source_id AND t.record = p.record
  GROUP BY i.request_key
)
SELECT
  c.request_key, p.part_index, p.kind, p.chars, p.part_hash, p.plain_hash, p.volatile,
  p.first_volatile_chars
FROM chosen AS c
JOIN resolve_told AS t ON c.row_id = t.row_id
JOIN prompt_part AS p ON t.source_id = p.source_id AND t.record = p.record
