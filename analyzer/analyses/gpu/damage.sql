-- What is wrong with the traces themselves: cut off, records lost, one event that holds most of it,
-- clearly fewer steps than the other ranks, or ranks of the job that are not there.
-- grain:   one row a damaged rank, and one for the missing ranks of a capture
-- needs:   gpu_trust, gpu_step
-- param:   some = 20                     -- launches below which a share says nothing
-- param:   short = 0.5                   -- of the steps that other ranks have
-- returns: capture BIGINT                -- capture
-- returns: item VARCHAR                  -- the rank
-- returns: ranks BIGINT                  -- ranks that it concerns
-- returns: why VARCHAR                   -- cut off, records lost, kernels lost, one event, short, missing
-- returns: start_ns BIGINT               -- begin of the record, ns wall time; NULL = no wall time
-- returns: end_ns BIGINT                 -- its end, ns wall time
WITH stepped AS (
  SELECT capture, rank_key, count(DISTINCT step) AS steps FROM gpu_step GROUP BY capture, rank_key
),
most AS (
  SELECT capture, max(steps) AS steps FROM stepped GROUP BY capture
),
judged AS (
  SELECT
    t.*,
    CASE
      WHEN t.is_cut THEN 'cut off'
      WHEN t.lost_records > 0 OR t.is_full THEN 'records lost'
      WHEN t.launches >= $some AND t.lacks_launches THEN 'kernels lost'
      WHEN t.is_one_event AND t.work > 1 THEN 'one event'
      WHEN t.ranks > 1 AND coalesce(s.steps, 0) < $short * m.steps THEN 'short'
    END AS why
  FROM gpu_trust AS t
  LEFT JOIN stepped AS s ON t.rank_key = s.rank_key
  LEFT JOIN most AS m ON t.capture = m.capture
)
SELECT
  capture, place AS item, CAST(1 AS BIGINT) AS ranks, why, CASE WHEN is_wall THEN start_ns END AS start_ns,
  CASE WHEN is_wall THEN start_ns + dur_ns END AS end_ns
FROM judged
WHERE why IS NOT NULL
UNION ALL
SELECT
  capture, 'ranks without a trace', max(ranks_missing), 'missing',
  min(CASE WHEN is_wall THEN start_ns END), max(CASE WHEN is_wall THEN start_ns + dur_ns END)
FROM gpu_trust
WHERE ranks_missing > 0 AND talks
GROUP BY capture
