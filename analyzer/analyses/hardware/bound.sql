-- The three lines of a decode step for every pair of batch and context that the case has. Strict is
-- of one answer alone, whatever the batch.
-- grain:   one row a unit, batch and context
-- needs:   hardware_setting, hardware_interval, hardware_moment, resolve_engine_sample, resolve_capacity
-- python:  bound
-- param:   enough_samples = 20          -- fewer may have missed the largest batch
-- param:   most_cells = 100000          -- distinct pairs; more do not occur with rounded values
-- returns: unit VARCHAR                 -- engine, as far as that is told
-- returns: batch BIGINT                 -- sequences that decode together
-- returns: context BIGINT               -- context of each, tokens
-- returns: batch_fits BIGINT            -- the batch that was taken: no more than the engine holds
-- returns: strict_ns DOUBLE             -- cannot be beaten, ns a token
-- returns: expected_ns DOUBLE           -- of this batch and layout, ns a token; NULL = layout not told
-- returns: attainable_ns DOUBLE         -- at measured ceilings, ns a token
-- returns: all_on_gpu_ns DOUBLE         -- expected if nothing lay in main memory, ns a token
-- returns: host_ns DOUBLE               -- of the expected, reading main memory, ns a token
WITH cells AS (
  SELECT unit, batch, context FROM hardware_moment WHERE batch > 0
  UNION
  SELECT unit, 1, low_context FROM hardware_interval
  UNION
  SELECT unit, 1, high_context FROM hardware_interval
),
one AS (
  SELECT unit, min(facts) AS facts FROM hardware_setting WHERE usable GROUP BY unit
),
largest AS (
  SELECT CASE WHEN count(*) >= $enough_samples THEN max(running) END AS largest_batch
  FROM resolve_engine_sample
  WHERE running > 0
)
SELECT c.unit, c.batch, c.context, o.facts, l.largest_batch, p.capacity_tokens
FROM cells AS c
JOIN one AS o ON c.unit = o.unit
CROSS JOIN largest AS l
CROSS JOIN resolve_capacity AS p
ORDER BY c.unit, c.batch, c.context
LIMIT $most_cells
