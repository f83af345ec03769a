-- How near to the hardware the answers of one model and deployment come.
-- grain:   one row a deployment label and model
-- needs:   hardware_decode
-- param:   most = 0.5                   -- share of its answers that makes it a matter of the deployment
-- returns: deployment VARCHAR           -- label of the requests; empty = none
-- returns: model VARCHAR                -- their model; empty = not told
-- returns: requests BIGINT              -- answers with a time per output token
-- returns: judged BIGINT                -- of them with a bound of their batch
-- returns: far BIGINT                   -- of those far from it
-- returns: is_far BOOLEAN               -- most of them are
-- returns: batch DOUBLE                 -- mean batch
-- returns: context DOUBLE               -- mean context, tokens
-- returns: tpot_ns DOUBLE               -- median time per output token, ns
-- returns: strict_ns DOUBLE             -- median of the bounds, ns a token
-- returns: expected_ns DOUBLE           -- likewise, ns a token
-- returns: attainable_ns DOUBLE         -- likewise, ns a token
-- returns: host_ns DOUBLE               -- likewise: reading main memory, ns a token
-- returns: interference_ns DOUBLE       -- mean, at most: prompts in work beside it, ns a token
-- returns: strict_ratio DOUBLE          -- median of strict over observed
-- returns: p10_ratio DOUBLE             -- share of the expected bound reached, of the slow tenth at most
-- returns: p50_ratio DOUBLE             -- median share reached (MBU where memory is the limit)
-- returns: p90_ratio DOUBLE             -- of the fast tenth at least
-- returns: suspicious BIGINT            -- answers at 95 % of expected or beyond
-- returns: faster_than_expected BIGINT  -- answers that beat expected, though not strict
-- returns: faster_than_physics BIGINT   -- answers that beat strict
-- returns: held_back BIGINT             -- answers that a hop held, not judged
SELECT
  deployment, model,
  count(*) AS requests,
  count(reached_ratio) AS judged,
  count(*) FILTER (WHERE reading = 'far') AS far,
  count(*) FILTER (WHERE reading = 'far') >= $most * count(*) AND count(reached_ratio) > 0 AS is_far,
  avg(batch) AS batch,
  avg(context) AS context,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY tpot_ns) AS tpot_ns,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY strict_ns) AS strict_ns,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY expected_ns) AS expected_ns,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY attainable_ns) AS attainable_ns,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY host_ns) AS host_ns,
  avg(interference_ns) AS interference_ns,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY strict_ns / tpot_ns) AS strict_ratio,
  percentile_cont(0.1) WITHIN GROUP (ORDER BY reached_ratio) AS p10_ratio,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY reached_ratio) AS p50_ratio,
  percentile_cont(0.9) WITHIN GROUP (ORDER BY reached_ratio) AS p90_ratio,
  count(*) FILTER (WHERE reading IN ('suspicious', 'faster than expected')) AS suspicious,
  count(*) FILTER (WHERE reading = 'faster than expected') AS faster_than_expected,
  count(*) FILTER (WHERE reading = 'faster than physics') AS faster_than_physics,
  count(*) FILTER (WHERE reading = 'held back') AS held_back
FROM hardware_decode
GROUP BY deployment, model
