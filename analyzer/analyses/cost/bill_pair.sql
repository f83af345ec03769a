-- Records of the provider without an id that logs know: which attempt each of them can be, by model,
-- tokens and time. A pair counts where each is the other's nearest.
-- grain:   one row a record of the provider that found its attempt
-- needs:   resolve_side, resolve_request, cost_sent
-- param:   bucket_ns = 32000000000     -- a provider takes an attempt in within half a minute of its start
-- param:   slack_ns = 5000000000       -- clocks of two machines; more than five seconds is another call
-- param:   late_ns = 1000000000        -- a pair that only ends together ranks behind one that began together
-- returns: bill_key BIGINT             -- the provider's record
-- returns: request_key BIGINT          -- the attempt
-- returns: start_off_ns BIGINT         -- accepted so long after the attempt began, ns
WITH bills AS (
  SELECT
    s.request_key, q.model, s.bill_input_tokens AS input_tokens,
    s.bill_output_tokens AS output_tokens, s.bill_start_ns AS start_ns,
    s.bill_start_ns + s.bill_e2e_ns AS end_ns
  FROM resolve_side AS s
  JOIN resolve_request AS q ON s.request_key = q.request_key
  WHERE s.is_billed AND NOT s.is_logged AND s.bill_start_ns IS NOT NULL
),
attempts AS (
  SELECT a.*, a.start_ns + coalesce(a.e2e_ns, 0) AS end_ns
  FROM cost_sent AS a
  JOIN resolve_side AS s ON a.request_key = s.request_key
  WHERE NOT s.is_billed AND a.can_be_billed AND a.start_ns IS NOT NULL
),
shifts AS (
  SELECT -1 AS by_one UNION ALL SELECT 0 UNION ALL SELECT 1
),
-- Tokens have to be equal, or those of the attempt unknown: a key to join by, however busy the time.
sized AS (
  SELECT *, input_tokens AS size FROM bills WHERE input_tokens IS NOT NULL
  UNION ALL
  SELECT *, -1 FROM bills
),
near AS (
  SELECT
    b.*, CAST(round(b.start_ns / CAST($bucket_ns AS DOUBLE)) AS BIGINT) + h.by_one AS slot,
    TRUE AS by_start
  FROM sized AS b CROSS JOIN shifts AS h
  UNION ALL
  SELECT b.*, CAST(round(b.end_ns / CAST($bucket_ns AS DOUBLE)) AS BIGINT) + h.by_one, FALSE
  FROM sized AS b CROSS JOIN shifts AS h
  WHERE b.end_ns IS NOT NULL
),
slots AS (
  SELECT
    *, coalesce(input_tokens, -1) AS size,
    CAST(round(start_ns / CAST($bucket_ns AS DOUBLE)) AS BIGINT) AS slot, TRUE AS by_start
  FROM attempts
  UNION ALL
  SELECT
    *, coalesce(input_tokens, -1), CAST(round(end_ns / CAST($bucket_ns AS DOUBLE)) AS BIGINT), FALSE
  FROM attempts
  WHERE e2e_ns IS NOT NULL AND NOT failed
),
pairs AS (
  SELECT
    b.request_key AS bill_key, a.request_key, a.failed, b.start_ns - a.start_ns AS start_off_ns,
    b.end_ns - a.end_ns AS end_off_ns, b.by_start,
    CASE WHEN a.input_tokens IS NULL THEN 1 ELSE 0 END AS unlike
  FROM near AS b
  JOIN slots AS a
    ON b.slot = a.slot AND b.by_start = a.by_start AND b.size = a.size
    AND (a.failed OR a.output_tokens IS NULL OR a.output_tokens = b.output_tokens)
    AND (b.model = a.model OR b.model IS NULL OR a.model IS NULL
      OR b.model LIKE concat(a.model, '-20%') OR a.model LIKE concat(b.model, '-20%')
      OR b.model LIKE concat(a.model, '@20%') OR a.model LIKE concat(b.model, '@20%')
      OR a.model LIKE concat('%/', b.model) OR b.model LIKE concat('%/', a.model))
  WHERE b.start_ns BETWEEN a.start_ns - $slack_ns AND a.end_ns + $slack_ns
    AND (b.by_start OR abs(b.end_ns - a.end_ns) <= $slack_ns)
),
-- How much later than its start an attempt is usually accepted: another clock, and the way there.
firsts AS (
  SELECT
    start_off_ns,
    row_number() OVER (
      PARTITION BY bill_key
      ORDER BY abs(start_off_ns) + coalesce(abs(end_off_ns), 0), request_key
    ) AS choice
  FROM pairs
  WHERE by_start AND NOT failed AND unlike = 0
),
usual AS (
  SELECT CAST(round(coalesce(
    percentile_cont(0.5) WITHIN GROUP (ORDER BY start_off_ns), 0
  )) AS BIGINT) AS off_ns
  FROM firsts WHERE choice = 1
),
measured AS (
  SELECT
    p.bill_key, p.request_key, min(p.unlike) AS unlike, min(p.start_off_ns) AS start_off_ns,
    min(CASE
      WHEN p.by_start AND p.failed THEN abs(p.start_off_ns - u.off_ns)
      WHEN p.by_start THEN abs(p.start_off_ns - u.off_ns) + coalesce(abs(p.end_off_ns), 0)
      ELSE $late_ns + 2 * abs(p.end_off_ns) END) AS apart_ns
  FROM pairs AS p
  CROSS JOIN usual AS u
  GROUP BY p.bill_key, p.request_key
),
ranked AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY bill_key ORDER BY apart_ns, unlike, request_key) AS choice,
    row_number() OVER (PARTITION BY request_key ORDER BY apart_ns, unlike, bill_key) AS suitor
  FROM measured
),
first_round AS (
  SELECT bill_key, request_key, start_off_ns FROM ranked WHERE choice = 1 AND suitor = 1
),
-- What lost its nearest to another takes the nearest that is left.
left_over AS (
  SELECT
    m.*,
    row_number() OVER (PARTITION BY m.bill_key ORDER BY m.apart_ns, m.request_key) AS choice,
    row_number() OVER (PARTITION BY m.request_key ORDER BY m.apart_ns, m.bill_key) AS suitor
  FROM measured AS m
  LEFT JOIN first_round AS b ON m.bill_key = b.bill_key
  LEFT JOIN first_round AS r ON m.request_key = r.request_key
  WHERE b.bill_key IS NULL AND r.request_key IS NULL
)
SELECT bill_key, request_key, start_off_ns FROM first_round
UNION ALL
SELECT bill_key, request_key, start_off_ns FROM left_over WHERE choice = 1 AND suitor = 1
