-- What the bytes of a decode step allow: the bound of its batch and of the cached tokens it reads, where
-- annotations tell both and one deployment is described. Drafts are computed whether they are kept or
-- not, so it is a bound of steps, and of tokens only where a step gives one.
-- grain:   one row a batch, context and positions of decode steps
-- needs:   gpu_step, hardware_setting
-- python:  bound -- the bound of a batch comes from a catalog of models and accelerators
-- param:   most_cells = 100000          -- distinct cells; more do not occur with rounded values
-- returns: batch BIGINT                 -- requests that decode together
-- returns: context BIGINT               -- context of each, tokens, rounded to 64
-- returns: positions BIGINT             -- tokens computed of each request: more than one = drafts
-- returns: steps BIGINT                 -- steps with these
-- returns: expected_ns DOUBLE           -- bound of this batch and layout, ns a step; NULL = layout not told
-- returns: attainable_ns DOUBLE         -- at measured ceilings, ns a step
WITH cells AS (
  SELECT
    decode_requests AS batch,
    CAST(round(CAST(kv_tokens AS DOUBLE) / decode_requests / 64) AS BIGINT) * 64 AS context,
    CAST(round(greatest(coalesce(CAST(decode_tokens AS DOUBLE) / decode_requests, 1), 1)) AS BIGINT) AS positions,
    count(DISTINCT step) AS steps
  FROM gpu_step
  WHERE phase = 'decode' AND decode_requests > 0 AND kv_tokens > 0 AND (decode_tokens > 0 OR NOT is_drafted)
  GROUP BY 1, 2, 3
),
one AS (
  SELECT min(facts) AS facts FROM hardware_setting WHERE usable HAVING count(DISTINCT unit) = 1
)
SELECT c.batch, c.context, c.positions, c.steps, o.facts
FROM cells AS c
CROSS JOIN one AS o
ORDER BY c.batch, c.context, c.positions
LIMIT $most_cells
