-- How far each clock of the case is ahead of the reference clock, from requests that both stamped,
-- bounded by causality: a line of offset and drift within all bounds, cut where a clock jumped.
-- A time t of a clock is t - offset_ns - drift_ppm * (t - at_ns) / 1000000 on the reference clock;
-- that is worth doing where differs holds. Durations need none of this.
-- grain:   one row a clock and stretch of time between two of its jumps
-- needs:   resolve_clock_of, resolve_clock_pair
-- python:  clock_fit
-- param:   most_rows = 200000             -- pairs that are handed on; more do not occur but for many files
-- returns: clock VARCHAR                  -- its name: vantage and file
-- returns: vantage VARCHAR                -- client, gateway, provider or engine
-- returns: state VARCHAR                  -- reference, known, unsteady (no line fits) or unpaired
-- returns: from_ns BIGINT                 -- stretch begins, ns on this clock; NULL = always
-- returns: until_ns BIGINT                -- stretch ends before, ns on this clock; NULL = never
-- returns: at_ns BIGINT                   -- where offset_ns holds, ns on this clock
-- returns: offset_ns BIGINT               -- ahead of the reference by, ns; NULL = cannot be said
-- returns: low_ns BIGINT                  -- at least, ns
-- returns: high_ns BIGINT                 -- at most, ns
-- returns: drift_ppm DOUBLE               -- change of the offset, ppm; 0 where none can be told
-- returns: drift_low_ppm DOUBLE           -- at least, ppm
-- returns: drift_high_ppm DOUBLE          -- at most, ppm
-- returns: differs BOOLEAN                -- zero offset and no drift are ruled out
-- returns: zone_ns BIGINT                 -- part of the offset that is a time zone, ns; 0 = none
-- returns: step_ns BIGINT                 -- jump at from_ns, ns; NULL = none
-- returns: pairs BIGINT                   -- requests that bound it
-- returns: refused BIGINT                 -- pairs looked at that fit nowhere: other requests under one id
-- returns: grain_ns BIGINT                -- its stamps are cut to this, ns
SELECT
  'clock' AS kind, clock, vantage, CAST(NULL AS VARCHAR) AS other,
  min(first_ns) AS time_ns, max(last_ns) AS low_ns, max(grain_ns) AS high_ns,
  CAST(SUM(rows_told) AS BIGINT) AS pairs, min(vantage_rank) AS vantage_rank
FROM resolve_clock_of
GROUP BY clock, vantage
UNION ALL
SELECT 'pair', inner_clock, '', outer_clock, time_ns, low_ns, high_ns, pairs, 0
FROM resolve_clock_pair
ORDER BY 1, 2, 4, 5, 6, 7
LIMIT $most_rows
