-- Steps of a model on a device: phase and batch as far as annotations tell them, and where the time
-- went from the end of the step before to its own. Work belongs to the step that launched it.
-- grain:   one row a device of a rank and step; a step without recorded work has no device
-- needs:   gpu_work, gpu_gap, gpu_mark, gpu_annotation, gpu_launch, gpu_replay, gpu_talk, gpu_anchor, gpu_training, resolve_gpu_rank
-- param:   lull = 5                      -- times the usual step: nothing was to be done in between
-- returns: rank_key BIGINT               -- rank of the trace
-- returns: capture BIGINT                -- capture
-- returns: place VARCHAR                 -- what the rank is called
-- returns: device BIGINT                 -- device of that rank; NULL = no work was recorded
-- returns: step BIGINT                   -- number within the rank
-- returns: name VARCHAR                  -- annotation; NULL = inferred
-- returns: told_by VARCHAR               -- annotation, or inferred: graph, sampling, period
-- returns: engine VARCHAR                -- whose annotation
-- returns: phase VARCHAR                 -- prefill, decode, mixed, training; NULL = not told
-- returns: prefill_requests BIGINT       -- requests in prefill
-- returns: prefill_tokens BIGINT         -- their new tokens
-- returns: decode_requests BIGINT        -- requests in decode
-- returns: decode_tokens BIGINT          -- tokens computed of them: drafts count, kept or not
-- returns: kv_tokens BIGINT              -- cached tokens that the step reads
-- returns: is_drafted BOOLEAN            -- speculation: it makes or checks drafts
-- returns: start_ns BIGINT               -- end of the device work before it, ns by the trace's clock
-- returns: end_ns BIGINT                 -- end of its own, ns
-- returns: step_ns BIGINT                -- its time on the device: busy and idle, ns
-- returns: token_ns DOUBLE               -- decode: time per token of each request, ns; at least, where drafts may be dropped
-- returns: work BIGINT                   -- kernels, copies and sets
-- returns: launches BIGINT               -- launches of kernels and graphs
-- returns: graph_launches BIGINT         -- of them replays of graphs
-- returns: lost_launches BIGINT          -- of them without recorded work, or with a part of it only
-- returns: busy_ns BIGINT                -- device busy, overlap counted once, ns
-- returns: overlap_ns BIGINT             -- durations beyond that, ns
-- returns: compute_ns BIGINT             -- something computes, ns
-- returns: comm_ns BIGINT                -- communication alone, ns
-- returns: copy_ns BIGINT                -- copies and sets alone, ns
-- returns: comm_wait_ns DOUBLE           -- of communication alone: waiting for the last rank, ns
-- returns: comm_transfer_ns DOUBLE       -- of communication alone: transfer, ns
-- returns: idle_ns BIGINT                -- device idle, ns
-- returns: launch_gap_ns BIGINT          -- of it: the next kernel was not launched yet, ns
-- returns: host_gap_ns BIGINT            -- of it: the host did something else first, ns
-- returns: device_gap_ns BIGINT          -- of it: launched, and not yet begun, ns
-- returns: unknown_gap_ns BIGINT         -- of it: before work whose launch is not in the trace, ns
-- returns: is_whole BOOLEAN              -- its begin and all its work are recorded
-- returns: is_lull BOOLEAN               -- much longer than others: there was nothing to do before it
WITH worked AS (
  SELECT
    rank_key, device, step, min(is_told) AS is_told, count(*) AS work,
    min(start_ns) AS first_ns, max(end_ns) AS end_ns, count(gap_ns) AS gaps,
    CAST(SUM(coalesce(gap_ns, 0)) AS BIGINT) AS idle_ns, CAST(SUM(busy_ns) AS BIGINT) AS busy_ns,
    CAST(SUM(end_ns - start_ns) AS BIGINT) AS all_ns, CAST(SUM(compute_ns) AS BIGINT) AS compute_ns,
    CAST(SUM(moved_ns) AS BIGINT) AS moved_ns, count(DISTINCT correlation) AS correlations,
    count(DISTINCT CASE WHEN is_graph THEN correlation END) AS graphs
  FROM gpu_work
  WHERE step IS NOT NULL
  GROUP BY rank_key, device, step
),
gap AS (
  SELECT
    rank_key, device, step,
    CAST(SUM(CASE WHEN cause = 'launch' THEN end_ns - start_ns ELSE 0 END) AS BIGINT) AS launch_gap_ns,
    CAST(SUM(CASE WHEN cause = 'host' THEN end_ns - start_ns ELSE 0 END) AS BIGINT) AS host_gap_ns,
    CAST(SUM(CASE WHEN cause = 'device' THEN end_ns - start_ns ELSE 0 END) AS BIGINT) AS device_gap_ns,
    CAST(SUM(CASE WHEN cause = 'unknown' THEN end_ns - start_ns ELSE 0 END) AS BIGINT) AS unknown_gap_ns
  FROM gpu_gap
  WHERE step IS NOT NULL
  GROUP BY rank_key, device, step
),
launched AS (
  SELECT
    l.rank_key, l.mark, count(*) AS launches, count(CASE WHEN l.is_graph THEN 1 END) AS graph_launches,
    count(CASE WHEN l.work = 0 OR NOT coalesce(r.is_covered, TRUE) THEN 1 END) AS lost_launches
  FROM gpu_launch AS l
  LEFT JOIN gpu_replay AS r ON l.rank_key = r.rank_key AND l.correlation = r.correlation
  WHERE l.is_kernel AND l.mark IS NOT NULL
  GROUP BY l.rank_key, l.mark
),
marked AS (
  SELECT m.rank_key, m.mark, m.name, m.start_ns, m.end_ns, l.launches, l.graph_launches, l.lost_launches
  FROM gpu_mark AS m
  JOIN launched AS l ON m.rank_key = l.rank_key AND m.mark = l.mark
),
how AS (
  SELECT rank_key, device, min(how) AS how FROM gpu_anchor GROUP BY rank_key, device
),
joined AS (
  SELECT
    coalesce(w.rank_key, m.rank_key) AS rank_key, w.device, coalesce(w.step, m.mark) AS step,
    CASE WHEN coalesce(w.is_told, TRUE) THEN 'annotation' ELSE concat('inferred: ', h.how) END AS told_by,
    h.how, w.step = max(w.step) OVER (PARTITION BY w.rank_key, w.device) AS is_last, m.name,
    coalesce(m.launches, w.correlations) AS launches,
    coalesce(m.graph_launches, w.graphs) AS graph_launches, coalesce(m.lost_launches, 0) AS lost_launches,
    w.work, w.first_ns, w.end_ns, w.gaps, w.idle_ns, w.busy_ns, w.all_ns, w.compute_ns, w.moved_ns
  FROM worked AS w
  FULL JOIN marked AS m ON w.rank_key = m.rank_key AND w.step = m.mark AND w.is_told
  LEFT JOIN how AS h ON w.rank_key = h.rank_key AND w.device = h.device
),
-- A step's lost launches are its rank's, whichever of its devices they were for.
before AS (
  SELECT
    rank_key, step, lag(max(lost_launches)) OVER (PARTITION BY rank_key ORDER BY step) AS lost_before
  FROM joined
  GROUP BY rank_key, step
),
known AS (
  SELECT
    j.*, a.engine, coalesce(a.phase, CASE WHEN n.rank_key IS NOT NULL THEN 'training' END) AS phase,
    a.prefill_requests, a.prefill_tokens, a.decode_requests, a.decode_tokens, a.kv_tokens,
    coalesce(a.is_drafted, FALSE) AS is_drafted,
    -- Before it ran what was not recorded: that time is not idle, and not its own.
    coalesce(b.lost_before, 0) AS lost_before
  FROM joined AS j
  JOIN before AS b ON j.rank_key = b.rank_key AND j.step = b.step
  LEFT JOIN gpu_annotation AS a ON j.name = a.name
  LEFT JOIN gpu_training AS n ON j.rank_key = n.rank_key
),
usual AS (
  SELECT
    rank_key, device, phase, percentile_cont(0.5) WITHIN GROUP (ORDER BY busy_ns + idle_ns) AS step_ns
  FROM known
  WHERE device IS NOT NULL
  GROUP BY rank_key, device, phase
)
SELECT
  j.rank_key, r.capture, r.place, j.device, j.step, j.name, j.told_by, j.engine, j.phase,
  j.prefill_requests, j.prefill_tokens, j.decode_requests, j.decode_tokens, j.kv_tokens, j.is_drafted,
  j.end_ns - j.busy_ns - j.idle_ns AS start_ns, j.end_ns, j.busy_ns + j.idle_ns AS step_ns,
  CASE
    WHEN j.phase = 'decode' AND (j.decode_tokens > 0 OR NOT j.is_drafted)
      THEN (j.busy_ns + j.idle_ns)
        / greatest(coalesce(CAST(j.decode_tokens AS DOUBLE) / nullif(j.decode_requests, 0), 1.0), 1.0)
  END AS token_ns,
  coalesce(j.work, 0) AS work, j.launches, j.graph_launches, j.lost_launches, j.busy_ns,
  j.all_ns - j.busy_ns AS overlap_ns, j.compute_ns, greatest(j.moved_ns - j.compute_ns, 0) AS comm_ns,
  greatest(j.busy_ns - j.moved_ns, 0) AS copy_ns,
  coalesce(t.wait_ns / nullif(t.dur_ns, 0) * greatest(j.moved_ns - j.compute_ns, 0), 0) AS comm_wait_ns,
  coalesce(t.transfer_ns / nullif(t.dur_ns, 0) * greatest(j.moved_ns - j.compute_ns, 0), 0)
    AS comm_transfer_ns,
  j.idle_ns, coalesce(g.launch_gap_ns, 0) AS launch_gap_ns, coalesce(g.host_gap_ns, 0) AS host_gap_ns,
  coalesce(g.device_gap_ns, 0) AS device_gap_ns, coalesce(g.unknown_gap_ns, 0) AS unknown_gap_ns,
  j.device IS NOT NULL AND j.gaps = j.work AND j.lost_launches = 0 AND j.lost_before = 0
    -- What repeats has no end of its own: the next step's begin is the end of this one.
    AND NOT (coalesce(j.how, 'graph') <> 'graph' AND j.is_last) AS is_whole,
  coalesce(j.busy_ns + j.idle_ns > $lull * u.step_ns, FALSE) AS is_lull
FROM known AS j
JOIN resolve_gpu_rank AS r ON j.rank_key = r.rank_key
LEFT JOIN gap AS g ON j.rank_key = g.rank_key AND j.device = g.device AND j.step = g.step
LEFT JOIN gpu_talk AS t ON j.rank_key = t.rank_key AND j.device = t.device AND j.step = t.step
LEFT JOIN usual AS u
  ON j.rank_key = u.rank_key AND j.device = u.device AND coalesce(j.phase, '') = coalesce(u.phase, '')
