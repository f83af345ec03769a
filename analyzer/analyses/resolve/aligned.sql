-- When each vantage saw each request begin, on the reference clock: its own stamp less what its clock
-- is ahead, where that is ruled out to be nothing. Only for putting things side by side: durations
-- never come from here.
-- grain:   one row a request row with a time
-- needs:   resolve_told, resolve_clock_of, resolve_clock, request
-- returns: row_id BIGINT             -- row of resolve_told
-- returns: vantage VARCHAR           -- client, gateway, provider or engine
-- returns: clock VARCHAR             -- the clock that stamped it
-- returns: start_ns BIGINT           -- start on its own clock, ns
-- returns: shift_ns BIGINT           -- what was taken off, ns; 0 = nothing
-- returns: aligned_ns BIGINT         -- start on the reference clock, ns
-- returns: loose_ns BIGINT           -- it may be this much off either way, ns; NULL = clocks unknown
WITH stamped AS (
  SELECT
    t.row_id, t.vantage, c.clock, t.start_ns, k.state, k.differs, k.offset_ns, k.low_ns, k.high_ns,
    k.drift_ppm, k.at_ns, k.drift_low_ppm, k.drift_high_ppm
  FROM resolve_told AS t
  JOIN request AS r
    ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
  JOIN resolve_clock_of AS c
    ON t.source_id = c.source_id AND t.vantage = c.vantage
      AND c.deployment
        = CASE WHEN t.vantage IN ('engine', 'provider') THEN coalesce(r.deployment, '') ELSE '' END
  JOIN resolve_clock AS k
    ON c.clock = k.clock AND (k.from_ns IS NULL OR t.start_ns >= k.from_ns)
      AND (k.until_ns IS NULL OR t.start_ns < k.until_ns)
  WHERE t.start_ns IS NOT NULL
),
shifted AS (
  SELECT
    *,
    CASE WHEN differs
      THEN offset_ns + CAST(round(drift_ppm * (start_ns - at_ns) / 1000000) AS BIGINT) ELSE 0
    END AS shift_ns
  FROM stamped
)
SELECT
  row_id, vantage, clock, start_ns, shift_ns, start_ns - shift_ns AS aligned_ns,
  CASE
    WHEN state = 'reference' THEN CAST(0 AS BIGINT)
    WHEN state = 'known' THEN
      greatest(
        abs(high_ns - CASE WHEN differs THEN offset_ns ELSE 0 END),
        abs(CASE WHEN differs THEN offset_ns ELSE 0 END - low_ns)
      ) + CAST(round(abs(start_ns - at_ns) / 1000000 * greatest(
        drift_high_ppm - CASE WHEN differs THEN drift_ppm ELSE 0 END,
        CASE WHEN differs THEN drift_ppm ELSE 0 END - drift_low_ppm
      )) AS BIGINT)
  END AS loose_ns
FROM shifted
