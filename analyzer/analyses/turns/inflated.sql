-- First prompts around the moment from which they are larger, with what was added, to what, and its cost.
-- The smallest prompts have to have grown too: what all carry is their base, and a change of the mix,
-- or longer questions of some, leaves the small ones as they were. Where conversations of many calls give
-- way to single calls, or the reverse, the mix has changed too.
-- grain:   one row a first prompt of a group with such a moment
-- needs:   turns_step, turns_first_prompt, turns_rate, resolve_list_price, resolve_conversation
-- param:   own_share = 0.5                 -- of the rise, that the smallest tenth of the prompts shows too
-- param:   fewest_tokens = 200             -- a smaller rise is no news
-- param:   smallest_rise = 0.1             -- of the prompt before
-- param:   other_kind = 0.5                -- more or fewer conversations of one call, by this share, are another mix
-- param:   few = 0.15                      -- of the requests before, that may have the new version already
-- param:   moved = 0.05                    -- tools or a system prompt that grew by this share are part of it
-- param:   weighs = 0.25                   -- and its cause, where they make this share of the characters
-- returns: request_key BIGINT              -- the request
-- returns: group_name VARCHAR              -- its group
-- returns: start_ns BIGINT                 -- its start, ns UTC
-- returns: input_tokens BIGINT             -- its prompt
-- returns: is_after BOOLEAN                -- from the moment on
-- returns: is_inflated BOOLEAN             -- after it, in a group whose first prompts grew
-- returns: is_lasting BOOLEAN              -- prompts are that large until the log ends, and no weekend explains it
-- returns: is_known BOOLEAN                -- they do begin conversations
-- returns: step_ns BIGINT                  -- start of the first larger one, ns UTC
-- returns: step_key BIGINT                 -- that request
-- returns: before_tokens DOUBLE            -- mean prompt before
-- returns: after_tokens DOUBLE             -- mean prompt after
-- returns: before_median_tokens DOUBLE     -- median prompt before
-- returns: after_median_tokens DOUBLE      -- median prompt after
-- returns: before_tools DOUBLE             -- median count of tool definitions before
-- returns: after_tools DOUBLE              -- after
-- returns: before_tools_chars DOUBLE       -- median characters of tool definitions before
-- returns: after_tools_chars DOUBLE        -- after
-- returns: before_system_chars DOUBLE      -- median characters of the system prompt before
-- returns: after_system_chars DOUBLE       -- after
-- returns: cause VARCHAR                   -- tool definitions, system prompt, both, neither or unknown
-- returns: excess_tokens DOUBLE            -- prompt beyond the mean before
-- returns: extra_ns DOUBLE                 -- time to first token that its uncached part added, ns; NULL = no rate
-- returns: excess_usd DECIMAL(38,15)       -- cost of it, each kind of token at its price; NULL = a price is missing
WITH near AS (
  SELECT
    f.*, s.from_nth, s.high_nth, s.end_nth, s.is_weekend, s.middle_chars IS NOT NULL AS by_chars,
    CASE WHEN s.middle_chars IS NULL THEN f.input_tokens > s.middle_tokens
      ELSE coalesce(f.tools_chars, 0) + coalesce(f.system_chars, 0) > s.middle_chars END AS is_large,
    f.nth >= s.low_nth AND f.nth <= s.high_nth AS is_near
  FROM turns_first_prompt AS f
  JOIN turns_step AS s ON f.group_name = s.group_name
  WHERE f.nth >= s.from_nth AND f.nth <= coalesce(s.end_nth, f.nth)
),
-- Within the part where it happened: the place with most small ones before and large ones after.
weighed AS (
  SELECT
    group_name, nth,
    SUM(CASE WHEN is_large THEN -1 ELSE 1 END) OVER (
      PARTITION BY group_name ORDER BY nth
    ) AS smaller
  FROM near
  WHERE is_near
),
first_large AS (
  SELECT
    n.group_name,
    coalesce(max_by(w.nth + 1, w.smaller) FILTER (WHERE w.smaller > 0), min(n.nth)) AS step_nth
  FROM near AS n
  LEFT JOIN weighed AS w ON n.group_name = w.group_name AND n.nth = w.nth
  WHERE n.is_near
  GROUP BY n.group_name
),
timed AS (
  SELECT
    n.*, n.nth >= l.step_nth AS is_since,
    avg(CASE WHEN n.nth >= l.step_nth THEN NULL WHEN n.is_large THEN 1 ELSE 0 END)
      OVER (PARTITION BY n.group_name) AS early_ratio
  FROM near AS n
  JOIN first_large AS l ON n.group_name = l.group_name
),
-- A roll-out in steps: where characters tell each request's version, it is that and not the time.
sides AS (
  SELECT *, CASE WHEN by_chars AND early_ratio <= $few THEN is_large ELSE is_since END AS is_after
  FROM timed
),
levels AS (
  SELECT
    group_name,
    min(start_ns) FILTER (WHERE is_after) AS step_ns,
    min_by(request_key, nth) FILTER (WHERE is_after) AS step_key,
    avg(CAST(input_tokens AS DOUBLE)) FILTER (WHERE NOT is_after) AS before_tokens,
    avg(CAST(input_tokens AS DOUBLE)) FILTER (WHERE is_after) AS after_tokens,
    avg(CAST(fresh_tokens AS DOUBLE)) FILTER (WHERE NOT is_after) AS before_fresh,
    avg(CAST(coalesce(read_tokens, 0) AS DOUBLE)) FILTER (WHERE NOT is_after) AS before_read,
    avg(CAST(coalesce(write_tokens, 0) AS DOUBLE)) FILTER (WHERE NOT is_after) AS before_write,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY input_tokens) FILTER (WHERE NOT is_after)
      AS before_median,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY input_tokens) FILTER (WHERE is_after)
      AS after_median,
    percentile_cont(0.1) WITHIN GROUP (ORDER BY input_tokens) FILTER (WHERE NOT is_after)
      AS before_low,
    percentile_cont(0.1) WITHIN GROUP (ORDER BY input_tokens) FILTER (WHERE is_after) AS after_low,
    avg(CASE WHEN is_single THEN 1 ELSE 0 END) FILTER (WHERE NOT is_after) AS before_single,
    avg(CASE WHEN is_single THEN 1 ELSE 0 END) FILTER (WHERE is_after) AS after_single,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY tools_count) FILTER (WHERE NOT is_after)
      AS before_tools,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY tools_count) FILTER (WHERE is_after) AS after_tools,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY tools_chars) FILTER (WHERE NOT is_after)
      AS before_tools_chars,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY tools_chars) FILTER (WHERE is_after)
      AS after_tools_chars,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY system_chars) FILTER (WHERE NOT is_after)
      AS before_system_chars,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY system_chars) FILTER (WHERE is_after)
      AS after_system_chars
  FROM sides
  GROUP BY group_name
),
moved AS (
  SELECT
    *,
    CASE
      WHEN after_tools_chars IS NOT NULL AND before_tools_chars IS NOT NULL
        THEN after_tools_chars - before_tools_chars > before_tools_chars * $moved
          AND after_tools_chars - before_tools_chars
            >= (after_tools_chars - before_tools_chars
              + greatest(coalesce(after_system_chars - before_system_chars, 0), 0)) * $weighs
      ELSE after_tools > before_tools
    END AS has_tools,
    after_system_chars - before_system_chars > before_system_chars * $moved
      AND after_system_chars - before_system_chars
        >= (after_system_chars - before_system_chars
          + greatest(coalesce(after_tools_chars - before_tools_chars, 0), 0)) * $weighs
      AS has_system,
    after_median - before_median >= greatest(
      CAST($fewest_tokens AS DOUBLE), before_median * $smallest_rise)
      AND after_tokens > before_tokens
      AND after_low - before_low >= (after_median - before_median) * $own_share AS is_rise,
    abs(after_single - before_single) >= $other_kind AS is_other_kind
  FROM levels
),
named AS (
  SELECT
    *,
    CASE
      WHEN has_tools AND has_system THEN 'both'
      WHEN has_tools THEN 'tool definitions'
      WHEN has_system THEN 'system prompt'
      WHEN has_tools IS NOT NULL AND has_system IS NOT NULL THEN 'neither'
      ELSE 'unknown'
    END AS cause
  FROM moved
)
SELECT
  s.request_key, s.group_name, s.start_ns, s.input_tokens, s.is_after,
  -- Where nothing tells that these begin conversations, only characters can tell what grew.
  s.is_after AND n.is_rise AND n.cause <> 'neither'
    AND (n.cause <> 'unknown' OR (s.is_known AND NOT n.is_other_kind))
    AS is_inflated,
  s.end_nth IS NULL AND NOT s.is_weekend AS is_lasting, s.is_known, n.step_ns, n.step_key, n.before_tokens,
  n.after_tokens, n.before_median AS before_median_tokens, n.after_median AS after_median_tokens,
  n.before_tools, n.after_tools, n.before_tools_chars, n.after_tools_chars, n.before_system_chars,
  n.after_system_chars, n.cause,
  s.input_tokens - n.before_tokens AS excess_tokens,
  (s.fresh_tokens + coalesce(s.write_tokens, 0) - n.before_fresh - n.before_write) * r.token_ns
    AS extra_ns,
  CAST(
    (CAST(s.fresh_tokens - n.before_fresh AS DECIMAL(15,3)) * p.input_usd
      + CASE WHEN coalesce(s.read_tokens, 0) = 0 AND n.before_read = 0 THEN 0
        ELSE CAST(coalesce(s.read_tokens, 0) - n.before_read AS DECIMAL(15,3)) * p.read_usd END
      + CASE WHEN coalesce(s.write_tokens, 0) = 0 AND n.before_write = 0 THEN 0
        ELSE CAST(coalesce(s.write_tokens, 0) - n.before_write AS DECIMAL(15,3))
          * CASE WHEN coalesce(v.write_long_tokens, 0)
              > coalesce(v.write_short_tokens, 0) + coalesce(v.write_unknown_tokens, 0)
            THEN p.long_usd ELSE p.short_usd END END
    ) AS DECIMAL(38,15)) AS excess_usd
FROM sides AS s
JOIN named AS n ON s.group_name = n.group_name
JOIN resolve_conversation AS v ON s.request_key = v.request_key
LEFT JOIN resolve_list_price AS p ON s.request_key = p.request_key
LEFT JOIN turns_rate AS r ON s.model = r.model AND s.route = r.route
