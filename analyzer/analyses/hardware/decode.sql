-- The observed time per output token of each answer against the bounds of the batch and context it
-- had at each moment: bound over observed is the share of the hardware that was reached.
-- grain:   one row a request with a time per output token
-- needs:   resolve_request, latency_segment, latency_token, latency_outside, hardware_interval, hardware_bound, hardware_pace, hardware_setting, hardware_unseen
-- param:   few_tokens = 16                -- the time per token of a shorter answer is mostly its ends
-- param:   clock = 0.99                   -- a time below strict by less than this is a clock's doing
-- param:   released = 30                  -- so many times faster than strict no wrong figure is: a hop held it
-- param:   suspicious = 0.95              -- of expected; the best that was measured is 0.92
-- param:   far = 0.5                      -- of attainable, which well tuned engines reach
-- param:   expert_layer_ns = 150000       -- what published single streams leave unexplained a layer with experts: 80 to 130 us
-- returns: request_key BIGINT             -- the request
-- returns: deployment VARCHAR             -- label of the request; empty = none
-- returns: model VARCHAR                  -- its model; empty = not told
-- returns: unit VARCHAR                   -- engine, as far as that is told
-- returns: start_ns BIGINT                -- its start, ns UTC
-- returns: e2e_ns BIGINT                  -- end to end, ns
-- returns: tokens BIGINT                  -- output tokens
-- returns: tpot_ns DOUBLE                 -- observed time per output token, ns
-- returns: tpot_vantage VARCHAR           -- engine, or the client's view
-- returns: tokens_per_chunk DOUBLE        -- tokens a chunk, where chunks are seen
-- returns: batch DOUBLE                   -- mean batch of one engine while it decoded
-- returns: context DOUBLE                 -- its own mean context, tokens
-- returns: batch_context DOUBLE           -- mean context of the whole batch, tokens
-- returns: strict_ns DOUBLE               -- cannot be beaten, ns a token
-- returns: alone_ns DOUBLE                -- expected of this answer alone, ns a token
-- returns: expected_ns DOUBLE             -- of batch and layout, ns a token; NULL = not known
-- returns: attainable_ns DOUBLE           -- at measured ceilings, ns a token
-- returns: all_on_gpu_ns DOUBLE           -- expected if nothing lay in main memory, ns a token
-- returns: host_ns DOUBLE                 -- of expected, reading main memory, ns a token
-- returns: interference_ns DOUBLE         -- of observed, at most, prompts in work beside it, ns a token
-- returns: reached_ratio DOUBLE           -- expected over observed, 1 = the bound itself
-- returns: excess_ns BIGINT               -- time of all tokens that no known part explains, ns
-- returns: reading VARCHAR                -- near, far, interference, suspicious, faster than expected, faster than physics, strict only, main memory unknown, others unseen, held back or unknown
WITH judged AS (
  SELECT
    r.request_key, coalesce(r.deployment, '') AS deployment, coalesce(r.model, '') AS model,
    r.start_ns, s.e2e_ns, t.output_tokens AS tokens, t.tpot_ns, t.tpot_vantage, t.tokens_per_chunk,
    coalesce(o.is_held, FALSE) AND t.tpot_vantage <> 'engine' AS is_held
  FROM resolve_request AS r
  JOIN latency_segment AS s ON r.request_key = s.request_key
  JOIN latency_token AS t ON r.request_key = t.request_key
  LEFT JOIN latency_outside AS o ON r.request_key = o.request_key
  WHERE NOT r.failed AND t.tpot_ns IS NOT NULL AND t.output_tokens >= $few_tokens
),
paced AS (
  SELECT
    i.request_key, i.unit, i.input_tokens, i.low_context, i.high_context,
    CAST(i.context_tokens AS DOUBLE) AS context,
    CAST(i.last_ns - i.first_ns AS DOUBLE) AS span_ns,
    nullif(z.expected_steps - a.expected_steps, 0) AS expected_steps,
    nullif(z.attainable_steps - a.attainable_steps, 0) AS attainable_steps,
    nullif(z.all_on_gpu_steps - a.all_on_gpu_steps, 0) AS all_on_gpu_steps,
    z.host_ns - a.host_ns AS host_ns,
    z.batch_ns - a.batch_ns AS batch_ns,
    z.context_ns - a.context_ns AS context_ns,
    z.prefill_ns - a.prefill_ns AS prefill_ns
  FROM hardware_interval AS i
  JOIN hardware_pace AS a ON i.unit = a.unit AND i.first_ns = a.at_ns
  JOIN hardware_pace AS z ON i.unit = z.unit AND i.last_ns = z.at_ns
),
bounded AS (
  SELECT
    j.*, p.unit, p.context,
    p.batch_ns / p.span_ns AS batch,
    CASE WHEN p.input_tokens IS NOT NULL THEN p.context_ns / p.span_ns END AS batch_context,
    -- A concave function of the context is at least the mean of its ends.
    (low.strict_ns + high.strict_ns) / 2 AS strict_ns,
    (low.expected_ns + high.expected_ns) / 2 AS alone_ns,
    CASE WHEN p.input_tokens IS NOT NULL THEN p.span_ns / p.expected_steps END AS expected_ns,
    CASE WHEN p.input_tokens IS NOT NULL THEN p.span_ns / p.attainable_steps END AS attainable_ns,
    p.span_ns / p.all_on_gpu_steps AS all_on_gpu_ns,
    p.host_ns / p.expected_steps AS host_ns,
    j.tpot_ns * (p.prefill_ns / p.span_ns) AS interference_ns,
    coalesce(h.is_offloaded AND h.host_bytes = 0, FALSE) AS is_guessed,
    coalesce(h.expert_layers, 0) * $expert_layer_ns AS allowed_ns,
    u.is_unseen
  FROM judged AS j
  CROSS JOIN hardware_unseen AS u
  LEFT JOIN hardware_setting AS h ON j.deployment = h.deployment AND j.model = h.model
  LEFT JOIN paced AS p ON j.request_key = p.request_key
  LEFT JOIN hardware_bound AS low
    ON p.unit = low.unit AND low.batch = 1 AND p.low_context = low.context
  LEFT JOIN hardware_bound AS high
    ON p.unit = high.unit AND high.batch = 1 AND p.high_context = high.context
)
SELECT
  request_key, deployment, model, unit, start_ns, e2e_ns, tokens, tpot_ns, tpot_vantage,
  tokens_per_chunk, batch, context, batch_context, strict_ns, alone_ns, expected_ns, attainable_ns,
  all_on_gpu_ns, host_ns, interference_ns,
  expected_ns / tpot_ns AS reached_ratio,
  CAST(round(greatest(tpot_ns - interference_ns - attainable_ns, 0) * tokens) AS BIGINT) AS excess_ns,
  CASE
    WHEN is_held OR (tpot_vantage <> 'engine' AND $released * tpot_ns < strict_ns) THEN 'held back'
    WHEN strict_ns IS NULL THEN 'unknown'
    WHEN tpot_ns < $clock * strict_ns THEN 'faster than physics'
    WHEN expected_ns IS NULL THEN 'strict only'
    WHEN tpot_ns < $clock * expected_ns THEN 'faster than expected'
    WHEN expected_ns > $suspicious * tpot_ns THEN 'suspicious'
    WHEN attainable_ns >= $far * tpot_ns THEN 'near'
    WHEN attainable_ns >= $far * (tpot_ns - interference_ns) THEN 'interference'
    -- Of a small step launches are most: routing and experts take some, whatever is read.
    WHEN tpot_ns - interference_ns - attainable_ns < allowed_ns THEN 'near'
    WHEN is_guessed THEN 'main memory unknown'
    WHEN is_unseen THEN 'others unseen'
    ELSE 'far'
  END AS reading
FROM bounded
