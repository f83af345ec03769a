-- Queue, prefill and network floor of requests whose sources do not tell them, from the model of
-- their group: what the floor and the prompt do not explain waited. A request that had others ahead
-- waited until their first token; of what stays, up to one step is prefill that was shared with them.
-- Beside told parts only what is missing is modelled, and floor + prefill + queue = time to first token.
-- grain:   one row a request with a time to first token and a missing part
-- needs:   latency_modelled_point, latency_model
-- param:   band = 2.5                     -- deviations up to which an excess is scatter and no queue
-- param:   z = 1.645                      -- deviations of a 90 % interval
-- returns: request_key BIGINT             -- the request
-- returns: vantage VARCHAR                -- whose time to first token is split
-- returns: ttft_ns BIGINT                 -- that time, ns
-- returns: queue_ns BIGINT                -- wait for the model server, ns; NULL = told or refused
-- returns: queue_low_ns BIGINT            -- lower edge of its 90 % interval, ns
-- returns: queue_high_ns BIGINT           -- upper edge, ns
-- returns: prefill_ns BIGINT              -- prompt processing, ns; NULL = told or refused
-- returns: prefill_low_ns BIGINT          -- lower edge of its 90 % interval, ns
-- returns: prefill_high_ns BIGINT         -- upper edge, ns
-- returns: floor_ns BIGINT                -- network and fixed server time, scatter included, ns
-- returns: floor_low_ns BIGINT            -- lower edge of its 90 % interval, ns
-- returns: floor_high_ns BIGINT           -- upper edge, ns
-- returns: refused VARCHAR                -- why nothing is modelled; NULL = something is
WITH joined AS (
  SELECT
    p.request_key, p.vantage, p.ttft_ns, p.queue_ns AS told_queue_ns,
    p.prefill_ns AS told_prefill_ns, p.start_ns, p.first_ns, p.last_ns, p.next_ns, p.fresh_tokens,
    m.from_ns, m.floor_ns AS fixed_floor_ns, m.floor_low_ns, m.floor_high_ns, m.token_ns,
    m.token_low_ns, m.token_high_ns, m.pair_ns, m.fixed_ns, m.least_ns, m.busy_ns, m.wait_ns,
    m.chunk_ns, m.spread,
    CASE
      WHEN p.fresh_tokens IS NULL THEN 'the tokens of its prompt are not told'
      WHEN m.from_ns IS NULL THEN 'no model of its group'
      ELSE m.refused
    END AS refused,
    coalesce(p.last_ns - m.floor_ns > p.start_ns, FALSE) AS is_busy,
    CAST(p.fresh_tokens AS DOUBLE) * (coalesce(p.cached_tokens, 0) + p.fresh_tokens / 2.0) AS pairs
  FROM latency_modelled_point AS p
  LEFT JOIN latency_model AS m
    ON p.model = m.model AND p.deployment = m.deployment AND p.route = m.route
    AND p.vantage = m.vantage AND p.start_ns >= m.from_ns AND p.start_ns < m.until_ns
  WHERE p.queue_ns IS NULL OR p.prefill_ns IS NULL
),
expected AS (
  SELECT
    *,
    fixed_floor_ns + CASE WHEN is_busy THEN wait_ns ELSE 0 END AS usual_floor_ns,
    coalesce(
      told_prefill_ns,
      CASE WHEN token_ns IS NULL THEN 0
        ELSE greatest(least_ns, fixed_ns + token_ns * fresh_tokens + pair_ns * pairs)
          + CASE WHEN is_busy THEN busy_ns ELSE 0 END
      END
    ) AS usual_prefill_ns
  FROM joined
  WHERE refused IS NULL
),
timed AS (
  SELECT
    *,
    -- What is left for prefill and queue, and by how much more than prefill that is.
    greatest(ttft_ns - usual_floor_ns, 0) AS room_ns,
    ttft_ns - coalesce(told_queue_ns, 0) - usual_floor_ns - usual_prefill_ns AS excess_ns,
    spread * (usual_floor_ns + usual_prefill_ns) AS deviation_ns
  FROM expected
),
placed AS (
  SELECT
    *,
    greatest(excess_ns, 0) AS over_ns,
    CASE WHEN first_ns - fixed_floor_ns > start_ns
      THEN least(first_ns - fixed_floor_ns - start_ns, room_ns) ELSE 0 END AS ahead_ns,
    coalesce(first_ns - fixed_floor_ns > start_ns, FALSE)
      OR coalesce(next_ns < start_ns + room_ns, FALSE) AS is_shared
  FROM timed
),
waited AS (
  SELECT
    *,
    CASE WHEN ahead_ns > 2 * chunk_ns THEN least(ahead_ns - 1.5 * chunk_ns, over_ns) ELSE 0 END
      AS behind_ns,
    -- The wait for the end of the step that runs at its arrival is no queue: it stays in the floor.
    least(
      CASE WHEN ahead_ns <= chunk_ns THEN ahead_ns WHEN ahead_ns <= 2 * chunk_ns THEN ahead_ns - chunk_ns
        ELSE chunk_ns / 2 END,
      over_ns
    ) AS step_wait_ns
  FROM placed
),
split AS (
  SELECT
    *,
    greatest(
      over_ns - behind_ns - least(step_wait_ns, over_ns - behind_ns), 0
    ) AS rest_ns
  FROM waited
),
shared AS (
  SELECT
    *,
    CASE
      WHEN NOT is_shared OR told_prefill_ns IS NOT NULL OR token_ns IS NULL THEN 0
      ELSE least(rest_ns, chunk_ns)
    END AS beside_ns
  FROM split
),
parts AS (
  SELECT
    *,
    behind_ns + CASE WHEN rest_ns - beside_ns > $band * deviation_ns THEN rest_ns - beside_ns ELSE 0 END
      AS wait_queue_ns,
    least(usual_prefill_ns + beside_ns, greatest(ttft_ns - coalesce(told_queue_ns, 0), 0))
      AS whole_prefill_ns,
    greatest(ahead_ns - 2.5 * chunk_ns, 0) AS surely_ns,
    coalesce((token_high_ns - token_low_ns) / 2 * fresh_tokens, 0) AS rate_off_ns,
    -- Which part of a step its wait for the running one took is not seen.
    CASE WHEN is_busy THEN coalesce(least_ns, 0) / 2 ELSE 0 END AS step_off_ns
  FROM shared
),
edged AS (
  SELECT
    *,
    power(power($z * deviation_ns, 2) + power(floor_high_ns - fixed_floor_ns, 2)
      + power(rate_off_ns, 2) + power(step_off_ns, 2), 0.5) AS below_ns,
    power(power($z * deviation_ns, 2) + power(fixed_floor_ns - floor_low_ns, 2)
      + power(rate_off_ns, 2) + power(step_off_ns, 2), 0.5) AS above_ns
  FROM parts
)
SELECT
  request_key, vantage, ttft_ns,
  CASE WHEN told_queue_ns IS NULL THEN CAST(round(wait_queue_ns) AS BIGINT) END AS queue_ns,
  CASE WHEN told_queue_ns IS NULL
    THEN CAST(round(least(
      CASE WHEN is_shared THEN least(surely_ns, greatest(over_ns - above_ns, 0))
        ELSE greatest(over_ns - above_ns, 0) END, wait_queue_ns)) AS BIGINT) END AS queue_low_ns,
  CASE WHEN told_queue_ns IS NULL
    THEN CAST(round(least(greatest(over_ns, wait_queue_ns) + below_ns, ttft_ns)) AS BIGINT) END
    AS queue_high_ns,
  CASE WHEN told_prefill_ns IS NULL AND token_ns IS NOT NULL
    THEN CAST(round(whole_prefill_ns) AS BIGINT) END AS prefill_ns,
  CASE WHEN told_prefill_ns IS NULL AND token_ns IS NOT NULL
    THEN CAST(round(greatest(least(usual_prefill_ns, whole_prefill_ns) - below_ns, 0)) AS BIGINT) END
    AS prefill_low_ns,
  CASE WHEN told_prefill_ns IS NULL AND token_ns IS NOT NULL
    THEN CAST(round(least(
      whole_prefill_ns + above_ns + CASE WHEN is_shared THEN over_ns - beside_ns - least(surely_ns, over_ns - beside_ns)
        ELSE 0 END, ttft_ns)) AS BIGINT) END AS prefill_high_ns,
  ttft_ns - CAST(round(coalesce(told_queue_ns, wait_queue_ns)) AS BIGINT)
    - CAST(round(coalesce(told_prefill_ns, whole_prefill_ns)) AS BIGINT) AS floor_ns,
  CAST(round(least(floor_low_ns, ttft_ns - coalesce(told_queue_ns, wait_queue_ns)
    - coalesce(told_prefill_ns, whole_prefill_ns))) AS BIGINT) AS floor_low_ns,
  CAST(round(greatest(floor_high_ns, ttft_ns - coalesce(told_queue_ns, wait_queue_ns)
    - coalesce(told_prefill_ns, whole_prefill_ns))) AS BIGINT) AS floor_high_ns,
  CAST(NULL AS VARCHAR) AS refused
FROM edged
UNION ALL
SELECT
  request_key, vantage, ttft_ns, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, refused
FROM joined
WHERE refused IS NOT NULL
