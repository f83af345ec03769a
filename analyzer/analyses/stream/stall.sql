-- Stalls of each stream: a gap far above its own pace, or a stretch of slow ones. What a stall costs
-- is the time beyond what its gaps usually take.
-- grain:   one row a stall of a request at one vantage
-- needs:   chunk, stream_pace, latency_outside
-- param:   apart = 3                     -- gaps at the usual pace between two slow ones that make two stalls of them
-- param:   least_ns = 50000000           -- what costs less is no stall: nobody reads it
-- param:   stretch = 8                   -- slow gaps that make a stall although none is long by itself
-- param:   ahead = 8                     -- chunks looked at behind it, for whether they had piled up
-- param:   few_ahead = 3                 -- fewer tell nothing
-- param:   rhythm = 5                    -- so many alike that fill the stream are how it comes, no stalls
-- param:   rhythm_share = 0.5            -- of the stream's time that they fill
-- returns: request_key BIGINT            -- the request
-- returns: vantage VARCHAR               -- client or engine
-- returns: source_id INTEGER             -- source of the chunks
-- returns: nth BIGINT                    -- its number in the stream, from 1
-- returns: start_ns BIGINT               -- last chunk before it, ns UTC on that vantage's clock
-- returns: end_ns BIGINT                 -- chunk that ends it, ns UTC
-- returns: gaps BIGINT                   -- gaps it holds
-- returns: longest_gap_ns BIGINT         -- longest of them, ns
-- returns: usual_gap_ns DOUBLE           -- usual gap of the stream, ns
-- returns: excess_ns BIGINT              -- beyond what its gaps usually take, ns
-- returns: chunks_before BIGINT          -- chunks the stream had given
-- returns: caught_ratio DOUBLE           -- of the time lost, as far as the next chunks could show it, made up at once behind it; NULL = too few of them
WITH stepped AS (
  SELECT
    p.request_key, p.vantage, c.source_id, c.record, c.offset_ns, p.start_ns, p.last_ns, p.first_ns,
    p.chunks, p.in_bursts, p.usual_gap_ns, p.slow_gap_ns, p.long_gap_ns,
    row_number() OVER stream AS place,
    c.offset_ns - lag(c.offset_ns) OVER stream AS gap_ns,
    lead(c.offset_ns, $ahead) OVER stream AS ahead_ns
  FROM chunk AS c
  JOIN stream_pace AS p ON c.source_id = p.source_id AND c.record = p.record
  WHERE c.kind <> 'role' AND coalesce(c.chars, 1) + coalesce(c.tokens, 0) > 0
    AND p.is_judged AND p.longest_gap_ns > p.slow_gap_ns
  WINDOW stream AS (
    PARTITION BY c.source_id, c.record ORDER BY c.offset_ns, c.chunk_index
  )
),
slow AS (
  SELECT
    *,
    CASE
      WHEN place - lag(place) OVER (PARTITION BY source_id, record ORDER BY place) <= $apart THEN 0
      ELSE 1
    END AS begins
  FROM stepped
  WHERE gap_ns > slow_gap_ns
),
numbered AS (
  SELECT
    *,
    SUM(begins) OVER (PARTITION BY source_id, record ORDER BY place) AS stretch
  FROM slow
),
stretches AS (
  SELECT
    request_key, vantage, source_id, record, stretch,
    min(chunks) AS chunks,
    min(usual_gap_ns) AS usual_gap_ns,
    min(long_gap_ns) AS long_gap_ns,
    count(*) FILTER (WHERE in_bursts) > 0 AS in_bursts,
    min(start_ns + offset_ns - gap_ns) AS start_ns,
    max(start_ns + offset_ns) AS end_ns,
    max(last_ns - first_ns) AS lasts_ns,
    min(place) - 1 AS chunks_before,
    max(place) AS place,
    max(place) - min(place) + 1 AS gaps,
    count(*) AS slow_gaps,
    max(gap_ns) AS longest_gap_ns,
    max_by(coalesce(start_ns + ahead_ns, last_ns), place) AS ahead_ns
  FROM numbered
  GROUP BY request_key, vantage, source_id, record, stretch
),
weighed AS (
  SELECT
    *,
    end_ns - start_ns - gaps * usual_gap_ns AS excess_ns,
    -- Chunks behind it that are looked at, at most until the end of the stream.
    least(chunks - place, $ahead) AS behind
  FROM stretches
),
stalls AS (
  SELECT
    *,
    count(*) OVER stream AS alike,
    SUM(end_ns - start_ns) OVER stream AS filled_ns
  FROM weighed
  WHERE excess_ns >= $least_ns AND excess_ns >= usual_gap_ns
    AND (
      longest_gap_ns > long_gap_ns
      -- Slow to its end or from its beginning on: contexts and batches do that to a stream.
      OR (slow_gaps >= $stretch AND chunks_before > 1 AND place < chunks)
    )
  WINDOW stream AS (PARTITION BY source_id, record)
)
SELECT
  s.request_key, s.vantage, s.source_id,
  row_number() OVER (PARTITION BY s.request_key, s.vantage ORDER BY s.start_ns, s.end_ns) AS nth,
  s.start_ns, s.end_ns, s.gaps, s.longest_gap_ns, s.usual_gap_ns,
  CAST(round(s.excess_ns) AS BIGINT) AS excess_ns,
  s.chunks_before,
  CASE
    WHEN s.behind < $few_ahead OR s.in_bursts THEN NULL
    ELSE greatest(s.behind * s.usual_gap_ns - (s.ahead_ns - s.end_ns), 0)
      / least(s.behind * s.usual_gap_ns, s.excess_ns)
  END AS caught_ratio
FROM stalls AS s
LEFT JOIN latency_outside AS o ON s.request_key = o.request_key AND s.vantage = 'client'
WHERE NOT coalesce(o.is_held, FALSE)
  AND NOT (
    s.alike >= $rhythm AND s.filled_ns >= $rhythm_share * s.lasts_ns
    AND s.end_ns - s.start_ns < 3 * s.filled_ns / s.alike
  )
