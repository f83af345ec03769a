-- What each call could have read from the cache, and what it did read. It could read what the call it
-- continues left there: by the provider's own counts (read and written together), else that prompt, with
-- its answer where this cache keeps answers. Hashes tell how much of it still stands at the beginning.
-- grain:   one row a call that continues another, or begins like an earlier one, and tells what it read
-- needs:   turns_call, turns_kept, turns_same, turns_seen
-- param:   slack = 0.02                     -- of what it could read, is no loss
-- param:   fewest_tokens = 256              -- nor are fewer tokens than this
-- returns: request_key BIGINT               -- the call
-- returns: unbroken_tokens BIGINT           -- what it could read, had nothing in the prompt changed
-- returns: could_tokens BIGINT              -- what it could read of the prompt as it is
-- returns: basis VARCHAR                    -- how that is known: hashes, counts (of the provider) or size (of the prior prompt)
-- returns: read_tokens BIGINT               -- what it did read; NULL = not told
-- returns: changed_tokens BIGINT            -- lost because the prompt changed, by hashes; NULL = no hashes
-- returns: gone_tokens BIGINT               -- lost though the prompt had it; NULL = cannot be told apart
-- returns: lost_tokens BIGINT               -- both: what it read less than it could, unbroken; 0 within the slack
-- returns: same_tokens BIGINT               -- unchanged beginning, by hashes; NULL = no hashes
-- returns: is_whole BOOLEAN                 -- the prior prompt stands unchanged at the beginning; NULL = no hashes
WITH told AS (
  SELECT
    c.request_key, c.prior_key, c.event, c.read_tokens, c.input_tokens, k.step_tokens, k.min_tokens,
    s.same_tokens, s.is_whole, n.seen_tokens,
    CASE
      WHEN c.prior_key IS NULL THEN 0
      WHEN k.writes_told
        THEN coalesce(c.prior_read_tokens, 0) + coalesce(c.prior_write_tokens, 0)
      WHEN c.read_tokens IS NULL THEN c.prior_input_tokens
      WHEN c.prior_read_tokens IS NULL THEN NULL
      WHEN k.answers_kept THEN c.prior_input_tokens + coalesce(c.prior_output_tokens, 0)
      ELSE c.prior_input_tokens
    END AS left_tokens,
    k.writes_told
  FROM turns_call AS c
  JOIN turns_kept AS k ON c.model = k.model
  LEFT JOIN turns_same AS s ON c.request_key = s.request_key
  LEFT JOIN turns_seen AS n ON c.request_key = n.request_key
  WHERE c.read_tokens IS NOT NULL OR s.same_tokens IS NOT NULL
),
bounded AS (
  SELECT
    *,
    -- A prompt is never read to its end: its last token is always computed.
    CASE WHEN left_tokens < input_tokens THEN left_tokens ELSE input_tokens - 1 END AS room_tokens,
    CASE
      WHEN coalesce(is_whole, FALSE) THEN left_tokens
      WHEN same_tokens IS NOT NULL AND same_tokens < left_tokens THEN same_tokens
      ELSE left_tokens
    END AS standing_tokens
  FROM told
  WHERE left_tokens IS NOT NULL
),
stepped AS (
  SELECT
    *,
    room_tokens - room_tokens % step_tokens AS unbroken_tokens,
    CASE
      WHEN seen_tokens > standing_tokens AND NOT writes_told THEN
        CASE WHEN seen_tokens < input_tokens THEN seen_tokens ELSE input_tokens - 1 END
      WHEN standing_tokens < room_tokens THEN standing_tokens
      ELSE room_tokens
    END AS able_tokens
  FROM bounded
),
sized AS (
  SELECT
    *,
    able_tokens - able_tokens % step_tokens AS could_tokens,
    greatest(unbroken_tokens, able_tokens - able_tokens % step_tokens) AS whole_tokens,
    -- Where nobody tells what was read, hashes still tell what no cache can have served.
    coalesce(read_tokens, able_tokens - able_tokens % step_tokens) AS got_tokens
  FROM stepped
)
SELECT
  request_key,
  whole_tokens AS unbroken_tokens,
  could_tokens,
  CASE WHEN same_tokens IS NOT NULL OR prior_key IS NULL THEN 'hashes'
    WHEN writes_told THEN 'counts' ELSE 'size' END AS basis,
  read_tokens,
  CASE WHEN same_tokens IS NULL THEN NULL
    WHEN got_tokens >= whole_tokens THEN 0
    WHEN got_tokens > could_tokens THEN whole_tokens - got_tokens
    ELSE whole_tokens - could_tokens END AS changed_tokens,
  CASE WHEN same_tokens IS NULL AND prior_key IS NOT NULL THEN NULL
    WHEN got_tokens >= could_tokens THEN 0 ELSE could_tokens - got_tokens END AS gone_tokens,
  CASE WHEN whole_tokens - got_tokens > greatest(
      CAST(step_tokens AS DOUBLE), CAST($fewest_tokens AS DOUBLE), whole_tokens * $slack)
    AND whole_tokens >= min_tokens THEN whole_tokens - got_tokens ELSE 0 END AS lost_tokens,
  same_tokens,
  is_whole
FROM sized
WHERE whole_tokens > 0
