-- The pace at which each stream gives its chunks: the gap it usually makes, and from where on a gap
-- is slow for this stream. Chunks that come at once are one delivery, so the rhythm of a stream in
-- bursts is the gap between its bursts.
-- grain:   one row a request and vantage (client, engine) with at least two token chunks
-- needs:   resolve_instance, resolve_told, resolve_request, chunk
-- param:   few_gaps = 8                  -- fewer gaps make no pace
-- param:   at_once_ns = 2000000          -- chunks nearer than this came together: no model makes 500 tokens a second of one answer step by step
-- param:   burst_share = 0.8             -- of the stream's time that the gaps between bursts must make up
-- param:   slower = 1.5                  -- a slow gap is so many times the usual one: contexts and batches that grow change it by less
-- param:   spreads = 4                   -- and so many of its standard deviations above it
-- param:   long = 3                      -- a gap of so many usual ones is a stall by itself
-- returns: request_key BIGINT            -- the request
-- returns: vantage VARCHAR               -- client (as it arrived) or engine (as it was handed over)
-- returns: source_id INTEGER             -- source of the chunks
-- returns: record BIGINT                 -- record of that source
-- returns: start_ns BIGINT               -- where the offsets of its chunks count from, ns UTC
-- returns: first_ns BIGINT               -- first token, ns UTC on that vantage's clock
-- returns: last_ns BIGINT                -- last token, ns UTC
-- returns: chunks BIGINT                 -- chunks that carried a token
-- returns: gaps BIGINT                   -- gaps seen
-- returns: median_gap_ns DOUBLE          -- median gap, ns
-- returns: p99_gap_ns DOUBLE             -- 99th percentile, ns
-- returns: longest_gap_ns BIGINT         -- longest, ns
-- returns: in_bursts BOOLEAN             -- several chunks come at once, and then none for a while
-- returns: usual_gap_ns DOUBLE           -- gap this stream usually makes, between bursts if it has them, ns
-- returns: slow_gap_ns DOUBLE            -- longer ones are slow, ns
-- returns: long_gap_ns DOUBLE            -- longer ones are a stall by themselves, ns
-- returns: is_judged BOOLEAN             -- enough gaps to know its pace, and a clock to place them
WITH stamped AS (
  SELECT
    i.request_key, t.vantage, c.source_id, c.record, t.start_ns, c.offset_ns,
    c.offset_ns - lag(c.offset_ns) OVER (
      PARTITION BY c.source_id, c.record ORDER BY c.offset_ns, c.chunk_index
    ) AS gap_ns
  FROM chunk AS c
  JOIN resolve_told AS t
    ON c.source_id = t.source_id AND c.record = t.record AND t.vantage IN ('client', 'engine')
  JOIN resolve_instance AS i ON t.row_id = i.row_id
  WHERE c.kind <> 'role' AND coalesce(c.chars, 1) + coalesce(c.tokens, 0) > 0
),
streams AS (
  SELECT
    request_key, vantage, source_id, record,
    min(start_ns) AS start_ns,
    min(start_ns) + min(offset_ns) AS first_ns,
    min(start_ns) + max(offset_ns) AS last_ns,
    max(offset_ns) - min(offset_ns) AS lasts_ns,
    count(*) AS chunks,
    count(gap_ns) AS gaps,
    percentile_cont(0.25) WITHIN GROUP (ORDER BY gap_ns) AS quarter_gap_ns,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY gap_ns) AS median_gap_ns,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY gap_ns) AS p99_gap_ns,
    max(gap_ns) AS longest_gap_ns,
    count(*) FILTER (WHERE gap_ns >= $at_once_ns) AS apart,
    CAST(SUM(gap_ns) FILTER (WHERE gap_ns >= $at_once_ns) AS BIGINT) AS apart_ns
  FROM stamped
  GROUP BY request_key, vantage, source_id, record
),
chosen AS (
  SELECT
    *,
    -- Of several logs of one stream the fullest.
    row_number() OVER (
      PARTITION BY request_key, vantage ORDER BY chunks DESC, source_id, record
    ) AS choice,
    median_gap_ns < $at_once_ns AND apart >= $few_gaps AND apart_ns >= $burst_share * lasts_ns
      AS in_bursts
  FROM streams
  WHERE gaps > 0
),
paced AS (
  SELECT
    *,
    -- One stall among the bursts must not make them look slow.
    CASE WHEN in_bursts THEN CAST(apart_ns - longest_gap_ns AS DOUBLE) / (apart - 1)
      ELSE median_gap_ns END AS usual_gap_ns,
    -- From the lower side, which stalls do not touch: a quarter lies 0.6745 deviations below.
    CASE WHEN in_bursts THEN 0 ELSE (median_gap_ns - quarter_gap_ns) / 0.6745 END AS spread_ns
  FROM chosen
  WHERE choice = 1
)
SELECT
  p.request_key, p.vantage, p.source_id, p.record, p.start_ns, p.first_ns, p.last_ns, p.chunks, p.gaps,
  p.median_gap_ns, p.p99_gap_ns, p.longest_gap_ns, p.in_bursts, p.usual_gap_ns,
  greatest($slower * p.usual_gap_ns, p.usual_gap_ns + $spreads * p.spread_ns) AS slow_gap_ns,
  greatest($long * p.usual_gap_ns, p.usual_gap_ns + 2 * $spreads * p.spread_ns) AS long_gap_ns,
  p.gaps >= $few_gaps AND p.first_ns IS NOT NULL AS is_judged
FROM paced AS p
JOIN resolve_request AS r ON p.request_key = r.request_key
