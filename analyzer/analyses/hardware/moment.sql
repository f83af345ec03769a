-- What decodes together: the batch and its context between any two moments at which an answer begins
-- or ends, rebuilt from the overlap of decode intervals. Engines that share the requests share the
-- batch. A client's concurrency is never taken for a batch.
-- grain:   one row a unit and moment at which something changes; it holds until the next
-- needs:   hardware_interval, hardware_setting, resolve_engine_sample
-- returns: unit VARCHAR                -- engine, as far as that is told
-- returns: at_ns BIGINT                -- since when, ns
-- returns: lasts_ns BIGINT             -- until the next moment, ns; 0 for the last one
-- returns: running BIGINT              -- answers that decode
-- returns: prefilling BIGINT           -- requests whose prompt is in work
-- returns: context_tokens BIGINT       -- context of all that decode together
-- returns: batch BIGINT                -- of one engine, rounded from 64 on; 0 = nothing decodes
-- returns: context BIGINT              -- context of each, rounded to 1 %
WITH changes AS (
  SELECT unit, first_ns AS at_ns, 1 AS more, context_tokens AS tokens, 0 AS prompts FROM hardware_interval
  UNION ALL
  SELECT unit, last_ns, -1, -context_tokens, 0 FROM hardware_interval
  UNION ALL
  SELECT unit, prefill_begin_ns, 0, 0, 1 FROM hardware_interval
  UNION ALL
  SELECT unit, first_ns, 0, 0, -1 FROM hardware_interval
),
moments AS (
  SELECT unit, at_ns, SUM(more) AS more, SUM(tokens) AS tokens, SUM(prompts) AS prompts
  FROM changes
  GROUP BY unit, at_ns
),
levels AS (
  SELECT
    unit, at_ns,
    coalesce(lead(at_ns) OVER (PARTITION BY unit ORDER BY at_ns) - at_ns, 0) AS lasts_ns,
    CAST(SUM(more) OVER (PARTITION BY unit ORDER BY at_ns) AS BIGINT) AS running,
    CAST(SUM(prompts) OVER (PARTITION BY unit ORDER BY at_ns) AS BIGINT) AS prefilling,
    CAST(SUM(tokens) OVER (PARTITION BY unit ORDER BY at_ns) AS BIGINT) AS context_tokens
  FROM moments
),
-- Engines that report are counted where requests do not say which of them they went to.
reporting AS (
  SELECT count(DISTINCT engine) AS engines FROM resolve_engine_sample WHERE running > 0
),
shared AS (
  SELECT
    s.unit,
    greatest(max(s.replicas), CASE WHEN max(s.deployment) = '' THEN max(r.engines) ELSE 1 END, 1)
      AS engines
  FROM hardware_setting AS s
  CROSS JOIN reporting AS r
  WHERE s.usable
  GROUP BY s.unit
),
divided AS (
  SELECT
    l.*,
    CASE WHEN l.running > 0
      THEN greatest(1, CAST(round(CAST(l.running AS DOUBLE) / e.engines) AS BIGINT)) ELSE 0 END
      AS in_one,
    CASE WHEN l.running > 0
      THEN CAST(round(CAST(l.context_tokens AS DOUBLE) / l.running) AS BIGINT) ELSE 0 END AS each
  FROM levels AS l
  JOIN shared AS e ON l.unit = e.unit
),
stepped AS (
  SELECT
    *,
    CASE WHEN in_one < 64 THEN 1 WHEN in_one < 256 THEN 4 ELSE 16 END AS batch_step,
    CASE
      WHEN each < 256 THEN 1 WHEN each < 1024 THEN 4 WHEN each < 4096 THEN 16 WHEN each < 16384 THEN 64
      WHEN each < 65536 THEN 256 WHEN each < 262144 THEN 1024 ELSE 4096
    END AS context_step
  FROM divided
),
halved AS (
  SELECT
    *,
    in_one + CAST((batch_step - batch_step % 2) / 2 AS BIGINT) AS batch_up,
    each + CAST((context_step - context_step % 2) / 2 AS BIGINT) AS context_up
  FROM stepped
)
SELECT
  unit, at_ns, lasts_ns, running, prefilling, context_tokens,
  batch_up - batch_up % batch_step AS batch,
  context_up - context_up % context_step AS context
FROM halved
