-- What the tokens of a request cost by the price files of the case: the newest price that had begun,
-- of the highest step that the prompt is beyond.
-- grain:   one row a request whose model stands in a price file
-- needs:   resolve_request, price
-- returns: request_key BIGINT             -- the request
-- returns: input_usd DECIMAL(18,9)        -- a million prompt tokens outside the cache
-- returns: read_usd DECIMAL(18,9)         -- a million tokens read from the cache
-- returns: short_usd DECIMAL(18,9)        -- a million tokens written to the short-lived cache
-- returns: long_usd DECIMAL(18,9)         -- a million tokens written to the long-lived cache
-- returns: output_usd DECIMAL(18,9)       -- a million output tokens
WITH fitting AS (
  SELECT
    q.request_key, p.token_kind, p.usd_per_million_tokens,
    row_number() OVER (
      PARTITION BY q.request_key, p.token_kind
      ORDER BY coalesce(p.above_input_tokens, -1) DESC, coalesce(p.valid_from_ns, -1) DESC,
        p.source_id, p.record, p.usd_per_million_tokens
    ) AS choice
  FROM resolve_request AS q
  JOIN price AS p ON q.model = p.model
  WHERE (p.above_input_tokens IS NULL OR q.input_tokens > p.above_input_tokens)
    AND (p.valid_from_ns IS NULL OR p.valid_from_ns <= q.start_ns)
    AND coalesce(p.currency, 'USD') = 'USD'
)
SELECT
  request_key,
  max(CASE WHEN token_kind = 'input' THEN usd_per_million_tokens END) AS input_usd,
  max(CASE WHEN token_kind = 'cache_read' THEN usd_per_million_tokens END) AS read_usd,
  max(CASE WHEN token_kind = 'cache_write_short' THEN usd_per_million_tokens END) AS short_usd,
  max(CASE WHEN token_kind = 'cache_write_long' THEN usd_per_million_tokens END) AS long_usd,
  max(CASE WHEN token_kind = 'output' THEN usd_per_million_tokens END) AS output_usd
FROM fitting
WHERE choice = 1
GROUP BY request_key
