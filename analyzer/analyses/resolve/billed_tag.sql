-- What labels tell that decides a price: where inference was kept, batches, searches, sound and
-- pictures among the tokens, and whether a plan includes it.
-- grain:   one row a request with such a label
-- needs:   resolve_instance, resolve_told, request_tag
-- returns: request_key BIGINT          -- the request
-- returns: speed VARCHAR               -- fast, or another speed
-- returns: geo VARCHAR                 -- where inference was kept
-- returns: tier VARCHAR                -- batch, or the kind of traffic
-- returns: web_searches BIGINT         -- searches the vendor made
-- returns: input_audio_tokens BIGINT   -- prompt tokens that are sound, cached ones included
-- returns: read_audio_tokens BIGINT    -- of those, read from the cache
-- returns: output_audio_tokens BIGINT  -- output tokens that are sound
-- returns: input_image_tokens BIGINT   -- prompt tokens that are pictures, cached ones included
-- returns: read_image_tokens BIGINT    -- of those, read from the cache
-- returns: output_image_tokens BIGINT  -- output tokens that are pictures
-- returns: is_included BOOLEAN         -- a plan includes it; NULL = not told
WITH told AS (
  SELECT
    i.request_key, g.name, g.value,
    CASE WHEN g.name IN (
      'web_search_requests', 'input_audio_tokens', 'read_audio_tokens', 'output_audio_tokens',
      'input_image_tokens', 'read_image_tokens', 'output_image_tokens'
    ) AND length(g.value) <= 15 AND g.value NOT LIKE '%.%' THEN TRY_CAST(g.value AS BIGINT) END
      AS amount
  FROM request_tag AS g
  JOIN resolve_told AS t ON g.source_id = t.source_id AND g.record = t.record
  JOIN resolve_instance AS i ON t.row_id = i.row_id
  WHERE g.name IN (
    'speed', 'inference_geo', 'batch', 'trafficType', 'kind', 'auth_type', 'billing',
    'web_search_requests', 'input_audio_tokens', 'read_audio_tokens', 'output_audio_tokens',
    'input_image_tokens', 'read_image_tokens', 'output_image_tokens'
  )
)
SELECT
  request_key,
  max(CASE WHEN name = 'speed' THEN value END) AS speed,
  max(CASE WHEN name = 'inference_geo' THEN value END) AS geo,
  coalesce(
    max(CASE WHEN name = 'batch' AND value IN ('true', '1', 'batch') THEN 'batch' END),
    max(CASE WHEN name = 'trafficType' THEN value END)
  ) AS tier,
  max(CASE WHEN name = 'web_search_requests' THEN amount END) AS web_searches,
  max(CASE WHEN name = 'input_audio_tokens' THEN amount END) AS input_audio_tokens,
  max(CASE WHEN name = 'read_audio_tokens' THEN amount END) AS read_audio_tokens,
  max(CASE WHEN name = 'output_audio_tokens' THEN amount END) AS output_audio_tokens,
  max(CASE WHEN name = 'input_image_tokens' THEN amount END) AS input_image_tokens,
  max(CASE WHEN name = 'read_image_tokens' THEN amount END) AS read_image_tokens,
  max(CASE WHEN name = 'output_image_tokens' THEN amount END) AS output_image_tokens,
  max(CASE
    WHEN name = 'kind' AND value LIKE '%ncluded%' THEN 1
    WHEN name = 'billing' AND value IN ('subscription', 'plan', 'included') THEN 1
    WHEN name = 'auth_type' AND (value LIKE '%oauth%' OR value LIKE '%subscription%') THEN 1
    WHEN name = 'billing' AND value IN ('api', 'api_key', 'metered') THEN 0
    WHEN name = 'auth_type' AND (value LIKE '%api%key%' OR value LIKE '%vertex%') THEN 0
  END) = 1 AS is_included
FROM told
GROUP BY request_key
