-- The logs' attempts and the provider's records of single calls, side by side: what both tell, what
-- was billed and never tracked, what one of them alone tells.
-- grain:   one row an attempt of the logs, a record of the provider, or both together
-- needs:   resolve_side, resolve_request, cost_request, cost_sent, cost_bill_pair
-- param:   slack_ns = 5000000000        -- clocks of two machines
-- param:   inside_ns = 1000000000       -- what was accepted later than that came after an earlier try
-- returns: request_key BIGINT           -- the attempt; NULL = no log tells it
-- returns: bill_key BIGINT              -- the provider's record; NULL = none
-- returns: class VARCHAR                -- matched, hidden, unmetered, bill only, log only, not billed, suspected, not compared
-- returns: kind VARCHAR                 -- of hidden and suspected ones: timeout, abort, server, ... as the caller saw it, or inside (a try within a logged request)
-- returns: is_by_id BOOLEAN             -- joined by an id, not by model, tokens and time
-- returns: model VARCHAR                -- model
-- returns: start_ns BIGINT              -- start, by the log where one tells it, ns UTC
-- returns: provider_ns BIGINT           -- from the attempt's start until the provider had finished it, ns
-- returns: logged_tokens BIGINT         -- prompt and output, by the log
-- returns: billed_tokens BIGINT         -- prompt and output, by the provider
-- returns: logged_usd DECIMAL(38,15)    -- what the log's tokens cost by our prices
-- returns: billed_usd DECIMAL(38,15)    -- what was charged, else the provider's tokens by our prices
-- returns: is_charged BOOLEAN           -- the provider tells what it charged
WITH span AS (
  SELECT
    min(bill_start_ns) - $slack_ns AS first_ns, max(bill_start_ns) + $slack_ns AS last_ns
  FROM resolve_side
  WHERE is_billed
),
billed AS (
  SELECT
    s.request_key AS bill_key, q.model, s.bill_start_ns, s.bill_e2e_ns, s.bill_input_tokens,
    s.bill_usd IS NOT NULL AS is_charged,
    coalesce(s.bill_input_tokens, 0) + coalesce(s.bill_output_tokens, 0) AS billed_tokens,
    CAST(coalesce(s.bill_usd, c.usd) AS DECIMAL(38,15)) AS billed_usd,
    s.is_logged
  FROM resolve_side AS s
  JOIN resolve_request AS q ON s.request_key = q.request_key
  JOIN cost_request AS c ON s.request_key = c.request_key
  WHERE s.is_billed
),
logged AS (
  SELECT
    a.request_key, a.model, a.start_ns, a.e2e_ns, a.failed, a.class, a.has_usage, a.can_be_billed,
    s.is_billed AS is_by_id, a.input_tokens,
    coalesce(s.log_input_tokens, s.bill_input_tokens, 0)
      + coalesce(s.log_output_tokens, s.bill_output_tokens, 0) AS logged_tokens,
    CASE WHEN a.has_usage OR (s.is_billed AND NOT a.failed) THEN c.usd END AS logged_usd,
    coalesce(CASE WHEN s.is_billed THEN a.request_key END, p.bill_key) AS bill_key,
    p.start_off_ns
  FROM cost_sent AS a
  JOIN resolve_side AS s ON a.request_key = s.request_key
  JOIN cost_request AS c ON a.request_key = c.request_key
  LEFT JOIN cost_bill_pair AS p ON a.request_key = p.request_key
),
alone AS (
  SELECT b.*
  FROM billed AS b
  LEFT JOIN cost_bill_pair AS p ON b.bill_key = p.bill_key
  WHERE NOT b.is_logged AND p.bill_key IS NULL
),
-- A library that tries again by itself logs one long call: its earlier tries lie within.
inside AS (
  SELECT a.bill_key, min(l.request_key) AS around
  FROM alone AS a
  JOIN logged AS l
    ON a.bill_input_tokens = l.input_tokens
    AND l.start_off_ns > $inside_ns
    AND a.bill_start_ns BETWEEN l.start_ns - $slack_ns AND l.start_ns + l.start_off_ns - 1
    AND coalesce(a.model, l.model, '') = coalesce(l.model, a.model, '')
  GROUP BY a.bill_key
)
SELECT
  l.request_key,
  l.bill_key,
  CASE
    WHEN b.bill_key IS NOT NULL AND l.has_usage THEN 'matched'
    WHEN b.bill_key IS NOT NULL AND l.failed THEN 'hidden'
    WHEN b.bill_key IS NOT NULL AND l.is_by_id THEN 'matched'
    WHEN b.bill_key IS NOT NULL THEN 'unmetered'
    WHEN w.first_ns IS NOT NULL AND l.start_ns BETWEEN w.first_ns AND w.last_ns
      THEN CASE WHEN l.has_usage AND NOT l.failed THEN 'log only' ELSE 'not billed' END
    WHEN l.failed AND l.can_be_billed AND NOT l.has_usage AND l.class IN ('timeout', 'abort')
      THEN 'suspected'
    ELSE 'not compared'
  END AS class,
  CASE WHEN l.failed AND NOT l.has_usage THEN l.class END AS kind,
  l.is_by_id,
  coalesce(l.model, b.model) AS model,
  coalesce(l.start_ns, b.bill_start_ns) AS start_ns,
  b.bill_start_ns + b.bill_e2e_ns - coalesce(l.start_ns, b.bill_start_ns) AS provider_ns,
  CASE WHEN l.has_usage OR (l.is_by_id AND NOT l.failed) THEN l.logged_tokens END
    AS logged_tokens,
  b.billed_tokens,
  l.logged_usd,
  b.billed_usd,
  coalesce(b.is_charged, FALSE) AS is_charged
FROM logged AS l
CROSS JOIN span AS w
LEFT JOIN billed AS b ON l.bill_key = b.bill_key
UNION ALL
SELECT
  i.around, a.bill_key, CASE WHEN i.bill_key IS NULL THEN 'bill only' ELSE 'hidden' END,
  CASE WHEN i.bill_key IS NOT NULL THEN 'inside' END,
  FALSE, a.model, a.bill_start_ns, a.bill_e2e_ns, CAST(NULL AS BIGINT), a.billed_tokens,
  CAST(NULL AS DECIMAL(38,15)), a.billed_usd, a.is_charged
FROM alone AS a
LEFT JOIN inside AS i ON a.bill_key = i.bill_key
