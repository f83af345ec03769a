-- What each source says of what a model runs on. A deployment file outranks a log.
-- grain:   one row a deployment row of the case
-- needs:   deployment, source
-- returns: source_id INTEGER                          -- where it was read
-- returns: record BIGINT                              -- record of that source
-- returns: path VARCHAR                               -- that file
-- returns: is_file BOOLEAN                            -- a deployment file, which an operator wrote
-- returns: name VARCHAR                               -- deployment; NULL = the whole case
-- returns: model VARCHAR                              -- model
-- returns: gpu VARCHAR                                -- accelerator
-- returns: gpu_count BIGINT                           -- accelerators
-- returns: tp BIGINT                                  -- tensor-parallel ranks
-- returns: pp BIGINT                                  -- pipeline-parallel stages
-- returns: memory_bandwidth_bytes_per_s DOUBLE        -- of one accelerator, bytes a second
-- returns: cpu_memory_bandwidth_bytes_per_s DOUBLE    -- of main memory, bytes a second
-- returns: params DOUBLE                              -- parameters read a step
-- returns: weight_bytes_per_param DOUBLE              -- bytes of one parameter
-- returns: weight_bytes_per_rank BIGINT               -- bytes of weights on one rank
-- returns: layers BIGINT                              -- layers
-- returns: gpu_weight_bytes BIGINT                    -- bytes of weights on all accelerators
-- returns: cpu_weight_bytes BIGINT                    -- bytes of weights in main memory
-- returns: gpu_layers BIGINT                          -- layers on accelerators
-- returns: offloadable_layers BIGINT                  -- layers that could be there
-- returns: kv_heads BIGINT                            -- key-value heads
-- returns: head_dim BIGINT                            -- dimension of one head
-- returns: kv_bytes_per_value DOUBLE                  -- bytes of one cached value
-- returns: input_embedding_bytes BIGINT               -- bytes of the input embedding
-- returns: kv_capacity_tokens BIGINT                  -- tokens the KV pool holds
-- returns: max_running BIGINT                         -- admission limit, requests
-- returns: weight_format VARCHAR                      -- format of the weights, as told
SELECT
  d.source_id, d.record, s.path, coalesce(s.reader, '') = 'deployment' AS is_file,
  nullif(d.name, '') AS name, nullif(d.model, '') AS model, nullif(d.gpu, '') AS gpu, d.gpu_count,
  d.tp, d.pp, d.memory_bandwidth_bytes_per_s, d.cpu_memory_bandwidth_bytes_per_s, d.params,
  d.weight_bytes_per_param, d.weight_bytes_per_rank, d.layers, d.gpu_weight_bytes,
  d.cpu_weight_bytes, d.gpu_layers, d.offloadable_layers, d.kv_heads, d.head_dim,
  d.kv_bytes_per_value, d.input_embedding_bytes, d.kv_capacity_tokens, d.max_running,
  nullif(d.weight_format, '') AS weight_format
FROM deployment AS d
JOIN source AS s ON d.source_id = s.source_id
