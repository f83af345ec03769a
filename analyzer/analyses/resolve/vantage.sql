-- One request as one vantage tells it, completed over that vantage's sources.
-- grain:   one row a request and vantage
-- needs:   resolve_instance, resolve_told, request
-- returns: request_key BIGINT           -- the request
-- returns: vantage VARCHAR              -- client, gateway, provider or engine
-- returns: vantage_rank INTEGER         -- 1 outermost to 4 innermost
-- returns: rows_told BIGINT             -- source rows behind it
-- returns: timing VARCHAR               -- stream, stated or stamps: the best any of them has
-- returns: start_ns BIGINT              -- start on that vantage's clock, ns
-- returns: hold_ns BIGINT               -- client wait before sending, ns
-- returns: queue_ns BIGINT              -- wait for the model server, ns
-- returns: load_ns BIGINT               -- model load, part of queue, ns
-- returns: prefill_ns BIGINT            -- prompt processing, ns
-- returns: decode_ns BIGINT             -- first to last token, ns
-- returns: frontend_ns BIGINT           -- front end inside the server, ns
-- returns: ttft_ns BIGINT               -- time to first token, ns
-- returns: first_role_ns BIGINT         -- offset of a role chunk before the first token, ns
-- returns: first_reasoning_ns BIGINT    -- offset of the first reasoning token, ns
-- returns: first_content_ns BIGINT      -- offset of the first visible token, ns
-- returns: e2e_ns BIGINT                -- end to end, ns
-- returns: chunks BIGINT                -- chunks that carried tokens
-- returns: chunk_chars BIGINT           -- characters over them
-- returns: first_chunk_chars BIGINT     -- characters of the first
-- returns: first_chunk_tokens BIGINT    -- tokens of the first, where told
-- returns: streamed BOOLEAN             -- answered as a stream
-- returns: output_visible_tokens BIGINT -- output the user sees, as this vantage tells it
-- returns: output_reasoning_tokens BIGINT -- output spent on reasoning, as this vantage tells it
-- returns: upstream_calls BIGINT        -- gateway: calls of an upstream behind it
-- returns: upstream_failed_ns BIGINT    -- gateway: in calls that failed before the last, ns
-- returns: left_early BOOLEAN           -- it ended in an error, a timeout or an abort
WITH told AS (
  SELECT i.request_key, t.vantage, t.vantage_rank, t.priority, t.start_ns AS wall_ns,
    -- A part that is stated beats a difference of stamps.
    CASE WHEN r.timing = 'stated' THEN t.priority - 2000000000000000000 ELSE t.priority END
      AS stated_first,
    CASE WHEN t.unfinished THEN t.priority + 4000000000000000000 ELSE t.priority END
      AS finished_first,
    r.*
  FROM resolve_instance AS i
  JOIN resolve_told AS t ON i.row_id = t.row_id
  JOIN request AS r
    ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
)
SELECT
  request_key,
  vantage,
  min(vantage_rank) AS vantage_rank,
  count(*) AS rows_told,
  min_by(timing, priority) AS timing,
  min_by(wall_ns, priority) FILTER (WHERE wall_ns IS NOT NULL) AS start_ns,
  min_by(hold_ns, priority) FILTER (WHERE hold_ns IS NOT NULL) AS hold_ns,
  min_by(queue_ns, stated_first) FILTER (WHERE queue_ns IS NOT NULL) AS queue_ns,
  min_by(load_ns, stated_first) FILTER (WHERE load_ns IS NOT NULL) AS load_ns,
  min_by(prefill_ns, stated_first) FILTER (WHERE prefill_ns IS NOT NULL) AS prefill_ns,
  min_by(decode_ns, stated_first) FILTER (WHERE decode_ns IS NOT NULL) AS decode_ns,
  min_by(frontend_ns, stated_first) FILTER (WHERE frontend_ns IS NOT NULL) AS frontend_ns,
  min_by(ttft_ns, priority) FILTER (WHERE ttft_ns IS NOT NULL) AS ttft_ns,
  min_by(first_role_ns, priority) FILTER (WHERE first_role_ns IS NOT NULL) AS first_role_ns,
  min_by(first_reasoning_ns, priority) FILTER (WHERE first_reasoning_ns IS NOT NULL)
    AS first_reasoning_ns,
  min_by(first_content_ns, priority) FILTER (WHERE first_content_ns IS NOT NULL)
    AS first_content_ns,
  min_by(e2e_ns, priority) FILTER (WHERE e2e_ns IS NOT NULL) AS e2e_ns,
  min_by(chunks, priority) FILTER (WHERE chunks IS NOT NULL) AS chunks,
  min_by(chunk_chars, priority) FILTER (WHERE chunk_chars IS NOT NULL) AS chunk_chars,
  min_by(first_chunk_chars, priority) FILTER (WHERE first_chunk_chars IS NOT NULL)
    AS first_chunk_chars,
  min_by(first_chunk_tokens, priority) FILTER (WHERE first_chunk_tokens IS NOT NULL)
    AS first_chunk_tokens,
  min_by(streamed, priority) FILTER (WHERE streamed IS NOT NULL) AS streamed,
  min_by(output_visible_tokens, finished_first) FILTER (WHERE output_visible_tokens IS NOT NULL)
    AS output_visible_tokens,
  min_by(output_reasoning_tokens, finished_first) FILTER (WHERE output_reasoning_tokens IS NOT NULL)
    AS output_reasoning_tokens,
  min_by(upstream_calls, priority) FILTER (WHERE upstream_calls IS NOT NULL) AS upstream_calls,
  min_by(upstream_failed_ns, priority) FILTER (WHERE upstream_failed_ns IS NOT NULL)
    AS upstream_failed_ns,
  count(error) > 0 OR coalesce(max(status), 0) >= 400
    OR count(*) FILTER (WHERE finish_reason IN ('abort', 'cancelled', 'timeout', 'error')) > 0
    AS left_early
FROM told
GROUP BY request_key, vantage
