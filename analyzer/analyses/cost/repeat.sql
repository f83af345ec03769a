-- What requests cost that are told more than once, and what wrong ways of adding up would say.
-- grain:   one row a request with a source that tells its usage record by record (transcripts)
-- needs:   resolve_repeat, resolve_list_price
-- returns: request_key BIGINT          -- the request
-- returns: is_sidechain BOOLEAN        -- a sub-agent's
-- returns: files BIGINT                -- sources that tell it
-- returns: records BIGINT              -- records that tell it, over all of them
-- returns: tokens BIGINT               -- prompt and output, as it counts
-- returns: records_tokens BIGINT       -- the same, were each record one request
-- returns: excess_tokens BIGINT        -- what that would be too much
-- returns: usd DECIMAL(38,15)          -- as it counts; NULL = a price is missing
-- returns: records_usd DECIMAL(38,15)  -- were each record one request
-- returns: first_usd DECIMAL(38,15)    -- were the first record the one that counts
-- returns: short_usd DECIMAL(38,15)    -- were every cache write a short-lived one
-- returns: unnamed_usd DECIMAL(38,15)  -- were records without the vendor's request id never joined
WITH sound AS (
  SELECT
    r.*,
    coalesce(r.output_tokens, 0) AS made_tokens,
    coalesce(r.first_output_tokens, 0) AS first_tokens,
    -- No request is larger, and sums stay exact.
    r.input_tokens + coalesce(r.output_tokens, 0) <= 1000000000000
      AND r.records <= 1000000 AND r.records_output_tokens <= 1000000000000 AS is_sound
  FROM resolve_repeat AS r
),
priced AS (
  SELECT
    s.request_key, s.is_sidechain, s.files, s.records, s.has_request_id, s.is_sound,
    s.input_tokens, s.made_tokens, s.first_tokens, s.records_output_tokens,
    CASE
      WHEN NOT s.is_sound OR coalesce(s.cache_write_unknown_tokens, 0) > 0 THEN NULL
      ELSE CASE WHEN coalesce(s.input_fresh_tokens, 0) = 0 THEN 0
          ELSE CAST(s.input_fresh_tokens AS DECIMAL(17,0)) * p.input_usd END
        + CASE WHEN coalesce(s.cache_read_tokens, 0) = 0 THEN 0
          ELSE CAST(s.cache_read_tokens AS DECIMAL(17,0)) * p.read_usd END
        + CASE WHEN coalesce(s.cache_write_short_tokens, 0) = 0 THEN 0
          ELSE CAST(s.cache_write_short_tokens AS DECIMAL(17,0)) * p.short_usd END
        + CASE WHEN coalesce(s.cache_write_long_tokens, 0) = 0 THEN 0
          ELSE CAST(s.cache_write_long_tokens AS DECIMAL(17,0)) * p.long_usd END
    END AS prompt_usd,
    CASE WHEN coalesce(s.cache_write_long_tokens, 0) = 0 THEN 0 WHEN s.is_sound
      THEN CAST(s.cache_write_long_tokens AS DECIMAL(17,0)) * (p.long_usd - p.short_usd)
    END AS longer_usd,
    p.output_usd
  FROM sound AS s
  LEFT JOIN resolve_list_price AS p ON s.request_key = p.request_key
),
summed AS (
  SELECT
    *,
    CAST(CASE WHEN is_sound THEN made_tokens END AS DECIMAL(17,0)) * output_usd AS made_usd,
    CAST(CASE WHEN is_sound THEN first_tokens END AS DECIMAL(17,0)) * output_usd AS began_usd,
    CAST(CASE WHEN is_sound THEN records_output_tokens END AS DECIMAL(17,0)) * output_usd
      AS all_made_usd
  FROM priced
)
SELECT
  request_key,
  is_sidechain,
  files,
  records,
  input_tokens + made_tokens AS tokens,
  CASE WHEN is_sound THEN input_tokens * records + records_output_tokens END AS records_tokens,
  CASE WHEN is_sound THEN input_tokens * (records - 1) + records_output_tokens - made_tokens END
    AS excess_tokens,
  CAST((prompt_usd + made_usd) AS DECIMAL(38,15)) AS usd,
  CAST((prompt_usd * records + all_made_usd) AS DECIMAL(38,15)) AS records_usd,
  CAST((prompt_usd + began_usd) AS DECIMAL(38,15)) AS first_usd,
  CAST((prompt_usd - longer_usd + made_usd) AS DECIMAL(38,15)) AS short_usd,
  CAST(CASE WHEN has_request_id THEN prompt_usd + made_usd
    ELSE prompt_usd * records + all_made_usd END AS DECIMAL(38,15)) AS unnamed_usd
FROM summed
