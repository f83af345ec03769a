-- Parts of the way to the server that a log gives a name: look-up, connect and TLS of a new connection,
-- and a gateway's first call that failed.
-- grain:   one row a request and named part
-- needs:   resolve_instance, resolve_told, request, request_tag
-- returns: request_key BIGINT       -- the request
-- returns: part VARCHAR             -- dns, connect, tls or first call
-- returns: part_ns BIGINT           -- how long it took, ns; NULL = it is told, but not how long
WITH told AS (
  SELECT i.request_key, t.source_id, t.record, r.dns_ns, r.connect_ns, r.tls_ns
  FROM resolve_instance AS i
  JOIN resolve_told AS t ON i.row_id = t.row_id
  JOIN request AS r
    ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
),
parts AS (
  SELECT request_key, 'dns' AS part, dns_ns AS part_ns FROM told WHERE dns_ns > 0
  UNION ALL
  SELECT request_key, 'connect', connect_ns FROM told WHERE connect_ns > 0
  UNION ALL
  SELECT request_key, 'tls', tls_ns FROM told WHERE tls_ns > 0
  UNION ALL
  SELECT t.request_key, 'first call', CAST(NULL AS BIGINT)
  FROM told AS t
  JOIN request_tag AS g
    ON t.source_id = g.source_id AND t.record = g.record AND g.name = 'first_failure'
)
SELECT request_key, part, max(part_ns) AS part_ns
FROM parts
GROUP BY request_key, part
