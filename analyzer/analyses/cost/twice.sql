-- Calls that logs of two vantages tell under ids with nothing in common. They are the same calls where
-- both logs tell nearly all of their common time with equal models and sizes, one to one, and begun
-- together; sizes have to vary, of answers too: equal calls over two ways have equal prompts alone.
-- grain:   one row a request that counts as another vantage tells it
-- needs:   resolve_request
-- param:   slack_ns = 5000000000        -- clocks of two machines, and the way between; also how wide a slot is
-- param:   fewest = 10                  -- pairs; fewer may be chance
-- param:   nearly = 0.95                -- of the calls of either log: the others were cut off or lost
-- param:   sizes = 20                   -- different sizes (half of the pairs, where they are fewer) and a quarter of it of answers
-- returns: request_key BIGINT           -- the request that does not count
-- returns: other_key BIGINT             -- the same call at the vantage that counts: the outer one, but for one that tells of no cache
WITH vantages AS (
  SELECT count(DISTINCT outer_vantage) AS n
  FROM resolve_request
  WHERE vantages = 1 AND start_ns IS NOT NULL AND input_tokens > 0 AND output_tokens > 0
),
told AS (
  SELECT
    q.request_key, q.outer_vantage AS vantage, q.model, q.input_tokens, q.output_tokens, q.start_ns,
    q.cache_read_tokens IS NOT NULL AS tells_cache,
    CASE q.outer_vantage WHEN 'client' THEN 1 WHEN 'gateway' THEN 2 ELSE 3 END AS vantage_rank,
    CAST(round(q.start_ns / CAST($slack_ns AS DOUBLE)) AS BIGINT) AS slot
  FROM resolve_request AS q
  CROSS JOIN vantages AS v
  WHERE v.n > 1 AND q.vantages = 1 AND q.start_ns IS NOT NULL AND q.input_tokens > 0
    AND q.output_tokens > 0 AND q.model IS NOT NULL
    -- A provider's records are a bill (cost_bill_pair).
    AND q.outer_vantage <> 'provider'
),
spans AS (
  SELECT vantage, vantage_rank, min(start_ns) AS first_ns, max(start_ns) AS last_ns
  FROM told
  GROUP BY vantage, vantage_rank
),
-- The time that both logs of a pair of vantages cover, and how many calls each tells of it.
common AS (
  SELECT
    o.vantage AS outer_vantage, i.vantage AS inner_vantage,
    greatest(o.first_ns, i.first_ns) - $slack_ns AS first_ns,
    least(o.last_ns, i.last_ns) + $slack_ns AS last_ns
  FROM spans AS o
  JOIN spans AS i ON o.vantage_rank < i.vantage_rank
),
sides AS (
  SELECT
    c.outer_vantage, c.inner_vantage,
    count(CASE WHEN t.vantage = c.outer_vantage THEN 1 END) AS outer_calls,
    count(CASE WHEN t.vantage = c.inner_vantage THEN 1 END) AS inner_calls
  FROM common AS c
  JOIN told AS t ON t.start_ns >= c.first_ns AND t.start_ns <= c.last_ns
  GROUP BY c.outer_vantage, c.inner_vantage
),
shifts AS (
  SELECT -1 AS by_one UNION ALL SELECT 0 UNION ALL SELECT 1
),
shifted AS (
  SELECT t.*, t.slot + s.by_one AS near FROM told AS t CROSS JOIN shifts AS s
),
pairs AS (
  SELECT
    o.request_key AS outer_key, i.request_key AS inner_key, o.vantage AS outer_vantage,
    i.vantage AS inner_vantage, o.input_tokens, o.output_tokens,
    i.tells_cache AND NOT o.tells_cache AND i.vantage <> 'engine' AS is_inner_better,
    row_number() OVER (
      PARTITION BY o.request_key, i.vantage
      ORDER BY abs(i.start_ns - o.start_ns), i.request_key
    ) AS choice,
    row_number() OVER (
      PARTITION BY i.request_key, o.vantage
      ORDER BY abs(i.start_ns - o.start_ns), o.request_key
    ) AS suitor
  FROM shifted AS o
  JOIN told AS i
    ON o.near = i.slot AND o.input_tokens = i.input_tokens AND o.output_tokens = i.output_tokens
    AND o.vantage_rank < i.vantage_rank
    AND (o.model = i.model OR i.model LIKE concat('%/', o.model)
      OR o.model LIKE concat('%/', i.model))
  WHERE abs(i.start_ns - o.start_ns) <= $slack_ns
),
paired AS (
  SELECT * FROM pairs WHERE choice = 1 AND suitor = 1
),
sized AS (
  SELECT
    outer_vantage, inner_vantage, input_tokens, output_tokens, count(*) AS n
  FROM paired
  GROUP BY outer_vantage, inner_vantage, input_tokens, output_tokens
),
judged AS (
  SELECT
    outer_vantage, inner_vantage, sum(n) AS n, count(*) AS sizes,
    count(DISTINCT output_tokens) AS answers
  FROM sized
  GROUP BY outer_vantage, inner_vantage
),
same AS (
  SELECT j.outer_vantage, j.inner_vantage
  FROM judged AS j
  JOIN sides AS s ON j.outer_vantage = s.outer_vantage AND j.inner_vantage = s.inner_vantage
  WHERE j.n >= $fewest AND j.n >= $nearly * greatest(s.outer_calls, s.inner_calls)
    AND j.sizes >= least($sizes, 0.5 * j.n) AND 4 * j.answers >= least($sizes, 0.5 * j.n)
),
repeats AS (
  SELECT
    CASE WHEN p.is_inner_better THEN p.outer_key ELSE p.inner_key END AS request_key,
    CASE WHEN p.is_inner_better THEN p.inner_key ELSE p.outer_key END AS other_key
  FROM paired AS p
  JOIN same AS s ON p.outer_vantage = s.outer_vantage AND p.inner_vantage = s.inner_vantage
)
SELECT request_key, min(other_key) AS other_key FROM repeats GROUP BY request_key
