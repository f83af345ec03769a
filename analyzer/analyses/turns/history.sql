-- How much of each prompt had been sent before, and how much of that was computed again because no cache
-- serves it. What a cache could have served and lost is another matter, and left out.
-- grain:   one row a call that continues another
-- needs:   turns_call, turns_expected, turns_kept, latency_segment
-- returns: request_key BIGINT             -- the call
-- returns: clock VARCHAR                  -- wall, or the source whose own clock tells its time
-- returns: thread VARCHAR                 -- thread
-- returns: input_tokens BIGINT            -- its prompt
-- returns: new_tokens BIGINT              -- of it not in the prompt before
-- returns: resent_tokens BIGINT           -- of it in the prompt before, too
-- returns: history_tokens BIGINT          -- of that beyond the prompt the thread began with
-- returns: again_tokens BIGINT            -- history that was computed again; where cached tokens are not told, all of it
-- returns: is_read_told BOOLEAN           -- its cached tokens are told
-- returns: ttft_ns BIGINT                 -- its time to first token, ns
WITH begun AS (
  SELECT clock, thread, min_by(input_tokens, nth) AS first_tokens
  FROM turns_call
  WHERE coalesce(event, '') <> 'side call'
  GROUP BY clock, thread
),
sent AS (
  SELECT
    c.request_key, c.clock, c.thread, c.model, c.input_tokens, c.read_tokens, b.first_tokens,
    CASE WHEN c.prior_input_tokens < c.input_tokens THEN c.prior_input_tokens
      ELSE c.input_tokens END AS resent_tokens
  FROM turns_call AS c
  JOIN begun AS b ON c.clock = b.clock AND c.thread = b.thread
  WHERE c.prior_key IS NOT NULL
),
uncached AS (
  SELECT
    s.*,
    CASE WHEN s.resent_tokens > s.first_tokens THEN s.resent_tokens - s.first_tokens ELSE 0 END
      AS history_tokens,
    s.resent_tokens - coalesce(s.read_tokens, 0)
      -- Where nothing is ever read, there is no cache that could lose.
      - CASE WHEN k.hits > 0 THEN coalesce(e.lost_tokens, 0) ELSE 0 END AS uncached_tokens
  FROM sent AS s
  LEFT JOIN turns_expected AS e ON s.request_key = e.request_key
  LEFT JOIN turns_kept AS k ON s.model = k.model
)
SELECT
  u.request_key, u.clock, u.thread, u.input_tokens, u.input_tokens - u.resent_tokens AS new_tokens,
  u.resent_tokens, u.history_tokens,
  CASE WHEN u.uncached_tokens <= 0 THEN 0
    WHEN u.uncached_tokens < u.history_tokens THEN u.uncached_tokens
    ELSE u.history_tokens END AS again_tokens,
  u.read_tokens IS NOT NULL AS is_read_told,
  s.ttft_ns
FROM uncached AS u
LEFT JOIN latency_segment AS s ON u.request_key = s.request_key
