-- Each attempt that a log tells, with what is known of its size: of a failed one from the attempt of
-- the same operation that was answered. An operation is told by its id, else by equal bodies in a row.
-- grain:   one row a request that a log tells; what two logs tell under other ids, once
-- needs:   resolve_side, resolve_request, resolve_asked, outcome_attempt, cost_twice
-- returns: request_key BIGINT         -- the attempt
-- returns: operation VARCHAR          -- what its attempts have in common
-- returns: nth BIGINT                 -- which of the operation's attempts, from 1
-- returns: attempts BIGINT            -- attempts of the operation
-- returns: model VARCHAR              -- model
-- returns: start_ns BIGINT            -- its start, ns UTC
-- returns: e2e_ns BIGINT              -- end to end, as the caller saw it, ns
-- returns: apart_ns BIGINT            -- from its start to the next attempt's, ns
-- returns: pause_ns BIGINT            -- from its end to the next attempt's start, ns
-- returns: failed BOOLEAN             -- it ended in an error, a timeout or an abort
-- returns: class VARCHAR              -- timeout, abort, rate limit, server, connection, refused or error; NULL = did not fail
-- returns: has_usage BOOLEAN          -- a log tells its tokens
-- returns: can_be_billed BOOLEAN      -- it reached the provider, or may have
-- returns: is_sent BOOLEAN            -- its body is known to have left
-- returns: input_tokens BIGINT        -- its prompt, or that of the answered attempt
-- returns: output_tokens BIGINT       -- its output, where a log tells it
-- returns: answer_key BIGINT          -- the answered attempt of the same operation
WITH asked AS (
  SELECT
    a.request_key, q.model, s.log_start_ns AS start_ns, coalesce(a.e2e_ns, s.log_e2e_ns) AS e2e_ns,
    a.failed, a.class, s.log_has_usage, s.log_input_tokens, s.log_output_tokens, s.bytes_sent,
    a.operation AS told_operation,
    CASE WHEN a.attempts = 1 AND q.operation_id IS NULL AND k.payload_hash IS NOT NULL
      THEN concat(k.payload_hash, ' ', coalesce(q.session_id, ''))
    END AS body
  FROM resolve_side AS s
  JOIN outcome_attempt AS a ON s.request_key = a.request_key
  JOIN resolve_request AS q ON s.request_key = q.request_key
  LEFT JOIN resolve_asked AS k ON s.request_key = k.request_key
  LEFT JOIN cost_twice AS w ON s.request_key = w.request_key
  WHERE s.is_logged AND w.request_key IS NULL
),
-- Equal bodies belong together as long as the one before failed.
begun AS (
  SELECT
    *,
    CASE WHEN lag(failed) OVER (
      PARTITION BY body ORDER BY start_ns NULLS LAST, request_key
    ) THEN 0 ELSE 1 END AS begins
  FROM asked
),
runs AS (
  SELECT
    *,
    sum(begins) OVER (
      PARTITION BY body ORDER BY start_ns NULLS LAST, request_key
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS run
  FROM begun
),
named AS (
  SELECT
    *,
    CASE WHEN body IS NULL THEN told_operation
      ELSE concat('body ', body, ' ', CAST(CAST(run AS BIGINT) AS VARCHAR)) END AS operation
  FROM runs
),
answers AS (
  SELECT
    operation,
    max(CASE WHEN NOT failed AND log_has_usage THEN request_key END) AS answer_key,
    max(CASE WHEN NOT failed THEN log_input_tokens END) AS input_tokens
  FROM named
  GROUP BY operation
),
ordered AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY operation ORDER BY start_ns NULLS LAST, request_key) AS nth,
    count(*) OVER (PARTITION BY operation) AS attempts,
    lead(start_ns) OVER (PARTITION BY operation ORDER BY start_ns NULLS LAST, request_key)
      AS next_ns
  FROM named
)
SELECT
  o.request_key, o.operation, o.nth, o.attempts, o.model, o.start_ns, o.e2e_ns,
  o.next_ns - o.start_ns AS apart_ns,
  o.next_ns - o.start_ns - o.e2e_ns AS pause_ns,
  o.failed, o.class, o.log_has_usage AS has_usage,
  NOT o.failed OR (coalesce(o.bytes_sent, 1) > 0
    AND coalesce(o.class, '') NOT IN ('connection', 'rate limit', 'refused')) AS can_be_billed,
  coalesce(o.bytes_sent, 0) > 0 OR coalesce(o.log_output_tokens, 0) > 0 AS is_sent,
  coalesce(o.log_input_tokens, a.input_tokens) AS input_tokens,
  o.log_output_tokens AS output_tokens,
  a.answer_key
FROM ordered AS o
JOIN answers AS a ON o.operation = a.operation
