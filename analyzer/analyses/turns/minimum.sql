-- Calls that repeat the beginning of an earlier prompt and get nothing from the cache: because what
-- repeats is shorter than this model keeps, or because nothing is ever cached although it is long
-- enough. Where some calls of a model are served, a call that is not lost its cache instead.
-- grain:   one row a call whose prompt begins like an earlier one, of a model that is hardly served
-- needs:   turns_call, turns_same, turns_seen, resolve_text_prefix, resolve_cache_rule, resolve_request
-- param:   served_share = 0.1           -- of a model's repeating calls that read, above which its cache works
-- param:   fewest_tokens = 128          -- a shorter beginning is alike by chance
-- param:   life_ns = 300000000000       -- where no lifetime is told, what was used within the shortest one sold
-- param:   engine_life_ns = 3600000000000  -- an engine keeps it as long as there is room
-- param:   read_factor = 0.5            -- dearest price of a token that is read, where it is not told
-- returns: request_key BIGINT           -- the call
-- returns: at_ns BIGINT                 -- its start, ns
-- returns: model VARCHAR                -- its model; empty = not told
-- returns: vendor VARCHAR               -- whose rules hold
-- returns: input_tokens BIGINT          -- its prompt
-- returns: repeated_tokens BIGINT       -- beginning that an earlier prompt had, within the lifetime
-- returns: known VARCHAR                -- hashes, or size (suspected: a conversation that grows)
-- returns: min_tokens BIGINT            -- shortest prefix that is cached; 0 = not known
-- returns: kind VARCHAR                 -- short: below the minimum; off: nothing is ever cached
-- returns: saved_tokens DOUBLE          -- input tokens a cache would save; of a short one after it is filled up to the minimum
-- returns: needs_marks BOOLEAN          -- the vendor caches what is marked only
WITH rules AS (
  SELECT
    model, min_by(vendor, provider) AS vendor, coalesce(max(min_tokens), 0) AS min_tokens,
    coalesce(max(read_factor), CASE WHEN min_by(vendor, provider) = 'engine' THEN 0 ELSE $read_factor END)
      AS read_factor,
    max(max_breakpoints) IS NOT NULL AS needs_marks,
    coalesce(max(short_life_ns), CASE WHEN min_by(vendor, provider) = 'engine' THEN $engine_life_ns
      ELSE $life_ns END) AS life_ns
  FROM resolve_cache_rule
  GROUP BY model
),
-- A text may begin like one of another conversation: their common system prompt.
text AS (
  SELECT
    p.request_key, p.end_tokens, c.at_ns,
    lag(c.at_ns) OVER (
      PARTITION BY c.clock, c.model, p.prefix_hash ORDER BY c.at_ns, p.request_key
    ) AS used_ns,
    c.model
  FROM resolve_text_prefix AS p
  JOIN turns_call AS c ON p.request_key = c.request_key
),
text_seen AS (
  SELECT
    t.request_key,
    max(CASE WHEN t.at_ns - t.used_ns <= r.life_ns THEN t.end_tokens ELSE 0 END) AS seen_tokens
  FROM text AS t
  JOIN rules AS r ON t.model = r.model
  GROUP BY t.request_key
),
begun AS (
  SELECT
    c.request_key, c.at_ns, c.model, r.vendor, r.min_tokens, r.read_factor, r.needs_marks,
    c.input_tokens, c.read_tokens, coalesce(c.write_tokens, 0) AS write_tokens,
    CASE
      WHEN n.request_key IS NOT NULL
        THEN CASE WHEN r.life_ns > $life_ns THEN n.long_tokens ELSE n.short_tokens END
      WHEN x.request_key IS NOT NULL THEN x.seen_tokens
      WHEN s.request_key IS NOT NULL AND c.prior_idle_ns <= r.life_ns THEN s.same_tokens
      WHEN c.event IS NULL AND c.prior_idle_ns <= r.life_ns
        AND c.input_tokens >= c.prior_input_tokens THEN c.prior_input_tokens
      ELSE 0
    END AS repeated_tokens,
    CASE WHEN n.request_key IS NOT NULL OR x.request_key IS NOT NULL OR s.request_key IS NOT NULL
      THEN 'hashes' ELSE 'size' END AS known
  FROM turns_call AS c
  JOIN resolve_request AS q ON c.request_key = q.request_key
  JOIN rules AS r ON c.model = r.model
  LEFT JOIN turns_seen AS n ON c.request_key = n.request_key
  LEFT JOIN text_seen AS x ON c.request_key = x.request_key
  LEFT JOIN turns_same AS s ON c.request_key = s.request_key
  WHERE NOT q.failed AND c.read_tokens IS NOT NULL
),
counted AS (
  SELECT
    *,
    count(CASE WHEN read_tokens > 0 OR write_tokens > 0 THEN 1 END) OVER (PARTITION BY model)
      AS served,
    count(CASE WHEN repeated_tokens >= $fewest_tokens THEN 1 END) OVER (PARTITION BY model)
      AS repeating
  FROM begun
),
placed AS (
  SELECT
    *,
    CASE WHEN repeated_tokens < min_tokens THEN 'short' ELSE 'off' END AS kind
  FROM counted
  WHERE repeated_tokens >= $fewest_tokens AND read_tokens = 0 AND write_tokens = 0
    AND served <= $served_share * repeating
)
SELECT
  request_key, at_ns, model, vendor, input_tokens, repeated_tokens, known, min_tokens, kind,
  CASE WHEN kind = 'short' THEN repeated_tokens - min_tokens * read_factor
    ELSE repeated_tokens * (1 - read_factor) END AS saved_tokens,
  needs_marks
FROM placed
