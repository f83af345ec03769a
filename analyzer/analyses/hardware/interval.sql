-- When each request decoded: first token to last, all on one vantage's clock, the innermost that
-- tells nearly as many as any. Only where a bound can be drawn, for nothing else needs it.
-- grain:   one row a request whose decode has a place in time
-- needs:   resolve_request, resolve_vantage, resolve_ttft, hardware_setting
-- param:   nearly = 0.9                      -- share of the best-told vantage's requests that is enough
-- returns: request_key BIGINT                -- the request
-- returns: unit VARCHAR                      -- engine it ran in, as far as that is told
-- returns: vantage VARCHAR                   -- whose clock it is
-- returns: prefill_begin_ns BIGINT           -- prompt processing begins, at the earliest, ns
-- returns: first_ns BIGINT                   -- first token, ns on that clock
-- returns: last_ns BIGINT                    -- last token, ns on that clock
-- returns: input_tokens BIGINT               -- context at the first token; NULL = not told
-- returns: output_tokens BIGINT              -- tokens it grows by
-- returns: context_tokens BIGINT             -- mean context while it decodes; what is not told is 0
-- returns: low_context BIGINT                -- context at the first token, rounded down
-- returns: high_context BIGINT               -- context at the last, rounded down
WITH usable_ttft AS (
  SELECT t.request_key, t.vantage, max(t.ttft_ns) AS ttft_ns
  FROM resolve_ttft AS t
  JOIN resolve_vantage AS v
    ON t.request_key = v.request_key AND t.vantage = v.vantage AND t.ttft_ns = v.ttft_ns
  WHERE t.reading IN ('true', 'unchecked')
  GROUP BY t.request_key, t.vantage
),
offsets AS (
  SELECT
    v.request_key, v.vantage, v.vantage_rank, v.start_ns, v.e2e_ns, v.decode_ns, v.prefill_ns,
    v.queue_ns,
    coalesce(
      u.ttft_ns, v.queue_ns + v.prefill_ns, v.e2e_ns - v.decode_ns, v.prefill_ns
    ) AS first_after_ns
  FROM resolve_vantage AS v
  LEFT JOIN usable_ttft AS u ON v.request_key = u.request_key AND v.vantage = u.vantage
  WHERE v.start_ns IS NOT NULL
),
placed AS (
  SELECT
    *,
    start_ns + first_after_ns AS first_ns,
    start_ns + first_after_ns + coalesce(decode_ns, e2e_ns - first_after_ns) AS last_ns,
    start_ns + first_after_ns - coalesce(prefill_ns, first_after_ns - coalesce(queue_ns, 0))
      AS prefill_begin_ns
  FROM offsets
  WHERE first_after_ns >= 0
),
told AS (
  SELECT vantage, vantage_rank, count(*) AS requests
  FROM placed
  WHERE last_ns > first_ns
  GROUP BY vantage, vantage_rank
),
best AS (SELECT max(requests) AS most FROM told),
chosen AS (
  SELECT max_by(t.vantage, t.vantage_rank) AS vantage
  FROM told AS t
  CROSS JOIN best AS b
  WHERE t.requests >= $nearly * b.most
),
sized AS (
  SELECT
    p.request_key, s.unit, p.vantage, p.prefill_begin_ns, p.first_ns, p.last_ns, r.input_tokens,
    coalesce(r.output_tokens, 0) AS output_tokens,
    coalesce(r.input_tokens, 0) AS low, coalesce(r.input_tokens, 0) + coalesce(r.output_tokens, 0) AS high
  FROM placed AS p
  JOIN chosen AS c ON p.vantage = c.vantage
  JOIN resolve_request AS r ON p.request_key = r.request_key
  JOIN hardware_setting AS s
    ON coalesce(r.deployment, '') = s.deployment AND coalesce(r.model, '') = s.model AND s.usable
  WHERE p.last_ns > p.first_ns
),
stepped AS (
  SELECT
    *,
    CASE
      WHEN low < 256 THEN 1 WHEN low < 1024 THEN 4 WHEN low < 4096 THEN 16 WHEN low < 16384 THEN 64
      WHEN low < 65536 THEN 256 WHEN low < 262144 THEN 1024 ELSE 4096
    END AS low_step,
    CASE
      WHEN high < 256 THEN 1 WHEN high < 1024 THEN 4 WHEN high < 4096 THEN 16 WHEN high < 16384 THEN 64
      WHEN high < 65536 THEN 256 WHEN high < 262144 THEN 1024 ELSE 4096
    END AS high_step
  FROM sized
)
SELECT
  request_key, unit, vantage, prefill_begin_ns, first_ns, last_ns, input_tokens, output_tokens,
  CAST((low + high - (low + high) % 2) / 2 AS BIGINT) AS context_tokens,
  low - low % low_step AS low_context,
  high - high % high_step AS high_context
FROM stepped
