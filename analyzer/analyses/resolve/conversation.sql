-- What each request says of its conversation: whose it is, and how it used the prompt cache. Its tier
-- and what it wrote are those of resolve_request, so that one source is believed throughout.
-- grain:   one row a request
-- needs:   resolve_request, resolve_instance, resolve_told, request, request_tag
-- returns: request_key BIGINT                 -- the request
-- returns: session_id VARCHAR                 -- thread of calls, as told: a conversation, or one agent of it
-- returns: parent_session_id VARCHAR          -- thread that began this one
-- returns: is_sidechain BOOLEAN               -- every source calls it a sub-agent's or side call
-- returns: is_compacted BOOLEAN               -- its history was compacted just before, as told
-- returns: clock VARCHAR                      -- wall, or the source whose own clock tells its time
-- returns: at_ns BIGINT                       -- its start on that clock, ns
-- returns: end_ns BIGINT                      -- last moment any source tells of, on that clock, ns
-- returns: tier VARCHAR                       -- service tier that was billed
-- returns: write_short_tokens BIGINT          -- written to the short-lived cache
-- returns: write_long_tokens BIGINT           -- written to the long-lived cache
-- returns: write_unknown_tokens BIGINT        -- written to a cache of unknown lifetime
-- returns: diagnosis VARCHAR                  -- the provider's own reason for a cache miss
-- returns: tools_count BIGINT                 -- tool definitions sent
-- returns: tools_chars BIGINT                 -- characters of the tool definitions
-- returns: system_chars BIGINT                -- characters of the system prompt
-- returns: payload_hash VARCHAR               -- hash of the request body
-- returns: block_row BIGINT                   -- row of resolve_told whose prompt blocks stand for it; NULL = none
-- returns: block_tokens BIGINT                -- tokens such a block covers
WITH compacted AS (
  SELECT source_id, record
  FROM request_tag
  WHERE name = 'compaction'
  GROUP BY source_id, record
),
told AS (
  SELECT
    i.request_key, i.row_id, coalesce(t.end_ns - t.start_ns, r.e2e_ns) AS length_ns, r.*,
    c.record IS NOT NULL AS has_boundary
  FROM resolve_instance AS i
  JOIN resolve_told AS t ON i.row_id = t.row_id
  JOIN request AS r
    ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
  LEFT JOIN compacted AS c ON t.source_id = c.source_id AND t.record = c.record
),
merged AS (
  SELECT
    request_key,
    -- A side chain's copy of an answer belongs to where it came from.
    min_by(session_id, row_id) FILTER (WHERE NOT coalesce(is_sidechain, FALSE)
      AND session_id IS NOT NULL) AS main_session_id,
    min_by(session_id, row_id) FILTER (WHERE session_id IS NOT NULL) AS any_session_id,
    min_by(parent_session_id, row_id) FILTER (WHERE parent_session_id IS NOT NULL)
      AS parent_session_id,
    min(CASE WHEN is_sidechain THEN 1 ELSE 0 END) = 1 AS is_sidechain,
    max(CASE WHEN has_boundary THEN 1 ELSE 0 END) = 1 AS is_compacted,
    min_by(start_ns, row_id) FILTER (WHERE start_ns IS NOT NULL) AS began_ns,
    max(length_ns) AS length_ns,
    min_by(cache_diagnosis, row_id) FILTER (WHERE cache_diagnosis IS NOT NULL) AS diagnosis,
    max(tools_count) AS tools_count,
    max(tools_chars) AS tools_chars,
    max(system_chars) AS system_chars,
    min_by(payload_hash, row_id) FILTER (WHERE payload_hash IS NOT NULL) AS payload_hash,
    min(row_id) FILTER (WHERE prefix_block_tokens > 0) AS block_row,
    min_by(prefix_block_tokens, row_id) FILTER (WHERE prefix_block_tokens > 0) AS block_tokens
  FROM told
  GROUP BY request_key
)
SELECT
  m.request_key, coalesce(m.main_session_id, m.any_session_id) AS session_id,
  CASE WHEN m.parent_session_id <> coalesce(m.main_session_id, m.any_session_id)
    THEN m.parent_session_id END AS parent_session_id,
  m.is_sidechain, m.is_compacted,
  CASE WHEN q.start_ns IS NULL THEN q.source ELSE 'wall' END AS clock,
  coalesce(q.start_ns, m.began_ns) AS at_ns,
  coalesce(q.start_ns, m.began_ns) + coalesce(m.length_ns, 0) AS end_ns,
  q.service_tier AS tier, q.cache_write_short_tokens AS write_short_tokens,
  q.cache_write_long_tokens AS write_long_tokens,
  q.cache_write_unknown_tokens AS write_unknown_tokens, m.diagnosis, m.tools_count, m.tools_chars,
  m.system_chars, m.payload_hash, m.block_row, m.block_tokens
FROM merged AS m
JOIN resolve_request AS q ON m.request_key = q.request_key
