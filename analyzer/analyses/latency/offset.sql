-- Requests that two clocks stamped: how far these are apart, and what is left between client and
-- server once that is taken off. The ways are for the eye and for logs that tell no durations: modelled,
-- with what they can be off by. Network in the segments is a difference of durations, never this.
-- grain:   one row a request that two clocks stamped
-- needs:   resolve_instance, resolve_aligned, resolve_told, resolve_clock, resolve_request, latency_segment, resolve_vantage, resolve_ttft
-- param:   trifle_ns = 5000000           -- one machine's own stamps are this far apart
-- returns: request_key BIGINT            -- the request
-- returns: start_ns BIGINT               -- its start on the reference clock, ns
-- returns: outer_clock VARCHAR           -- the clock nearest the user
-- returns: inner_clock VARCHAR           -- the clock nearest the engine
-- returns: apart_ns BIGINT               -- server's start less the client's, stamps as they are, ns
-- returns: offset_ns BIGINT              -- part of it that is the clocks', ns
-- returns: loose_ns BIGINT               -- that may be this much off either way, ns; NULL = not known
-- returns: zone_ns BIGINT                -- part of it that is a time zone, ns
-- returns: out_ns BIGINT                 -- the way to the server that is left, ns
-- returns: back_ns BIGINT                -- the way of the first token back that is left, ns; NULL = no first token to hold against another
-- returns: whole_ns BIGINT               -- time to first token at the server, else at the client, else the whole, ns
-- returns: differs BOOLEAN               -- the clocks are apart beyond what is uncertain, and a trifle
WITH rows_of AS (
  SELECT
    i.request_key, a.row_id, a.clock, a.start_ns, a.shift_ns, a.loose_ns, k.zone_ns, a.vantage,
    row_number() OVER (PARTITION BY i.request_key ORDER BY t.vantage_rank, t.priority) AS from_outside,
    row_number() OVER (PARTITION BY i.request_key ORDER BY t.vantage_rank DESC, t.priority)
      AS from_inside
  FROM resolve_instance AS i
  JOIN resolve_aligned AS a ON i.row_id = a.row_id
  JOIN resolve_told AS t ON i.row_id = t.row_id
  JOIN resolve_clock AS k
    ON a.clock = k.clock AND (k.from_ns IS NULL OR a.start_ns >= k.from_ns)
      AND (k.until_ns IS NULL OR a.start_ns < k.until_ns)
),
misread AS (
  SELECT DISTINCT request_key, vantage
  FROM resolve_ttft
  WHERE reading NOT IN ('true', 'unchecked')
),
paired AS (
  SELECT
    o.request_key, o.clock AS outer_clock, i.clock AS inner_clock, o.vantage AS outer_vantage,
    i.vantage AS inner_vantage,
    i.start_ns - o.start_ns AS apart_ns,
    i.shift_ns - o.shift_ns AS offset_ns,
    i.loose_ns + o.loose_ns AS loose_ns,
    i.zone_ns - o.zone_ns AS zone_ns
  FROM rows_of AS o
  JOIN rows_of AS i ON o.request_key = i.request_key AND i.from_inside = 1
  WHERE o.from_outside = 1 AND o.clock <> i.clock AND o.vantage <> i.vantage
)
SELECT
  b.request_key, r.start_ns, b.outer_clock, b.inner_clock, b.apart_ns, b.offset_ns, b.loose_ns,
  b.zone_ns,
  b.apart_ns - b.offset_ns AS out_ns,
  CASE WHEN m.request_key IS NULL THEN
    o.ttft_ns - CASE WHEN n.timing = 'stream' AND n.vantage = 'engine'
      THEN coalesce(n.ttft_ns, 0) ELSE n.ttft_ns END - (b.apart_ns - b.offset_ns)
  END AS back_ns,
  coalesce(s.server_ttft_ns, s.ttft_ns, s.e2e_ns) AS whole_ns,
  coalesce(abs(b.offset_ns) - b.loose_ns > 0 AND abs(b.offset_ns) >= $trifle_ns, FALSE) AS differs
FROM paired AS b
JOIN resolve_request AS r ON b.request_key = r.request_key
JOIN latency_segment AS s ON b.request_key = s.request_key
LEFT JOIN resolve_vantage AS o
  ON b.request_key = o.request_key AND b.outer_vantage = o.vantage
LEFT JOIN resolve_vantage AS n
  ON b.request_key = n.request_key AND b.inner_vantage = n.vantage
LEFT JOIN misread AS m
  ON b.request_key = m.request_key AND b.inner_vantage = m.vantage
