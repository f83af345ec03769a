-- The prompt behind each moment of prefill interference: the largest that was in work then.
-- grain:   one row a moment whose prompts are told request by request
-- needs:   resolve_request, stream_moment, stream_prompt
-- returns: start_ns BIGINT               -- moment begins, ns UTC
-- returns: end_ns BIGINT                 -- moment ends, ns UTC
-- returns: unit VARCHAR                  -- its server
-- returns: id VARCHAR                    -- request with the largest prompt
-- returns: tokens BIGINT                 -- tokens of it that had to be computed
-- returns: prompts BIGINT                -- prompts in work then
WITH beside AS (
  SELECT
    m.start_ns, m.end_ns, m.unit, p.tokens, r.id,
    row_number() OVER (
      PARTITION BY m.unit, m.start_ns ORDER BY p.tokens DESC, p.begin_ns, p.request_key
    ) AS choice,
    count(*) OVER (PARTITION BY m.unit, m.start_ns) AS prompts
  FROM stream_moment AS m
  JOIN stream_prompt AS p
    ON m.unit = p.unit AND p.begin_ns < m.end_ns AND p.end_ns > m.start_ns
  JOIN resolve_request AS r ON p.request_key = r.request_key
  WHERE m.cause = 'prefill' AND p.tokens > 0
)
SELECT start_ns, end_ns, unit, id, tokens, prompts
FROM beside
WHERE choice = 1
