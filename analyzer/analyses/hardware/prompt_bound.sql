-- The three lines of the prefill of every size of prompt that the case has.
-- grain:   one row a unit, new and cached tokens
-- needs:   hardware_setting, hardware_prompt
-- python:  prompt_bound
-- param:   most_cells = 100000          -- distinct pairs; more do not occur with rounded values
-- returns: unit VARCHAR                 -- engine, as far as that is told
-- returns: new_cell BIGINT              -- prompt tokens that are processed
-- returns: cached_cell BIGINT           -- prompt tokens that are known already
-- returns: strict_ns DOUBLE             -- cannot be beaten, ns
-- returns: expected_ns DOUBLE           -- one prompt alone in this layout, ns; NULL = not known
-- returns: attainable_ns DOUBLE         -- at measured ceilings, ns
-- returns: peak_ns DOUBLE               -- its FLOPs at the dense 16-bit peak, ns; NULL = no rate known
WITH one AS (
  SELECT unit, min(facts) AS facts FROM hardware_setting WHERE usable GROUP BY unit
),
cells AS (
  SELECT DISTINCT unit, new_cell, cached_cell FROM hardware_prompt
)
SELECT c.unit, c.new_cell, c.cached_cell, o.facts
FROM cells AS c
JOIN one AS o ON c.unit = o.unit
ORDER BY c.unit, c.new_cell, c.cached_cell
LIMIT $most_cells
