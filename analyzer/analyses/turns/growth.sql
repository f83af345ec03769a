-- How the prompt of each thread develops: it grows to the end, has reached a plateau, is compacted, or
-- stays as it is.
-- grain:   one row a thread
-- needs:   turns_call, turns_history, turns_compaction
-- param:   fewest = 8                       -- calls; fewer show no development
-- param:   cuts = 2                         -- so many cuts of history keep it bounded; of a compaction one does
-- param:   tail_calls = 4                   -- the end of a thread: its last calls, at least these
-- param:   tail_share = 0.2                 -- and at least this share
-- param:   levelled = 0.25                  -- growth at the end of less than this of the growth before: a plateau
-- param:   risen = 1.2                      -- a last prompt below this times the first is none that grew
-- param:   near_largest = 0.9               -- a thread that grows ends near its largest prompt
-- param:   follows = 0.5                    -- time to first token that grows by this share of what the prompt does follows it
-- param:   times = 3                        -- unbounded: a last prompt of so many times the first
-- param:   felt_tokens = 4000               -- and of so many tokens: 0.4 s at 10,000 a second; less is not felt
-- param:   paid = 0.25                      -- paid again: history computed again, of all prompt tokens of the thread
-- returns: clock VARCHAR                    -- wall, or the source whose own clock tells its time
-- returns: thread VARCHAR                   -- the thread
-- returns: session VARCHAR                  -- its conversation
-- returns: is_agent BOOLEAN                 -- of a sub-agent or side thread
-- returns: known VARCHAR                    -- how the thread is known: told, hashes, size (suspected) or alone
-- returns: calls BIGINT                     -- calls, side calls left out
-- returns: turns BIGINT                     -- turns; NULL = not told
-- returns: first_ns BIGINT                  -- start of the first call, ns
-- returns: last_ns BIGINT                   -- start of the last, ns
-- returns: first_tokens BIGINT              -- first prompt
-- returns: last_tokens BIGINT               -- last prompt
-- returns: max_tokens BIGINT                -- largest prompt
-- returns: growth_tokens DOUBLE             -- mean growth a turn, or a call where turns are not told; NULL = one call
-- returns: call_growth_tokens DOUBLE        -- median growth from call to call
-- returns: tail_growth_tokens DOUBLE        -- mean growth a call at its end
-- returns: head_growth_tokens DOUBLE        -- mean growth a call until then
-- returns: compactions BIGINT               -- compactions and cuts
-- returns: history_tokens BIGINT            -- history sent again, over all calls
-- returns: again_tokens BIGINT              -- of that computed again; 0 where a cache serves it, or nothing is known of one
-- returns: cache VARCHAR                    -- what is known of a cache: told; none (not told, the time to first token follows the prompt); serves (it does not); untold
-- returns: read_told BIGINT                 -- calls that continue another and tell cached tokens
-- returns: continued BIGINT                 -- calls that continue another
-- returns: state VARCHAR                    -- short, compacted, plateau, growing or flat
-- returns: is_unbounded BOOLEAN             -- it grows to its end, and has become a multiple of what it was
-- returns: is_paid BOOLEAN                  -- and the history is a good part of what is computed for it
WITH line AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY clock, thread ORDER BY nth) AS place,
    count(*) OVER (PARTITION BY clock, thread) AS calls
  FROM turns_call
  WHERE coalesce(event, '') <> 'side call'
),
marked AS (
  SELECT
    *,
    calls - CASE WHEN calls * $tail_share > $tail_calls THEN CAST(round(calls * $tail_share) AS BIGINT)
      ELSE $tail_calls END AS tail_place
  FROM line
),
threads AS (
  SELECT
    clock, thread, min(session) AS session, max(CASE WHEN is_agent THEN 1 ELSE 0 END) = 1 AS is_agent,
    max_by(known, nth) AS known, count(*) AS calls,
    nullif(count(CASE WHEN is_first_of_turn THEN 1 END), 0) AS turns,
    min(at_ns) AS first_ns, max(at_ns) AS last_ns,
    min_by(input_tokens, place) AS first_tokens, max_by(input_tokens, place) AS last_tokens,
    max(input_tokens) AS max_tokens,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY growth_tokens) AS call_growth_tokens,
    max(CASE WHEN place = tail_place THEN input_tokens END) AS tail_tokens,
    max(tail_place) AS tail_place
  FROM marked
  GROUP BY clock, thread
),
cut AS (
  SELECT clock, thread, count(*) AS compactions, count(CASE WHEN is_told THEN 1 END) AS told
  FROM turns_compaction
  GROUP BY clock, thread
),
sent AS (
  SELECT
    h.clock, h.thread,
    CAST(SUM(h.history_tokens) AS BIGINT) AS history_tokens,
    CAST(SUM(h.again_tokens) AS BIGINT) AS again_tokens,
    count(CASE WHEN h.is_read_told THEN 1 END) AS read_told,
    count(*) AS continued,
    SUM(CAST(h.input_tokens AS DOUBLE)) AS sent_tokens,
    count(h.ttft_ns) AS timed,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY h.ttft_ns) FILTER (WHERE c.place * 3 <= c.calls)
      AS early_ns,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY h.ttft_ns) FILTER (WHERE c.place * 3 > c.calls * 2)
      AS late_ns,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY h.input_tokens) FILTER (WHERE c.place * 3 <= c.calls)
      AS early_tokens,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY h.input_tokens)
      FILTER (WHERE c.place * 3 > c.calls * 2) AS late_tokens
  FROM turns_history AS h
  JOIN line AS c ON h.request_key = c.request_key
  GROUP BY h.clock, h.thread
),
judged AS (
  SELECT
    *,
    CASE
      WHEN read_told * 2 >= continued THEN 'told'
      WHEN timed * 10 >= continued * 8 AND late_tokens > early_tokens * $risen THEN
        CASE WHEN late_ns - early_ns >= early_ns * (late_tokens / early_tokens - 1) * $follows
          THEN 'none' ELSE 'serves' END
      ELSE 'untold'
    END AS cache
  FROM sent
),
joined AS (
  SELECT
    t.*, coalesce(c.compactions, 0) AS compactions, coalesce(c.told, 0) AS told_compactions,
    s.history_tokens, s.read_told, s.continued, s.sent_tokens,
    CASE WHEN s.cache IN ('told', 'none') THEN s.again_tokens ELSE 0 END AS again_tokens,
    coalesce(s.cache, 'untold') AS cache,
    CAST(t.last_tokens - t.tail_tokens AS DOUBLE) / (t.calls - t.tail_place) AS tail_growth_tokens,
    CASE WHEN t.tail_place > 1
      THEN CAST(t.tail_tokens - t.first_tokens AS DOUBLE) / (t.tail_place - 1) END
      AS head_growth_tokens
  FROM threads AS t
  LEFT JOIN cut AS c ON t.clock = c.clock AND t.thread = c.thread
  LEFT JOIN judged AS s ON t.clock = s.clock AND t.thread = s.thread
),
stated AS (
  SELECT
    *,
    CASE
      WHEN calls < $fewest THEN 'short'
      WHEN told_compactions > 0 OR compactions >= $cuts THEN 'compacted'
      WHEN last_tokens < first_tokens * $risen AND max_tokens < first_tokens * $risen THEN 'flat'
      WHEN tail_growth_tokens < head_growth_tokens * $levelled
        OR last_tokens < max_tokens * $near_largest THEN 'plateau'
      ELSE 'growing'
    END AS state
  FROM joined
)
SELECT
  clock, thread, session, is_agent, known, calls, turns, first_ns, last_ns, first_tokens, last_tokens,
  max_tokens,
  CASE WHEN coalesce(turns, calls) > 1
    THEN CAST(last_tokens - first_tokens AS DOUBLE) / (coalesce(turns, calls) - 1) END
    AS growth_tokens,
  call_growth_tokens, tail_growth_tokens, head_growth_tokens, compactions,
  coalesce(history_tokens, 0) AS history_tokens, coalesce(again_tokens, 0) AS again_tokens,
  cache, coalesce(read_told, 0) AS read_told, coalesce(continued, 0) AS continued, state,
  state = 'growing' AND last_tokens >= first_tokens * $times AND last_tokens >= $felt_tokens
    AS is_unbounded,
  state = 'growing' AND last_tokens >= first_tokens * $times AND last_tokens >= $felt_tokens
    AND coalesce(again_tokens >= sent_tokens * $paid, FALSE) AS is_paid
FROM stated
