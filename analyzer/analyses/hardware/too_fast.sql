-- Requests faster than what cannot be beaten, each with the assumption that most likely broke. The
-- data or what is told of the deployment is wrong; nothing is clipped.
-- grain:   one row a request and phase that is too fast
-- needs:   hardware_decode, hardware_prefill, hardware_setting, stream_gap
-- param:   clock = 0.99                 -- a time below strict by less than this is a clock's doing
-- param:   several = 1.25               -- tokens a chunk from which chunks carry several
-- param:   clump_share = 0.25           -- half the gaps of a stream that came in bursts are below this
-- param:   halved = 2.1                 -- so many times too fast is what half the bytes explain
-- returns: request_key BIGINT           -- the request
-- returns: phase VARCHAR                -- decode or prefill
-- returns: times_ratio DOUBLE           -- how many times faster than strict
-- returns: observed_ns DOUBLE           -- time per output token, or prefill, ns
-- returns: strict_ns DOUBLE             -- its bound, ns
-- returns: broken VARCHAR               -- assumption that most likely broke
SELECT
  d.request_key, 'decode' AS phase, d.strict_ns / d.tpot_ns AS times_ratio, d.tpot_ns AS observed_ns,
  d.strict_ns,
  CASE
    WHEN d.tokens_per_chunk >= $several AND d.tpot_ns * d.tokens_per_chunk >= $clock * d.strict_ns
      THEN 'one token a step: chunks carry several, as with speculative decoding'
    WHEN d.tpot_vantage <> 'engine'
      AND g.median_gap_ns <= $clump_share * d.tpot_ns * coalesce(d.tokens_per_chunk, 1)
      THEN 'tokens arrive as they are made: this stream came in bursts'
    WHEN s.is_whole
      THEN 'all loaded weights are read a step: a mixture of experts reads some of them'
    WHEN d.strict_ns <= $halved * d.tpot_ns AND s.weights IN ('bf16', '16bpw', 'fp32', '32bpw')
      THEN 'the precision: weights of half the bytes would explain it'
    ELSE 'the model or the GPU: another ran than is told'
  END AS broken
FROM hardware_decode AS d
JOIN hardware_setting AS s ON d.deployment = s.deployment AND d.model = s.model
LEFT JOIN stream_gap AS g ON d.request_key = g.request_key
WHERE d.reading = 'faster than physics'
UNION ALL
SELECT
  request_key, 'prefill', strict_ns / prefill_ns, CAST(prefill_ns AS DOUBLE), strict_ns,
  'the cached tokens or the GPU: more of the prompt was known, or another part ran'
FROM hardware_prefill
WHERE prefill_ns < $clock * strict_ns
