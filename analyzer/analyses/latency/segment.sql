-- Where each request's time went, in two exact views. To the end: queue + prefill + decode +
-- network + unattributed = e2e. To the first token: queue + prefill + network_ttft +
-- unattributed_ttft = ttft. Clocks of two machines are never subtracted: network is the difference
-- of two durations. Parts above the whole by up to tolerance_ns shrink decode (prefill before the
-- first token), a decode that only an outer vantage tells by up to the network, whose variation is in
-- it; beyond that the parts are refused.
-- grain:   one row a request
-- needs:   resolve_request, resolve_vantage, resolve_ttft
-- param:   tolerance_ns = 5000000          -- engine and front end read two clocks of one machine
-- returns: request_key BIGINT              -- the request
-- returns: e2e_ns BIGINT                   -- end to end at the outermost vantage that tells it, ns
-- returns: ttft_ns BIGINT                  -- time to first token, outermost that is not misread, ns
-- returns: e2e_vantage VARCHAR             -- whose e2e it is
-- returns: ttft_vantage VARCHAR            -- whose TTFT it is
-- returns: server_e2e_ns BIGINT            -- e2e of the innermost vantage, if another, ns
-- returns: server_ttft_ns BIGINT           -- TTFT of the innermost vantage, if another, ns
-- returns: server_start_ns BIGINT          -- start on the innermost vantage's own clock, ns
-- returns: queue_ns BIGINT                 -- wait for the model server, ns
-- returns: prefill_ns BIGINT               -- prompt processing, ns
-- returns: decode_ns BIGINT                -- first to last token, ns
-- returns: network_ns BIGINT               -- outside the inner vantage, to the end, ns
-- returns: unattributed_ns BIGINT          -- inside it, but in no part; front end included, ns
-- returns: network_ttft_ns BIGINT          -- outside the inner vantage, to the first token, ns
-- returns: unattributed_ttft_ns BIGINT     -- inside it, but in no part, to the first token, ns
-- returns: frontend_ns BIGINT              -- named part of unattributed, ns
-- returns: held_ns BIGINT                  -- delivery delay that overlaps decode, ns; never summed
-- returns: hold_ns BIGINT                  -- client wait before sending, outside e2e, ns
-- returns: shrunk_ns BIGINT                -- how much the parts were shrunk to fit, ns
-- returns: contradiction VARCHAR           -- why parts were refused; NULL = they fit
-- returns: queue_grade VARCHAR             -- measured, derived or absent
-- returns: prefill_grade VARCHAR           -- measured, derived or absent
-- returns: decode_grade VARCHAR            -- measured, derived or absent
-- returns: network_grade VARCHAR           -- measured, derived or absent
WITH usable_ttft AS (
  SELECT t.request_key, t.vantage, max(t.ttft_ns) AS ttft_ns
  FROM resolve_ttft AS t
  JOIN resolve_vantage AS v
    ON t.request_key = v.request_key AND t.vantage = v.vantage AND t.ttft_ns = v.ttft_ns
  WHERE t.reading IN ('true', 'unchecked')
  GROUP BY t.request_key, t.vantage
),
ends AS (
  SELECT
    v.request_key,
    min_by(v.e2e_ns, v.vantage_rank) FILTER (WHERE v.e2e_ns IS NOT NULL) AS e2e_ns,
    min_by(v.vantage, v.vantage_rank) FILTER (WHERE v.e2e_ns IS NOT NULL) AS e2e_vantage,
    max_by(v.e2e_ns, v.vantage_rank) FILTER (WHERE v.e2e_ns IS NOT NULL) AS inner_e2e_ns,
    max_by(v.vantage, v.vantage_rank) FILTER (WHERE v.e2e_ns IS NOT NULL) AS inner_e2e_vantage,
    min_by(u.ttft_ns, v.vantage_rank) FILTER (WHERE u.ttft_ns IS NOT NULL) AS ttft_ns,
    min_by(u.vantage, v.vantage_rank) FILTER (WHERE u.ttft_ns IS NOT NULL) AS ttft_vantage,
    max_by(u.ttft_ns, v.vantage_rank) FILTER (WHERE u.ttft_ns IS NOT NULL) AS inner_ttft_ns,
    max_by(u.vantage, v.vantage_rank) FILTER (WHERE u.ttft_ns IS NOT NULL) AS inner_ttft_vantage,
    max_by(v.start_ns, v.vantage_rank) FILTER (WHERE v.start_ns IS NOT NULL) AS server_start_ns,
    max_by(v.queue_ns, v.vantage_rank) FILTER (WHERE v.queue_ns IS NOT NULL) AS queue_ns,
    max_by(v.prefill_ns, v.vantage_rank) FILTER (WHERE v.prefill_ns IS NOT NULL) AS prefill_ns,
    max_by(v.decode_ns, v.vantage_rank) FILTER (WHERE v.decode_ns IS NOT NULL) AS told_decode_ns,
    max_by(v.e2e_ns - u.ttft_ns, v.vantage_rank)
      FILTER (WHERE v.e2e_ns IS NOT NULL AND u.ttft_ns IS NOT NULL) AS rest_ns,
    max(v.vantage_rank) FILTER (WHERE v.e2e_ns IS NOT NULL)
      > max(v.vantage_rank) FILTER (WHERE v.e2e_ns IS NOT NULL AND u.ttft_ns IS NOT NULL)
      AS rest_is_outer,
    max_by(v.frontend_ns, v.vantage_rank) FILTER (WHERE v.frontend_ns IS NOT NULL) AS frontend_ns,
    max(v.hold_ns) AS hold_ns,
    min_by(v.left_early, v.vantage_rank) FILTER (WHERE v.e2e_ns IS NOT NULL) AS left_early
  FROM resolve_vantage AS v
  LEFT JOIN usable_ttft AS u ON v.request_key = u.request_key AND v.vantage = u.vantage
  GROUP BY v.request_key
),
outside AS (
  SELECT
    e.*,
    CASE WHEN inner_e2e_vantage <> e2e_vantage THEN e2e_ns - inner_e2e_ns END AS gap_ns,
    CASE WHEN inner_ttft_vantage <> ttft_vantage THEN ttft_ns - inner_ttft_ns END AS gap_ttft_ns,
    coalesce(told_decode_ns, CASE WHEN rest_ns >= 0 THEN rest_ns END) AS decode_ns
  FROM ends AS e
  JOIN resolve_request AS r ON e.request_key = r.request_key
),
fitted AS (
  SELECT
    *,
    CASE WHEN gap_ns >= 0 THEN gap_ns WHEN gap_ns >= -$tolerance_ns THEN 0 END AS network_ns,
    CASE WHEN gap_ttft_ns >= 0 THEN gap_ttft_ns WHEN gap_ttft_ns >= -$tolerance_ns THEN 0
      END AS network_ttft_ns,
    CASE WHEN gap_ns >= 0 THEN inner_e2e_ns ELSE e2e_ns END AS room_ns,
    CASE WHEN gap_ttft_ns >= 0 THEN inner_ttft_ns ELSE ttft_ns END AS room_ttft_ns
  FROM outside
),
weighed AS (
  SELECT
    *,
    $tolerance_ns + CASE WHEN told_decode_ns IS NULL AND rest_is_outer
      THEN coalesce(least(decode_ns, network_ns), 0) ELSE 0 END AS loose_ns,
    coalesce(queue_ns, 0) + coalesce(prefill_ns, 0) - coalesce(room_ttft_ns, 9000000000000000000)
      AS over_ttft_ns,
    coalesce(queue_ns, 0) + coalesce(prefill_ns, 0) + coalesce(decode_ns, 0)
      - coalesce(room_ns, 9000000000000000000) AS over_ns
  FROM fitted
),
judged AS (
  SELECT
    *,
    CASE
      WHEN least(queue_ns, prefill_ns, decode_ns, e2e_ns, ttft_ns) < 0
        THEN 'a duration is negative'
      WHEN ttft_ns > e2e_ns + $tolerance_ns AND ttft_vantage = e2e_vantage
        THEN 'the first token comes after the end'
      -- A client that gave up ends its own time; the server may go on, and what it did later is cut.
      WHEN left_early AND gap_ns < 0 THEN NULL
      WHEN gap_ns < -$tolerance_ns THEN 'the server took longer than the whole request'
      WHEN gap_ttft_ns < -$tolerance_ns
        THEN 'the server''s first token comes later than the client''s'
      WHEN over_ttft_ns > $tolerance_ns THEN 'queue and prefill exceed the time to first token'
      WHEN over_ns > loose_ns THEN 'the parts exceed the whole'
    END AS contradiction
  FROM weighed
),
believed AS (
  SELECT
    *,
    -- A first token after the end is no first token, whatever else it is.
    CASE WHEN contradiction IS NULL OR contradiction NOT IN
      ('a duration is negative', 'the first token comes after the end') THEN ttft_ns
    END AS true_ttft_ns
  FROM judged
),
shrunk AS (
  SELECT
    *,
    CASE WHEN contradiction IS NULL THEN greatest(over_ttft_ns, 0) ELSE 0 END AS cut_first_ns,
    CASE WHEN contradiction IS NULL
      THEN greatest(over_ns - greatest(over_ttft_ns, 0), 0) ELSE 0 END AS cut_rest_ns
  FROM believed
),
cut_decode AS (
  SELECT
    *,
    least(cut_rest_ns, coalesce(decode_ns, 0)) AS off_decode_ns,
    cut_first_ns + cut_rest_ns - least(cut_rest_ns, coalesce(decode_ns, 0)) AS left_ns
  FROM shrunk
),
parts AS (
  SELECT
    *,
    CASE WHEN contradiction IS NULL
      THEN queue_ns - greatest(left_ns - coalesce(prefill_ns, 0), 0) END AS queue_part_ns,
    CASE WHEN contradiction IS NULL AND prefill_ns IS NOT NULL
      THEN greatest(prefill_ns - left_ns, 0) END AS prefill_part_ns,
    CASE WHEN contradiction IS NULL THEN decode_ns - off_decode_ns END AS decode_part_ns
  FROM cut_decode
)
SELECT
  request_key,
  e2e_ns,
  true_ttft_ns AS ttft_ns,
  e2e_vantage,
  ttft_vantage,
  CASE WHEN gap_ns IS NOT NULL THEN inner_e2e_ns END AS server_e2e_ns,
  CASE WHEN gap_ttft_ns IS NOT NULL THEN inner_ttft_ns END AS server_ttft_ns,
  server_start_ns,
  queue_part_ns AS queue_ns,
  prefill_part_ns AS prefill_ns,
  decode_part_ns AS decode_ns,
  network_ns,
  e2e_ns - coalesce(network_ns, 0) - coalesce(queue_part_ns, 0) - coalesce(prefill_part_ns, 0)
    - coalesce(decode_part_ns, 0) AS unattributed_ns,
  network_ttft_ns,
  true_ttft_ns - coalesce(network_ttft_ns, 0) - coalesce(queue_part_ns, 0)
    - coalesce(prefill_part_ns, 0) AS unattributed_ttft_ns,
  frontend_ns,
  CASE WHEN network_ttft_ns - network_ns >= 0 THEN network_ttft_ns - network_ns
    WHEN network_ttft_ns - network_ns < 0 THEN 0 END AS held_ns,
  hold_ns,
  cut_first_ns + cut_rest_ns AS shrunk_ns,
  contradiction,
  CASE WHEN queue_part_ns IS NULL THEN 'absent' ELSE 'measured' END AS queue_grade,
  CASE WHEN prefill_part_ns IS NULL THEN 'absent' ELSE 'measured' END AS prefill_grade,
  CASE WHEN decode_part_ns IS NULL THEN 'absent' WHEN told_decode_ns IS NULL THEN 'derived'
    ELSE 'measured' END AS decode_grade,
  CASE WHEN network_ns IS NULL THEN 'absent' ELSE 'derived' END AS network_grade
FROM parts
