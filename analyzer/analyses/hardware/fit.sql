-- Sums for the line time per output token = a + s x context of the whole batch (+ c x batch): a is
-- weights and overhead, s the time to read one cached token. The slope shows the cache apart from
-- everything that does not grow with it. Values stand around their means.
-- grain:   one row a deployment label and model
-- needs:   hardware_decode
-- returns: deployment VARCHAR           -- label of the requests; empty = none
-- returns: model VARCHAR                -- their model; empty = not told
-- returns: requests BIGINT              -- answers that count
-- returns: mean_context DOUBLE          -- mean context of the batch, tokens
-- returns: mean_batch DOUBLE            -- mean batch
-- returns: mean_tpot_ns DOUBLE          -- mean time per output token, ns
-- returns: low_context DOUBLE           -- tenth percentile of the context, tokens
-- returns: high_context DOUBLE          -- ninetieth, tokens
-- returns: context_context DOUBLE       -- sum of squares of the context
-- returns: batch_batch DOUBLE           -- of the batch
-- returns: context_batch DOUBLE         -- sum of products
-- returns: context_tpot DOUBLE          -- sum of products, tokens times ns
-- returns: batch_tpot DOUBLE            -- sum of products, ns
-- returns: tpot_tpot DOUBLE             -- sum of squares, ns squared
WITH told AS (
  SELECT deployment, model, batch_context, batch, tpot_ns
  FROM hardware_decode
  WHERE batch_context IS NOT NULL AND reading NOT IN ('held back', 'interference', 'unknown')
),
middle AS (
  SELECT
    deployment, model, count(*) AS requests, avg(batch_context) AS mean_context,
    avg(batch) AS mean_batch, avg(tpot_ns) AS mean_tpot_ns,
    percentile_cont(0.1) WITHIN GROUP (ORDER BY batch_context) AS low_context,
    percentile_cont(0.9) WITHIN GROUP (ORDER BY batch_context) AS high_context
  FROM told
  GROUP BY deployment, model
),
centred AS (
  SELECT
    m.*, t.batch_context - m.mean_context AS x, t.batch - m.mean_batch AS b,
    t.tpot_ns - m.mean_tpot_ns AS y
  FROM told AS t
  JOIN middle AS m ON t.deployment = m.deployment AND t.model = m.model
)
SELECT
  deployment, model, max(requests) AS requests, max(mean_context) AS mean_context,
  max(mean_batch) AS mean_batch, max(mean_tpot_ns) AS mean_tpot_ns,
  max(low_context) AS low_context, max(high_context) AS high_context,
  SUM(x * x) AS context_context, SUM(b * b) AS batch_batch, SUM(x * b) AS context_batch,
  SUM(x * y) AS context_tpot, SUM(b * y) AS batch_tpot, SUM(y * y) AS tpot_tpot
FROM centred
GROUP BY deployment, model
