-- The observed prefill of each prompt against its bounds; peak over observed is the model FLOPs
-- utilisation (MFU). Prompts that are in work together share the hardware, so it is at least that.
-- grain:   one row a request with a timed prefill, prompt and cached tokens
-- needs:   hardware_prompt, hardware_prompt_bound
-- returns: request_key BIGINT           -- the request
-- returns: deployment VARCHAR           -- label of the request; empty = none
-- returns: model VARCHAR                -- its model; empty = not told
-- returns: new_tokens BIGINT            -- prompt tokens that are processed
-- returns: cached_tokens BIGINT         -- prompt tokens that are known already
-- returns: prefill_ns BIGINT            -- time of their processing, queue taken off, ns
-- returns: strict_ns DOUBLE             -- cannot be beaten, ns
-- returns: expected_ns DOUBLE           -- one prompt alone in this layout, ns; NULL = not known
-- returns: attainable_ns DOUBLE         -- at measured ceilings, ns
-- returns: mfu_ratio DOUBLE             -- of the dense 16-bit peak; NULL = no rate known
SELECT
  p.request_key, p.deployment, p.model, p.new_tokens, p.cached_tokens, p.prefill_ns, b.strict_ns,
  b.expected_ns, b.attainable_ns, b.peak_ns / p.prefill_ns AS mfu_ratio
FROM hardware_prompt AS p
JOIN hardware_prompt_bound AS b
  ON p.unit = b.unit AND p.new_cell = b.new_cell AND p.cached_cell = b.cached_cell
