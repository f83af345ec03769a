-- Ranks that train: a backward pass or an optimizer is in the trace. Their steps are no decode steps,
-- unless an engine's annotation says so.
-- grain:   one row a rank of a trace that trains
-- needs:   resolve_gpu_host, resolve_gpu_work
-- param:   some = 0.02                   -- of the kernels: libraries use a backward kernel for inference, rarely
-- returns: rank_key BIGINT               -- rank of the trace
WITH called AS (
  SELECT rank_key
  FROM resolve_gpu_host
  WHERE name LIKE 'autograd::engine::%' OR name LIKE 'Optimizer.step#%' OR name LIKE 'DistributedDataParallel.%'
  GROUP BY rank_key
),
ran AS (
  SELECT rank_key
  FROM resolve_gpu_work
  WHERE kind = 'kernel'
  GROUP BY rank_key
  HAVING count(
    CASE WHEN name LIKE '%backward%' OR name LIKE '%Backward%' OR name LIKE '%\_bwd\_%' ESCAPE '\' THEN 1 END
  ) >= $some * count(*)
)
SELECT rank_key FROM called
UNION
SELECT rank_key FROM ran
