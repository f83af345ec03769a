-- Time per output token and chunk shape. TPOT = (e2e - ttft) / (output tokens - tokens of the first
-- chunk), from the vantage nearest the engine; a chunk is not a token, so chunk gaps never stand in
-- for it.
-- grain:   one row a request
-- needs:   resolve_request, resolve_vantage, latency_segment
-- returns: request_key BIGINT           -- the request
-- returns: output_tokens BIGINT         -- visible and reasoning
-- returns: first_tokens BIGINT          -- tokens of the first chunk: told, else by characters, else 1
-- returns: tpot_ns DOUBLE               -- time per output token, ns; NULL for a single token
-- returns: tpot_vantage VARCHAR         -- engine, or the client's view
-- returns: chunks BIGINT                -- chunks that carried tokens, at the client
-- returns: streamed_tokens BIGINT       -- tokens those chunks carried
-- returns: tokens_per_chunk DOUBLE      -- tokens a chunk
-- returns: arrival_ns BIGINT            -- first to last token as the client saw it, ns
WITH client AS (
  SELECT * FROM resolve_vantage WHERE vantage = 'client' AND timing = 'stream'
),
sized AS (
  SELECT
    r.request_key, r.output_tokens, s.decode_ns, s.decode_grade, s.ttft_vantage,
    c.chunks, c.chunk_chars, c.first_chunk_chars, c.first_chunk_tokens,
    c.e2e_ns - c.ttft_ns AS arrival_ns,
    -- Reasoning that was not streamed is in the usage but in no chunk.
    CASE WHEN c.first_reasoning_ns IS NOT NULL OR r.output_reasoning_tokens IS NULL
      THEN r.output_tokens ELSE r.output_visible_tokens END AS streamed_tokens
  FROM resolve_request AS r
  JOIN latency_segment AS s ON r.request_key = s.request_key
  LEFT JOIN client AS c ON r.request_key = c.request_key
),
first_chunk AS (
  SELECT
    *,
    CASE
      WHEN decode_grade = 'measured' OR chunks IS NULL THEN 1
      WHEN first_chunk_tokens IS NOT NULL THEN first_chunk_tokens
      WHEN first_chunk_chars > 0 AND chunk_chars > 0 THEN
        greatest(1, CAST(round(CAST(streamed_tokens AS DOUBLE) * first_chunk_chars / chunk_chars)
          AS BIGINT))
      ELSE 1
    END AS first_tokens
  FROM sized
)
SELECT
  request_key,
  output_tokens,
  first_tokens,
  CASE WHEN output_tokens > first_tokens AND decode_ns > 0
    THEN CAST(decode_ns AS DOUBLE) / (output_tokens - first_tokens) END AS tpot_ns,
  CASE WHEN decode_grade = 'measured' THEN 'engine' ELSE ttft_vantage END AS tpot_vantage,
  chunks,
  streamed_tokens,
  CASE WHEN chunks > 0 THEN CAST(streamed_tokens AS DOUBLE) / chunks END AS tokens_per_chunk,
  arrival_ns
FROM first_chunk
