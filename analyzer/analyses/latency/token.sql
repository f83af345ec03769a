-- Time per output token and chunk shape. TPOT = (e2e - ttft) / (output tokens - tokens of the first
-- chunk), from the vantage nearest the engine; a chunk is not a token, so chunk gaps never stand in
-- for it. Only tokens that the chunks carried are held against chunks: told by the chunks, else by
-- the client's own usage; reasoning that was hidden or summed up is left out.
-- grain:   one row a request
-- needs:   resolve_request, resolve_vantage, latency_segment, stream_shape
-- param:   fewest_chars = 1             -- characters a token below which the usage holds hidden output
-- returns: request_key BIGINT           -- the request
-- returns: output_tokens BIGINT         -- visible and reasoning
-- returns: first_tokens BIGINT          -- tokens of the first chunk: told, else by characters, else 1
-- returns: tpot_ns DOUBLE               -- time per output token, ns; NULL for a single token
-- returns: tpot_vantage VARCHAR         -- engine, or the client's view
-- returns: chunks BIGINT                -- chunks at the client that are held against tokens
-- returns: streamed_tokens BIGINT       -- tokens those chunks carried; NULL = cannot be told
-- returns: tokens_per_chunk DOUBLE      -- tokens a chunk, after the first
-- returns: arrival_ns BIGINT            -- first to last token as the client saw it, ns
WITH client AS (
  SELECT * FROM resolve_vantage WHERE vantage = 'client' AND timing = 'stream'
),
sized AS (
  SELECT
    r.request_key, r.output_tokens, s.decode_ns, s.decode_grade, s.ttft_vantage,
    c.chunk_chars, c.first_chunk_chars, c.first_chunk_tokens,
    c.e2e_ns - c.ttft_ns AS arrival_ns,
    h.chunks AS all_chunks, h.content_chunks, h.reasoning_chunks, h.told_tokens, h.chars,
    -- Another vantage's count is that of the whole answer: of no use if the client left before.
    coalesce(c.output_visible_tokens, CASE WHEN NOT coalesce(c.left_early, FALSE) THEN r.output_visible_tokens END)
      AS visible_tokens,
    coalesce(
      c.output_reasoning_tokens, CASE WHEN NOT coalesce(c.left_early, FALSE) THEN r.output_reasoning_tokens END
    ) AS reasoning_tokens
  FROM resolve_request AS r
  JOIN latency_segment AS s ON r.request_key = s.request_key
  LEFT JOIN client AS c ON r.request_key = c.request_key
  LEFT JOIN stream_shape AS h ON r.request_key = h.request_key
),
carried AS (
  SELECT
    *,
    CASE
      WHEN told_tokens IS NOT NULL THEN all_chunks
      WHEN reasoning_tokens > 0 THEN content_chunks
      ELSE all_chunks
    END AS chunks,
    CASE
      WHEN told_tokens IS NOT NULL THEN told_tokens
      WHEN reasoning_tokens IS NULL AND chars < $fewest_chars * visible_tokens THEN NULL
      ELSE visible_tokens
    END AS streamed_tokens,
    CASE
      WHEN told_tokens IS NOT NULL THEN told_tokens
      WHEN reasoning_chunks > 0 OR all_chunks IS NULL
        THEN visible_tokens + coalesce(reasoning_tokens, 0)
      WHEN reasoning_tokens IS NULL AND chars < $fewest_chars * visible_tokens THEN NULL
      ELSE visible_tokens
    END AS timed_tokens
  FROM sized
),
first_chunk AS (
  SELECT
    *,
    CASE
      WHEN decode_grade = 'measured' OR all_chunks IS NULL THEN 1
      WHEN first_chunk_tokens IS NOT NULL THEN first_chunk_tokens
      WHEN first_chunk_chars > 0 AND chunk_chars > 0 AND timed_tokens IS NOT NULL THEN
        greatest(1, CAST(round(CAST(timed_tokens AS DOUBLE) * first_chunk_chars / chunk_chars)
          AS BIGINT))
      ELSE 1
    END AS first_tokens,
    CASE
      WHEN first_chunk_tokens IS NOT NULL THEN CAST(first_chunk_tokens AS DOUBLE)
      WHEN first_chunk_chars > 0 AND chunk_chars > 0 AND chunks = all_chunks THEN
        greatest(1, round(CAST(streamed_tokens AS DOUBLE) * first_chunk_chars / chunk_chars))
      ELSE CAST(streamed_tokens AS DOUBLE) / CASE WHEN chunks > 0 THEN chunks END
    END AS first_of_chunks
  FROM carried
),
paced AS (
  SELECT
    *,
    CASE WHEN decode_grade = 'measured' THEN output_tokens ELSE timed_tokens END AS pace_tokens
  FROM first_chunk
)
SELECT
  request_key,
  output_tokens,
  first_tokens,
  CASE WHEN pace_tokens > first_tokens AND decode_ns > 0
    THEN CAST(decode_ns AS DOUBLE) / (pace_tokens - first_tokens) END AS tpot_ns,
  CASE WHEN decode_grade = 'measured' THEN 'engine' ELSE ttft_vantage END AS tpot_vantage,
  chunks,
  streamed_tokens,
  CASE WHEN chunks > 1 THEN (streamed_tokens - first_of_chunks) / (chunks - 1) END
    AS tokens_per_chunk,
  arrival_ns
FROM paced
