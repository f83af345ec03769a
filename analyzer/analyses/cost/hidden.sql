-- Attempts that no log tracks with their tokens: those the provider's records show as billed, and,
-- where no record covers their time, those that may have been: given up after the request was sent.
-- What such a one would cost lies between its prompt alone and a whole answer.
-- grain:   one row a hidden or suspected attempt
-- needs:   cost_matched, cost_sent, cost_request
-- returns: request_key BIGINT          -- the attempt; of a try within a logged request, the provider's record
-- returns: is_billed BOOLEAN           -- the provider's record shows it; else suspected
-- returns: kind VARCHAR                -- timeout, abort, server, ... as the caller saw it, or inside
-- returns: operation VARCHAR           -- what its attempts have in common
-- returns: nth BIGINT                  -- which of the operation's attempts, from 1
-- returns: model VARCHAR               -- model
-- returns: start_ns BIGINT             -- start, ns UTC
-- returns: e2e_ns BIGINT               -- until the caller gave it up, ns
-- returns: provider_ns BIGINT          -- from its start until the provider had finished it, ns
-- returns: apart_ns BIGINT             -- from its start to the next attempt's, ns
-- returns: pause_ns BIGINT             -- from its end to the next attempt's start, ns
-- returns: is_sent BOOLEAN             -- its body is known to have left
-- returns: tokens BIGINT               -- prompt and output that were billed
-- returns: usd DECIMAL(38,15)          -- what was billed for it; NULL = suspected, or not known
-- returns: is_charged BOOLEAN          -- that is what the provider charged; else our prices
-- returns: low_usd DECIMAL(38,15)      -- of a suspected one: its prompt
-- returns: high_usd DECIMAL(38,15)     -- of a suspected one: prompt and a whole answer
-- returns: billed_share DOUBLE         -- its part of all that was billed, in money, else in tokens
WITH of_model AS (
  SELECT
    a.model,
    CAST(percentile_cont(0.1) WITHIN GROUP (ORDER BY CAST(
      coalesce(c.fresh_usd, 0) + coalesce(c.read_usd, 0) + coalesce(c.write_usd, 0) AS DOUBLE
    )) AS DECIMAL(38,15)) AS low_usd,
    CAST(percentile_cont(0.9) WITHIN GROUP (ORDER BY CAST(c.usd AS DOUBLE)) AS DECIMAL(38,15))
      AS high_usd
  FROM cost_sent AS a
  JOIN cost_request AS c ON a.request_key = c.request_key
  WHERE a.has_usage AND NOT a.failed AND c.usd IS NOT NULL
  GROUP BY a.model
),
whole AS (
  SELECT
    CAST(sum(billed_usd) AS DOUBLE) AS usd, CAST(sum(billed_tokens) AS DOUBLE) AS tokens
  FROM cost_matched
  WHERE bill_key IS NOT NULL
)
SELECT
  CASE WHEN m.kind = 'inside' THEN m.bill_key ELSE m.request_key END AS request_key,
  m.class = 'hidden' AS is_billed,
  coalesce(m.kind, 'error') AS kind,
  a.operation,
  a.nth,
  m.model,
  m.start_ns,
  CASE WHEN m.kind <> 'inside' THEN a.e2e_ns END AS e2e_ns,
  m.provider_ns,
  CASE WHEN m.kind <> 'inside' THEN a.apart_ns END AS apart_ns,
  CASE WHEN m.kind <> 'inside' THEN a.pause_ns END AS pause_ns,
  coalesce(a.is_sent, FALSE) AS is_sent,
  CASE WHEN m.class = 'hidden' THEN m.billed_tokens END AS tokens,
  CASE WHEN m.class = 'hidden' THEN m.billed_usd END AS usd,
  m.is_charged,
  CASE WHEN m.class = 'suspected' THEN CASE
    WHEN c.usd IS NOT NULL THEN CAST(
      coalesce(c.fresh_usd, 0) + coalesce(c.read_usd, 0) + coalesce(c.write_usd, 0)
      AS DECIMAL(38,15))
    ELSE o.low_usd END END AS low_usd,
  CASE WHEN m.class = 'suspected' THEN coalesce(c.usd, o.high_usd) END AS high_usd,
  CASE
    WHEN m.class <> 'hidden' THEN NULL
    WHEN w.usd > 0 THEN CAST(m.billed_usd AS DOUBLE) / w.usd
    WHEN w.tokens > 0 THEN m.billed_tokens / w.tokens
  END AS billed_share
FROM cost_matched AS m
LEFT JOIN cost_sent AS a ON m.request_key = a.request_key
LEFT JOIN cost_request AS c ON a.answer_key = c.request_key
LEFT JOIN of_model AS o ON m.model = o.model
CROSS JOIN whole AS w
WHERE m.class IN ('hidden', 'suspected')
