-- Every TTFT that is told, held against what the stream itself shows: a role chunk is no token, and
-- the first visible token is not the first one when reasoning came before. Engines count tokens and
-- are not suspected.
-- grain:   one row a request row that tells a TTFT
-- needs:   resolve_instance, resolve_told, resolve_vantage, request
-- param:   nearer = 0.5           -- a milestone is meant when it is twice as near as the true token
-- param:   tolerance_ns = 5000000 -- engine and front end read two clocks of one machine
-- param:   apart_ns = 20000000    -- closer than this to the true first token is no misreading
-- returns: request_key BIGINT     -- the request
-- returns: row_id BIGINT          -- row that tells it
-- returns: vantage VARCHAR        -- whose value it is
-- returns: ttft_ns BIGINT         -- the value, ns
-- returns: stream_ttft_ns BIGINT  -- the true one where a stream shows it, else the server's, ns
-- returns: reading VARCHAR        -- true, role, visible, whole (the end), early (before the server's own) or unchecked (no stream, or too long a way, to tell)
-- returns: error_ns BIGINT        -- told, with the way to the client, minus true, ns
WITH shown AS (
  SELECT
    request_key, e2e_ns, first_role_ns, first_reasoning_ns, first_content_ns,
    CASE
      -- Reasoning that was not streamed hides where the first token was.
      WHEN first_reasoning_ns IS NULL AND output_reasoning_tokens > 0 THEN NULL
      WHEN first_reasoning_ns IS NULL THEN first_content_ns
      WHEN first_content_ns IS NULL THEN first_reasoning_ns
      ELSE least(first_reasoning_ns, first_content_ns)
    END AS first_token_ns
  FROM resolve_vantage
  WHERE vantage = 'client' AND timing = 'stream'
),
served AS (
  SELECT request_key, ttft_ns AS server_ttft_ns FROM resolve_vantage WHERE vantage = 'engine'
),
told AS (
  SELECT
    i.request_key, t.row_id, t.vantage, r.ttft_ns, r.timing, r.e2e_ns AS told_e2e_ns,
    s.first_role_ns, s.first_content_ns, s.first_reasoning_ns, s.first_token_ns, e.server_ttft_ns,
    -- The way from that vantage to the client, which its own value does not hold.
    CASE
      WHEN t.vantage = 'client' THEN 0
      WHEN s.e2e_ns >= r.e2e_ns THEN s.e2e_ns - r.e2e_ns
      WHEN r.e2e_ns IS NOT NULL THEN 0
    END AS way_ns
  FROM resolve_instance AS i
  JOIN resolve_told AS t ON i.row_id = t.row_id
  JOIN request AS r
    ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
  LEFT JOIN shown AS s ON i.request_key = s.request_key
  LEFT JOIN served AS e ON i.request_key = e.request_key
  WHERE r.ttft_ns IS NOT NULL
),
held_against AS (
  SELECT
    *,
    abs(ttft_ns + coalesce(way_ns, 0) - first_token_ns) AS off_true_ns,
    abs(ttft_ns + coalesce(way_ns, 0) - first_role_ns) AS off_role_ns,
    abs(ttft_ns + coalesce(way_ns, 0) - first_content_ns) AS off_visible_ns
  FROM told
),
judged AS (
  SELECT
    *,
    CASE
      WHEN timing = 'stream' OR vantage = 'engine' THEN 'true'
      WHEN ttft_ns < server_ttft_ns - $tolerance_ns THEN 'early'
      WHEN first_token_ns IS NULL THEN 'unchecked'
      WHEN off_true_ns <= greatest($apart_ns, first_token_ns / 20) THEN 'true'
      WHEN first_role_ns < first_token_ns AND off_role_ns < $nearer * off_true_ns
        -- A way that varies by no more than its length could have made that; where the way is not
        -- told, the role chunk itself came over it in no more time than this.
        THEN CASE WHEN off_true_ns > coalesce(way_ns, first_role_ns) THEN 'role' ELSE 'unchecked' END
      WHEN first_reasoning_ns < first_content_ns AND off_visible_ns < $nearer * off_true_ns
        -- The client has nothing before who stands nearer the server: only what is later is wrong.
        THEN CASE WHEN ttft_ns > first_token_ns THEN 'visible' ELSE 'unchecked' END
      -- Who does not stream has the answer, and so its first token, at its end.
      WHEN abs(ttft_ns - told_e2e_ns) <= greatest($apart_ns, told_e2e_ns / 50)
        THEN CASE WHEN ttft_ns > first_token_ns THEN 'whole' ELSE 'unchecked' END
      ELSE 'true'
    END AS reading
  FROM held_against
)
SELECT
  request_key, row_id, vantage, ttft_ns,
  coalesce(first_token_ns, CASE WHEN reading = 'early' THEN server_ttft_ns END) AS stream_ttft_ns,
  reading,
  ttft_ns + coalesce(way_ns, 0)
    - coalesce(first_token_ns, CASE WHEN reading = 'early' THEN server_ttft_ns END) AS error_ns
FROM judged
