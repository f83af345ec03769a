-- Which sources look into the answers, and so can tell their usage: they tell it of some request, or
-- how an answer ended, or its chunks. A network log that only sees bytes pass can tell it of none.
-- grain:   one row a source and vantage
-- needs:   request
-- returns: source_id INTEGER      -- the source
-- returns: vantage VARCHAR        -- its vantage
-- returns: requests BIGINT        -- requests it tells
-- returns: counted BIGINT         -- of those, with output tokens
-- returns: can_count BOOLEAN      -- it can tell usage
SELECT
  source_id,
  vantage,
  count(*) AS requests,
  count(coalesce(output_visible_tokens, output_reasoning_tokens)) AS counted,
  count(coalesce(output_visible_tokens, output_reasoning_tokens)) > 0
    OR count(finish_reason) > 0 OR count(chunks) > 0 AS can_count
FROM request
GROUP BY source_id, vantage
