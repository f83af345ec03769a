-- Which requests share a model server, as far as they say, and how its clock stands to that of the
-- streams: by the first tokens that both sides stamped.
-- grain:   one row a deployment label, with one for what has none
-- needs:   resolve_request, resolve_vantage, stream_pace
-- returns: deployment VARCHAR            -- label of the requests; empty = none
-- returns: unit VARCHAR                  -- server: the label, or empty where the case has one at most
-- returns: shift_ns BIGINT               -- to add to its clock's times to get the streams' ones, ns
-- returns: pairs BIGINT                  -- requests that tell it
WITH stamped AS (
  SELECT
    coalesce(r.deployment, '') AS deployment,
    coalesce(p.first_ns, c.start_ns + c.ttft_ns) AS outer_ns,
    coalesce(q.first_ns, e.start_ns + e.ttft_ns, e.start_ns + e.queue_ns + e.prefill_ns) AS inner_ns
  FROM resolve_request AS r
  LEFT JOIN resolve_vantage AS c ON r.request_key = c.request_key AND c.vantage = 'client'
  LEFT JOIN resolve_vantage AS e ON r.request_key = e.request_key AND e.vantage = 'engine'
  LEFT JOIN stream_pace AS p ON r.request_key = p.request_key AND p.vantage = 'client'
  LEFT JOIN stream_pace AS q ON r.request_key = q.request_key AND q.vantage = 'engine'
),
told AS (
  SELECT deployment, outer_ns - inner_ns AS apart_ns
  FROM stamped
  WHERE outer_ns IS NOT NULL AND inner_ns IS NOT NULL
),
overall AS (
  SELECT CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY apart_ns) AS BIGINT) AS shift_ns FROM told
),
own AS (
  SELECT
    deployment, count(*) AS pairs,
    CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY apart_ns) AS BIGINT) AS shift_ns
  FROM told
  GROUP BY deployment
),
labels AS (
  SELECT '' AS deployment
  UNION
  SELECT deployment FROM resolve_request WHERE deployment IS NOT NULL
),
counted AS (
  SELECT deployment, count(*) FILTER (WHERE deployment <> '') OVER () AS named FROM labels
)
SELECT
  n.deployment,
  CASE WHEN n.named > 1 THEN n.deployment ELSE '' END AS unit,
  coalesce(o.shift_ns, a.shift_ns, 0) AS shift_ns,
  coalesce(o.pairs, 0) AS pairs
FROM counted AS n
CROSS JOIN overall AS a
LEFT JOIN own AS o ON n.deployment = o.deployment
