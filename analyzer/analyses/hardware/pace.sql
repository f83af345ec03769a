-- How many steps the hardware could have made up to each moment, at the bound of each moment's batch
-- and context. The difference of two moments is what one answer could have had in its time.
-- grain:   one row a unit and moment
-- needs:   hardware_moment, hardware_bound
-- returns: unit VARCHAR                 -- engine, as far as that is told
-- returns: at_ns BIGINT                 -- the moment, ns
-- returns: expected_steps DOUBLE        -- tokens of one answer at the expected bound until then
-- returns: attainable_steps DOUBLE      -- at the attainable one
-- returns: all_on_gpu_steps DOUBLE      -- if nothing lay in main memory
-- returns: host_ns DOUBLE               -- time of those expected steps that reads main memory, ns
-- returns: batch_ns DOUBLE              -- batch times its duration, ns
-- returns: context_ns DOUBLE            -- context of the whole batch times its duration, ns
-- returns: prefill_ns DOUBLE            -- time in which some prompt was in work, ns
WITH spans AS (
  SELECT
    m.unit, m.at_ns,
    CAST(m.lasts_ns AS DOUBLE) / b.expected_ns AS expected,
    CAST(m.lasts_ns AS DOUBLE) / b.attainable_ns AS attainable,
    CAST(m.lasts_ns AS DOUBLE) / b.all_on_gpu_ns AS all_on_gpu,
    CAST(m.lasts_ns AS DOUBLE) / b.expected_ns * b.host_ns AS host,
    CAST(m.lasts_ns AS DOUBLE) * coalesce(b.batch_fits, 0) AS batch,
    CAST(m.lasts_ns AS DOUBLE) * coalesce(b.batch_fits, 0) * m.context AS context,
    CAST(CASE WHEN m.prefilling > 0 THEN m.lasts_ns ELSE 0 END AS DOUBLE) AS prefill
  FROM hardware_moment AS m
  LEFT JOIN hardware_bound AS b
    ON m.unit = b.unit AND m.batch = b.batch AND m.context = b.context
)
SELECT
  unit, at_ns,
  coalesce(SUM(expected) OVER before, 0) AS expected_steps,
  coalesce(SUM(attainable) OVER before, 0) AS attainable_steps,
  coalesce(SUM(all_on_gpu) OVER before, 0) AS all_on_gpu_steps,
  coalesce(SUM(host) OVER before, 0) AS host_ns,
  coalesce(SUM(batch) OVER before, 0) AS batch_ns,
  coalesce(SUM(context) OVER before, 0) AS context_ns,
  coalesce(SUM(prefill) OVER before, 0) AS prefill_ns
FROM spans
WINDOW before AS (
  PARTITION BY unit ORDER BY at_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
)
