-- What the prompt of each request is made of, in characters by kind, as all vantages together tell it.
-- grain:   one row a request
-- needs:   resolve_instance, resolve_told, request
-- returns: request_key BIGINT           -- the request
-- returns: tools_chars BIGINT           -- of the tool definitions
-- returns: system_chars BIGINT          -- of the system prompt
-- returns: user_chars BIGINT            -- of what users said; in a transcript, in the session so far
-- returns: assistant_chars BIGINT       -- of earlier answers and their calls of tools
-- returns: reasoning_chars BIGINT       -- of earlier reasoning
-- returns: tool_result_chars BIGINT     -- of the results of tools
-- returns: input_chars BIGINT           -- of the whole prompt, where its text was logged
SELECT
  i.request_key,
  -- No prompt is larger, and what is made of it stays exact.
  max(CASE WHEN r.tools_chars <= 200000000 THEN r.tools_chars END) AS tools_chars,
  max(CASE WHEN r.system_chars <= 200000000 THEN r.system_chars END) AS system_chars,
  max(CASE WHEN r.user_chars <= 200000000 THEN r.user_chars END) AS user_chars,
  max(CASE WHEN r.assistant_chars <= 200000000 THEN r.assistant_chars END) AS assistant_chars,
  max(CASE WHEN r.reasoning_chars <= 200000000 THEN r.reasoning_chars END) AS reasoning_chars,
  max(CASE WHEN r.tool_result_chars <= 200000000 THEN r.tool_result_chars END) AS tool_result_chars,
  max(CASE WHEN r.input_chars <= 200000000 THEN r.input_chars END) AS input_chars
FROM resolve_instance AS i
JOIN resolve_told AS t ON i.row_id = t.row_id
JOIN request AS r
  ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
GROUP BY i.request_key
