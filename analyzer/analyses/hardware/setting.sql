-- What each group of requests ran on: options beat a deployment file, that beats logs, all beat the
-- catalogs. Python merges the rows and looks the names up; the few groups with most requests are
-- looked at.
-- grain:   one row a deployment label and model of the requests
-- needs:   resolve_request, resolve_deployment, resolve_gpu_rank
-- python:  setting
-- param:   told = NULL                  -- what the user says on the command line, JSON
-- param:   most_groups = 200            -- one engine has one model; more are names gone wild
-- param:   most_rows = 500              -- deployment rows a group is told; a log repeats its loads
-- returns: deployment VARCHAR           -- label of the requests; empty = none
-- returns: model VARCHAR                -- their model; empty = not told
-- returns: unit VARCHAR                 -- groups that run in one engine have the same
-- returns: requests BIGINT              -- requests of the group
-- returns: usable BOOLEAN               -- a bound can be drawn
-- returns: why VARCHAR                  -- what is missing, where it cannot
-- returns: facts VARCHAR                -- what is known, JSON
-- returns: bound_model VARCHAR          -- model whose shape it is; inline = by figures
-- returns: gpu VARCHAR                  -- part; custom = by its bandwidth
-- returns: gpus BIGINT                  -- devices that hold the model once
-- returns: layout VARCHAR               -- how they share it; NULL = not told
-- returns: weights VARCHAR              -- weight format
-- returns: kv_bits DOUBLE               -- bits of a cached value
-- returns: weight_bytes DOUBLE          -- bytes of weights that one token alone reads
-- returns: host_bytes DOUBLE            -- of them in main memory, bytes
-- returns: expert_layers BIGINT         -- layers with routed experts
-- returns: replicas BIGINT              -- engines that share the requests
-- returns: is_offloaded BOOLEAN         -- weights that a step reads lie in main memory
-- returns: is_whole BOOLEAN             -- bytes were loaded, of which experts would be read in part
-- returns: assumed VARCHAR              -- where each value is from and what was assumed, JSON list
WITH served AS (
  SELECT coalesce(deployment, '') AS label, coalesce(model, '') AS served_model, count(*) AS requests
  FROM resolve_request
  GROUP BY coalesce(deployment, ''), coalesce(model, '')
  UNION ALL
  -- Traces of a profiler ran on something, too, where no request is logged.
  SELECT '', '', 0
  FROM (SELECT count(*) AS requests FROM resolve_request) AS r
  CROSS JOIN (SELECT count(*) AS ranks FROM resolve_gpu_rank) AS g
  WHERE r.requests = 0 AND g.ranks > 0
),
placed AS (
  SELECT *, row_number() OVER (ORDER BY requests DESC, label, served_model) AS place FROM served
),
ordered AS (
  SELECT *, row_number() OVER (PARTITION BY name ORDER BY source_id DESC, record DESC) AS age
  FROM resolve_deployment
)
SELECT
  p.label, p.served_model, p.requests, CAST($told AS VARCHAR) AS told,
  d.source_id, d.record, d.path, d.is_file, d.name, d.model, d.gpu, d.gpu_count, d.tp, d.pp,
  d.memory_bandwidth_bytes_per_s, d.cpu_memory_bandwidth_bytes_per_s, d.params,
  d.weight_bytes_per_param, d.weight_bytes_per_rank, d.layers, d.gpu_weight_bytes,
  d.cpu_weight_bytes, d.gpu_layers, d.offloadable_layers, d.kv_heads, d.head_dim,
  d.kv_bytes_per_value, d.input_embedding_bytes, d.kv_capacity_tokens, d.max_running,
  d.weight_format
FROM placed AS p
LEFT JOIN ordered AS d ON (d.name IS NULL OR d.name = p.label) AND d.age <= $most_rows
WHERE p.place <= $most_groups
ORDER BY p.place, d.source_id, d.record
