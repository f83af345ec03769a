-- Each time a history was compacted or cut: how much that freed, how soon the prompt was as large again,
-- and whether the same results of tools were read again. A call is compared with those of its own life,
-- from one compaction to the next.
-- grain:   one row a compaction
-- needs:   turns_call, resolve_instance, resolve_told, prompt_part
-- param:   least_ratio = 0.1                -- a smaller drop is no cut
-- param:   least_tokens = 1000              -- nor are fewer tokens
-- param:   back_ratio = 0.8                 -- of what was freed, in the prompt again: it is back
-- param:   soon_calls = 10                  -- a life of no more calls than this bought little time
-- param:   little_ratio = 0.4               -- freeing less than this is little
-- param:   faster = 2                       -- growth after it, times the growth before the first: the same is read again
-- param:   same_ratio = 0.5                 -- of the results read after it, that had been read before
-- param:   again = 3                        -- so many of a thread, and half of its compactions, are a loop
-- returns: request_key BIGINT               -- first call after it
-- returns: clock VARCHAR                    -- wall, or the source whose own clock tells its time
-- returns: thread VARCHAR                   -- thread
-- returns: session VARCHAR                  -- conversation
-- returns: nth BIGINT                       -- compaction of the thread, from 1
-- returns: at_ns BIGINT                     -- start of that call, ns
-- returns: is_told BOOLEAN                  -- a prompt below 0.6 of the one before, or told; FALSE = history was cut by less
-- returns: before_tokens BIGINT             -- prompt before
-- returns: after_tokens BIGINT              -- prompt after
-- returns: freed_tokens BIGINT              -- its yield
-- returns: freed_ratio DOUBLE               -- of the prompt before
-- returns: calls BIGINT                     -- calls until the next one, or the end
-- returns: back_calls BIGINT                -- calls until the prompt was back; NULL = it was not
-- returns: refilled_tokens BIGINT           -- of what was freed, back in the prompt by then
-- returns: growth_tokens DOUBLE             -- growth a call until then
-- returns: usual_growth_tokens DOUBLE       -- growth a call before the first compaction; NULL = not seen
-- returns: new_results BIGINT               -- results of tools that came after it; NULL = parts are not told
-- returns: same_results BIGINT              -- of those, word for word in the prompts of an earlier life
-- returns: is_futile BOOLEAN                -- soon back, and it freed little or the same was read again
-- returns: is_loop BOOLEAN                  -- and the thread does that again and again
WITH line AS (
  SELECT
    request_key, clock, thread, session, at_ns, input_tokens, prior_input_tokens,
    CASE
      WHEN event = 'compaction' AND prior_input_tokens > input_tokens THEN 1
      WHEN event = 'shrunk' AND prior_input_tokens - input_tokens >= $least_tokens
        AND prior_input_tokens - input_tokens >= prior_input_tokens * $least_ratio THEN 1
      ELSE 0
    END AS is_cut,
    event = 'compaction' AS is_told,
    row_number() OVER (PARTITION BY clock, thread ORDER BY nth) AS place
  FROM turns_call
  WHERE coalesce(event, '') <> 'side call'
),
lives AS (
  SELECT
    *,
    CAST(SUM(is_cut) OVER (
      PARTITION BY clock, thread ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS BIGINT) AS life
  FROM line
),
begun AS (
  SELECT
    request_key, clock, thread, session, at_ns, life, place, is_told,
    prior_input_tokens AS before_tokens, input_tokens AS after_tokens
  FROM lives
  WHERE is_cut = 1
),
usual AS (
  SELECT
    clock, thread,
    CASE WHEN count(*) > 2 THEN CAST(max(input_tokens) - min(input_tokens) AS DOUBLE)
      / (count(*) - 1) END AS growth_tokens
  FROM lives
  WHERE life = 0
  GROUP BY clock, thread
),
followed AS (
  SELECT
    b.request_key, count(*) AS calls,
    min(l.place) FILTER (WHERE l.input_tokens - b.after_tokens
        >= (b.before_tokens - b.after_tokens) * $back_ratio
      AND l.place > b.place) AS back_place,
    max(l.input_tokens) AS largest_tokens,
    max_by(l.place, l.input_tokens) AS largest_place
  FROM begun AS b
  JOIN lives AS l ON b.clock = l.clock AND b.thread = l.thread AND b.life = l.life
  GROUP BY b.request_key
),
results AS (
  SELECT l.clock, l.thread, l.life, p.part_hash, min(l.place) AS place
  FROM lives AS l
  JOIN resolve_instance AS i ON l.request_key = i.request_key
  JOIN resolve_told AS t ON i.row_id = t.row_id
  JOIN prompt_part AS p ON t.source_id = p.source_id AND t.record = p.record
  WHERE p.kind = 'tool_result' AND p.part_hash IS NOT NULL
  GROUP BY l.clock, l.thread, l.life, p.part_hash
),
met AS (
  SELECT
    *,
    lag(life) OVER (PARTITION BY clock, thread, part_hash ORDER BY life) AS earlier_life
  FROM results
),
reread AS (
  SELECT
    b.request_key, count(*) AS new_results, count(m.earlier_life) AS same_results
  FROM begun AS b
  JOIN met AS m ON b.clock = m.clock AND b.thread = m.thread AND b.life = m.life
  WHERE m.place > b.place
  GROUP BY b.request_key
),
sized AS (
  SELECT
    b.*, f.calls - 1 AS calls, f.back_place - b.place AS back_calls,
    CASE WHEN f.largest_tokens < b.before_tokens THEN f.largest_tokens ELSE b.before_tokens END
      - b.after_tokens AS refilled_tokens,
    CASE WHEN f.largest_place > b.place
      THEN CAST(f.largest_tokens - b.after_tokens AS DOUBLE) / (f.largest_place - b.place) END
      AS growth_tokens,
    u.growth_tokens AS usual_growth_tokens, r.new_results, r.same_results,
    CAST(b.before_tokens - b.after_tokens AS DOUBLE) / b.before_tokens AS freed_ratio
  FROM begun AS b
  JOIN followed AS f ON b.request_key = f.request_key
  LEFT JOIN usual AS u ON b.clock = u.clock AND b.thread = u.thread
  LEFT JOIN reread AS r ON b.request_key = r.request_key
),
judged AS (
  SELECT
    *,
    coalesce(back_calls <= $soon_calls AND (
      freed_ratio < $little_ratio
      OR growth_tokens >= usual_growth_tokens * $faster
      OR same_results >= new_results * $same_ratio
    ), FALSE) AS is_futile
  FROM sized
),
counted AS (
  SELECT clock, thread, count(*) AS cuts, count(CASE WHEN is_futile THEN 1 END) AS futile
  FROM judged
  GROUP BY clock, thread
)
SELECT
  j.request_key, j.clock, j.thread, j.session, j.life AS nth, j.at_ns, j.is_told, j.before_tokens,
  j.after_tokens, j.before_tokens - j.after_tokens AS freed_tokens, j.freed_ratio, j.calls,
  j.back_calls, j.refilled_tokens, j.growth_tokens, j.usual_growth_tokens, j.new_results,
  j.same_results, j.is_futile,
  j.is_futile AND c.futile >= $again AND c.futile * 2 >= c.cuts AS is_loop
FROM judged AS j
JOIN counted AS c ON j.clock = c.clock AND j.thread = c.thread
