-- Ranks that train: a backward pass, dropout or an optimizer is in the trace. Their steps are no
-- decode steps, unless an engine's annotation says so.
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
    CASE
      WHEN name LIKE '%bwd%' OR name LIKE '%ackward%' OR name LIKE '%Grad%' OR name LIKE '%\_grad\_%' ESCAPE '\'
        OR name LIKE '%dgrad%' OR name LIKE '%wgrad%' OR name LIKE '%fused\_dropout%' ESCAPE '\'
        OR name LIKE '%multi\_tensor\_apply%' ESCAPE '\' THEN 1
    END
  ) >= $some * count(*)
)
SELECT rank_key FROM called
UNION
SELECT rank_key FROM ran
