-- Time outside the server that is the same for many requests, to within what their path varies: a
-- timer runs out first (a fallback, a connection that is tried again, a name that is not found), and
-- only then the request goes on. A slow path adds its time both ways, varies, and has no round
-- numbers.
-- grain:   one row a request with long time outside the server that is like that of others
-- needs:   latency_outside, latency_outside_crowd, latency_offset
-- param:   first_ns = 30000000         -- what a near path adds to a timer that all requests run into
-- param:   least_ns = 20000000         -- a timer is this exact, whatever the path
-- param:   most_ns = 100000000         -- and what varies more is no constant
-- param:   spread_factor = 1.5         -- of the path's own spread, from its 10th to its 90th percentile
-- param:   alike = 3                   -- requests that make a constant
-- param:   dense_share = 0.6           -- of what lies four times as far around that lies as near
-- param:   reach = 4                   -- so many times the spread away a request still belongs to it
-- param:   region_ns = 400000000       -- no path on Earth takes longer there and back
-- param:   steady_share = 0.02       -- and what is beyond that and varies by less is no crowded path either
-- param:   told_share = 0.15           -- clocks known to this share of the excess tell the ways apart
-- param:   one_way_share = 0.75        -- of the excess that passes before the server begins: no path is so lopsided
-- param:   mostly = 0.25             -- of a route's long ones: fewer that are alike are the edge of something else
-- param:   round_ns = 12000000         -- timers are set to round numbers; overhead is less than this
-- param:   round_share = 0.005         -- or than this share of them
-- returns: request_key BIGINT          -- the request
-- returns: start_ns BIGINT             -- its start, ns UTC
-- returns: route VARCHAR               -- path taken; empty = not told
-- returns: hop VARCHAR                 -- between which vantages most of it passed
-- returns: excess_ns BIGINT            -- its own time outside beyond the usual, ns
-- returns: e2e_ns BIGINT               -- end to end, ns
-- returns: constant_ns BIGINT          -- median of those that are alike, ns
-- returns: round_timer_ns BIGINT       -- the round number that it is, ns; NULL = none
-- returns: alike BIGINT                -- how many are alike
-- returns: share_ratio DOUBLE          -- of the requests of this route meanwhile
-- returns: before_ratio DOUBLE         -- part that passed before the server began; NULL = clocks do not tell
-- returns: is_fixed BOOLEAN            -- it is a timer, not a slow path
WITH path AS (
  SELECT
    count(*) AS usual_ones,
    least($most_ns, greatest($least_ns, coalesce($spread_factor * (
      percentile_cont(0.9) WITHIN GROUP (ORDER BY network_ns)
        - percentile_cont(0.1) WITHIN GROUP (ORDER BY network_ns)
    ), CAST(0 AS DOUBLE)))) AS tolerance_ns
  FROM latency_outside
  WHERE NOT is_late
),
long_ones AS (
  SELECT
    o.request_key, o.start_ns, coalesce(o.route, '') AS route, o.hop, o.e2e_ns, o.network_ns,
    -- Where all are late, nothing tells what the path itself takes.
    CASE WHEN p.usual_ones = 0 THEN o.network_ns ELSE o.network_excess_ns END AS excess_ns,
    o.network_excess_ns / p.tolerance_ns AS place, p.usual_ones
  FROM latency_outside AS o
  JOIN latency_outside_crowd AS q ON o.request_key = q.request_key
  CROSS JOIN path AS p
  WHERE o.is_late AND NOT o.is_held AND NOT q.queues
),
crowded AS (
  SELECT
    *,
    count(*) OVER (PARTITION BY route, hop ORDER BY place
      RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS close_by,
    count(*) OVER (PARTITION BY route, hop ORDER BY place
      RANGE BETWEEN 4 PRECEDING AND 4 FOLLOWING) AS around
  FROM long_ones
),
core AS (
  SELECT
    *,
    place - lag(place) OVER (PARTITION BY route, hop ORDER BY place, request_key) AS since
  FROM crowded
  WHERE close_by >= $alike AND close_by >= $dense_share * around
),
grouped AS (
  SELECT
    *,
    SUM(CASE WHEN since <= 1 THEN 0 ELSE 1 END)
      OVER (PARTITION BY route, hop ORDER BY place, request_key) AS cluster
  FROM core
),
clusters AS (
  SELECT
    g.route, g.hop, g.cluster, count(*) AS alike, min(g.usual_ones) AS usual_ones, min(g.start_ns) AS first_ns,
    max(g.start_ns) AS last_ns,
    CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY g.excess_ns) AS BIGINT) AS constant_ns,
    percentile_cont(0.9) WITHIN GROUP (ORDER BY g.excess_ns)
      - percentile_cont(0.1) WITHIN GROUP (ORDER BY g.excess_ns) AS spread_ns,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY g.place) AS at_place,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY
      CASE WHEN w.loose_ns <= $told_share * g.excess_ns
          AND w.back_ns IS NOT NULL
        THEN CAST(w.out_ns AS DOUBLE) / greatest(w.out_ns + greatest(w.back_ns, 0), g.network_ns) END)
      AS before_ratio
  FROM grouped AS g
  LEFT JOIN latency_offset AS w ON g.request_key = w.request_key AND w.out_ns > 0
  GROUP BY g.route, g.hop, g.cluster
),
stepped AS (
  SELECT
    *,
    -- People set timers to quarters and halves of a second, then to whole and to five seconds.
    CASE
      WHEN constant_ns < 700000000 THEN 250000000
      WHEN constant_ns < 4250000000 THEN 500000000
      WHEN constant_ns < 12500000000 THEN 1000000000
      ELSE 5000000000
    END AS step_ns
  FROM clusters
),
timed AS (
  SELECT
    *,
    constant_ns - round(CAST(constant_ns AS DOUBLE) / step_ns) * step_ns AS over_ns,
    nullif(CAST(round(CAST(constant_ns AS DOUBLE) / step_ns) AS BIGINT) * step_ns, 0) AS nearest_ns
  FROM stepped
),
rounded AS (
  SELECT
    *,
    CASE
      WHEN usual_ones = 0 AND over_ns >= 0 AND over_ns <= $first_ns THEN nearest_ns
      WHEN usual_ones > 0 AND abs(over_ns) <= greatest($round_ns, $round_share * constant_ns)
        THEN nearest_ns
    END AS round_timer_ns
  FROM timed
),
meanwhile AS (
  SELECT t.route, t.hop, t.cluster, count(*) AS requests
  FROM rounded AS t
  JOIN latency_outside AS o
    ON t.route = coalesce(o.route, '') AND o.start_ns >= t.first_ns AND o.start_ns <= t.last_ns
  GROUP BY t.route, t.hop, t.cluster
),
weighed AS (
  SELECT t.*, CAST(t.alike AS DOUBLE) / m.requests AS share_ratio
  FROM rounded AS t
  JOIN meanwhile AS m ON t.route = m.route AND t.hop = m.hop AND t.cluster = m.cluster
),
-- What lies a little further out belongs to the constant that is nearest.
assigned AS (
  SELECT
    l.*, w.cluster,
    row_number() OVER (
      PARTITION BY l.request_key ORDER BY abs(l.place - w.at_place), w.cluster
    ) AS choice
  FROM long_ones AS l
  JOIN rounded AS w
    ON l.route = w.route AND l.hop = w.hop AND abs(l.place - w.at_place) <= $reach
),
judged AS (
  SELECT
    g.request_key, g.start_ns, g.route, g.hop,
    CASE WHEN w.usual_ones = 0 AND w.round_timer_ns IS NOT NULL
      THEN g.excess_ns - CAST(w.over_ns AS BIGINT) ELSE g.excess_ns END AS excess_ns,
    g.e2e_ns, w.constant_ns, w.round_timer_ns, w.alike, w.share_ratio, w.before_ratio,
    CASE
      WHEN w.before_ratio < $one_way_share THEN FALSE
      WHEN w.before_ratio IS NOT NULL OR w.round_timer_ns IS NOT NULL THEN TRUE
      WHEN w.constant_ns < $region_ns THEN FALSE
      -- A path that is crowded takes longer than the Earth is wide, but never the same time.
      WHEN w.usual_ones = 0
        THEN w.constant_ns >= 2 * $region_ns OR w.spread_ns <= $steady_share * w.constant_ns
      ELSE w.share_ratio < 0.9 OR g.hop LIKE 'gateway%'
    END AS is_timer
  FROM assigned AS g
  JOIN weighed AS w ON g.route = w.route AND g.hop = w.hop AND g.cluster = w.cluster
  WHERE g.choice = 1
),
routes AS (
  SELECT l.route, l.hop, count(*) AS requests, count(*) FILTER (WHERE j.is_timer) AS timed
  FROM long_ones AS l
  LEFT JOIN judged AS j ON l.request_key = j.request_key
  GROUP BY l.route, l.hop
)
SELECT
  j.request_key, j.start_ns, j.route, j.hop, j.excess_ns, j.e2e_ns, j.constant_ns,
  j.round_timer_ns, j.alike, j.share_ratio, j.before_ratio,
  j.is_timer AND r.timed >= $mostly * r.requests AS is_fixed
FROM judged AS j
JOIN routes AS r ON j.route = r.route AND j.hop = r.hop
