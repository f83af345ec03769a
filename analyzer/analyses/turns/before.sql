-- For requests whose session nobody tells: the earlier request that each continues. A prompt that is
-- longer and repeats all blocks of an earlier prompt but its last continues it. Without block hashes, a
-- request that reads from the cache just as many tokens as an earlier prompt had is suspected to.
-- grain:   one row a request that continues another
-- needs:   resolve_conversation, resolve_request, resolve_prefix, resolve_text_prefix
-- param:   common_share = 0.01             -- a prefix of more requests than this is a system prompt
-- param:   common_requests = 20            -- in a small case: of more than these
-- param:   branches = 4                    -- ways in which prompts go on after a prefix, that make it a common one
-- param:   reach_ns = 3600000000000        -- a prompt that is only alike in size continues within an hour
-- param:   step_tokens = 128               -- coarsest step in which cached tokens are told
-- param:   fewest_tokens = 1024            -- smaller sizes meet by chance
-- returns: request_key BIGINT              -- the request
-- returns: before_key BIGINT               -- the request it continues
-- returns: known VARCHAR                   -- hashes, or size (suspected)
WITH loose AS (
  SELECT
    c.request_key, c.block_row, c.at_ns, c.clock, coalesce(q.model, '') AS model, q.input_tokens,
    q.cache_read_tokens,
    coalesce(q.output_tokens, 0) AS output_tokens,
    row_number() OVER (ORDER BY c.at_ns, q.request_key) AS nth
  FROM resolve_conversation AS c
  JOIN resolve_request AS q ON c.request_key = q.request_key
  WHERE c.session_id IS NULL AND c.at_ns IS NOT NULL
),
-- Hashes of tokens, or of the text where it was logged.
known AS (
  SELECT request_key, block_index, prefix_hash FROM resolve_prefix
  UNION ALL
  SELECT request_key, block_index, prefix_hash FROM resolve_text_prefix
),
blocks AS (
  SELECT
    l.request_key, l.nth, l.clock, p.block_index, p.prefix_hash,
    lead(p.prefix_hash) OVER (PARTITION BY l.request_key ORDER BY p.block_index) AS next_hash,
    count(*) OVER (PARTITION BY l.request_key) AS blocks
  FROM loose AS l
  JOIN known AS p ON l.request_key = p.request_key
),
told AS (
  SELECT count(DISTINCT request_key) AS requests FROM blocks
),
used AS (
  SELECT prefix_hash, count(*) AS uses, count(DISTINCT next_hash) AS children
  FROM blocks
  GROUP BY prefix_hash
),
-- A long conversation uses its prefixes as often as others a system prompt, but does not branch after it.
branched AS (
  SELECT prefix_hash
  FROM (
    SELECT
      b.prefix_hash, b.block_index,
      max(CASE WHEN u.children >= $branches THEN b.block_index END) OVER (
        PARTITION BY b.request_key
      ) AS last_index
    FROM blocks AS b
    JOIN used AS u ON b.prefix_hash = u.prefix_hash
  ) AS placed
  WHERE block_index <= last_index
  GROUP BY prefix_hash
),
own AS (
  SELECT b.*
  FROM blocks AS b
  JOIN used AS u ON b.prefix_hash = u.prefix_hash
  LEFT JOIN branched AS w ON b.prefix_hash = w.prefix_hash
  CROSS JOIN told AS t
  WHERE u.uses > 1
    AND (u.uses <= greatest($common_share * t.requests, $common_requests) OR w.prefix_hash IS NULL)
    -- In a small case a system prompt shows by this: what follows it is another each time.
    AND ($common_share * t.requests >= $common_requests
      OR NOT (u.children >= $branches AND u.children * 2 > u.uses))
),
-- At each prefix, the latest request so far that ends one block after it.
ended AS (
  SELECT
    request_key, nth, block_index, blocks,
    max(CASE WHEN block_index = blocks - 2 THEN nth END) OVER (
      PARTITION BY clock, prefix_hash ORDER BY nth ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before_nth
  FROM own
),
by_hash AS (
  SELECT e.request_key, max_by(e.before_nth, e.block_index) AS before_nth
  FROM ended AS e
  JOIN loose AS l ON e.request_key = l.request_key
  JOIN loose AS b ON e.before_nth = b.nth
  WHERE l.input_tokens > b.input_tokens
  GROUP BY e.request_key
),
-- By size: the prompt, or the prompt with its answer, in whole steps.
sized AS (
  SELECT
    nth, model, clock, at_ns, request_key,
    input_tokens - input_tokens % $step_tokens AS size_tokens
  FROM loose
  WHERE block_row IS NULL AND input_tokens >= $fewest_tokens
  UNION ALL
  SELECT
    nth, model, clock, at_ns, request_key,
    input_tokens + output_tokens - (input_tokens + output_tokens) % $step_tokens
  FROM loose
  WHERE block_row IS NULL AND input_tokens >= $fewest_tokens
    AND (input_tokens + output_tokens) - (input_tokens + output_tokens) % $step_tokens
      > input_tokens - input_tokens % $step_tokens
),
asked AS (
  SELECT
    nth, model, clock, at_ns, request_key,
    cache_read_tokens - cache_read_tokens % $step_tokens AS size_tokens
  FROM loose
  WHERE block_row IS NULL AND cache_read_tokens >= $fewest_tokens
    AND input_tokens > cache_read_tokens
),
met AS (
  SELECT model, clock, size_tokens, nth, at_ns, request_key, 0 AS asks FROM sized
  UNION ALL
  SELECT model, clock, size_tokens, nth, at_ns, request_key, 1 AS asks FROM asked
),
latest AS (
  SELECT
    request_key, at_ns, asks,
    max(CASE WHEN asks = 0 THEN nth END) OVER (
      PARTITION BY model, clock, size_tokens ORDER BY nth, asks DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before_nth,
    count(*) FILTER (WHERE asks = 0) OVER (PARTITION BY model, clock, size_tokens) AS candidates
  FROM met
),
by_size AS (
  SELECT a.request_key, a.before_nth
  FROM latest AS a
  JOIN loose AS l ON a.before_nth = l.nth
  -- Where several prompts have that size, any of them may be meant.
  WHERE a.asks = 1 AND a.candidates = 1 AND a.at_ns - l.at_ns <= $reach_ns
    AND a.request_key NOT IN (SELECT request_key FROM by_hash)
)
SELECT h.request_key, l.request_key AS before_key, 'hashes' AS known
FROM by_hash AS h
JOIN loose AS l ON h.before_nth = l.nth
UNION ALL
SELECT z.request_key, l.request_key AS before_key, 'size' AS known
FROM by_size AS z
JOIN loose AS l ON z.before_nth = l.nth
