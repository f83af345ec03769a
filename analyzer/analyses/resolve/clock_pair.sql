-- What one request says of two clocks that both stamped it: the server starts after the client sent,
-- its first token and its end come before those of the client. So the inner clock is ahead of the
-- outer one by at least low_ns and at most high_ns. Of many requests those that say most are kept.
-- grain:   one row a request and pair of clocks
-- needs:   resolve_told, resolve_entity, resolve_clock_of, request
-- param:   bins = 128                  -- pieces of equal count, so that every time has its say
-- param:   tightest = 6                -- kept of each piece: the narrowest
-- param:   outermost = 3               -- and those with the highest low and the lowest high
-- returns: outer_clock VARCHAR         -- the clock nearer the user
-- returns: inner_clock VARCHAR         -- the clock nearer the engine
-- returns: time_ns BIGINT              -- when, ns on the inner clock
-- returns: low_ns BIGINT               -- inner minus outer is at least this, ns; NULL = not told
-- returns: high_ns BIGINT              -- and at most this, ns
-- returns: pairs BIGINT                -- requests that both clocks stamped, all of this pair
WITH told AS (
  SELECT
    e.name, e.entity_id, c.clock, c.vantage_rank,
    min(t.start_ns) AS start_ns,
    max(c.grain_ns) AS grain_ns,
    -- A gateway may call a late or an early chunk the first; an engine counts tokens. Its emit events
    -- begin with the first token.
    max(CASE
      WHEN t.vantage = 'engine' AND r.timing = 'stream' THEN t.start_ns + coalesce(r.ttft_ns, 0)
      WHEN t.vantage = 'engine' OR r.timing = 'stream' THEN t.start_ns + r.ttft_ns
    END) AS first_ns,
    max(CASE WHEN r.timing = 'stream' THEN t.start_ns + r.ttft_ns END) AS seen_first_ns,
    max(t.start_ns + coalesce(r.e2e_ns, CASE WHEN r.timing = 'stream' THEN r.decode_ns END))
      AS end_ns,
    max(CASE WHEN r.error IS NOT NULL OR r.status >= 400
      OR r.finish_reason IN ('abort', 'cancelled', 'timeout', 'error') THEN 1 ELSE 0 END) AS left_early
  FROM resolve_told AS t
  JOIN resolve_entity AS e ON t.row_id = e.row_id
  JOIN request AS r
    ON t.source_id = r.source_id AND t.record = r.record AND t.vantage = r.vantage
  JOIN resolve_clock_of AS c
    ON t.source_id = c.source_id AND t.vantage = c.vantage
      AND c.deployment
        = CASE WHEN t.vantage IN ('engine', 'provider') THEN coalesce(r.deployment, '') ELSE '' END
  WHERE t.start_ns IS NOT NULL AND (t.own_id IS NOT NULL OR t.answer_id IS NOT NULL)
  GROUP BY e.name, e.entity_id, c.clock, c.vantage_rank
),
counted AS (
  SELECT
    *,
    count(*) OVER (PARTITION BY name, clock) AS told_of_it,
    count(*) OVER (PARTITION BY name) AS told_in_all,
    row_number() OVER (PARTITION BY name, clock ORDER BY start_ns, entity_id) AS nth
  FROM told
),
bounds AS (
  SELECT
    o.clock AS outer_clock,
    i.clock AS inner_clock,
    i.start_ns AS time_ns,
    i.entity_id,
    -- What was said of no first token and no end: it began before the other end saw the whole.
    CASE WHEN o.left_early = 1 THEN NULL ELSE
      greatest(
        i.start_ns - o.end_ns, coalesce(i.first_ns - o.seen_first_ns, i.start_ns - o.end_ns),
        coalesce(i.end_ns - o.end_ns, i.start_ns - o.end_ns)
      ) - o.grain_ns
    END AS low_ns,
    i.start_ns - o.start_ns + i.grain_ns AS high_ns
  FROM counted AS o
  JOIN counted AS i
    ON o.name = i.name AND o.vantage_rank < i.vantage_rank AND o.clock <> i.clock
      AND o.told_of_it = i.told_of_it AND o.nth = i.nth
  WHERE o.told_in_all > o.told_of_it
),
placed AS (
  SELECT
    *,
    high_ns - low_ns AS width_ns,
    count(*) OVER (PARTITION BY outer_clock, inner_clock) AS pairs,
    row_number() OVER (PARTITION BY outer_clock, inner_clock ORDER BY time_ns, entity_id) - 1
      AS place
  FROM bounds
),
binned AS (
  SELECT *, place * $bins - (place * $bins) % pairs AS bin FROM placed
),
ranked AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY outer_clock, inner_clock, bin ORDER BY width_ns NULLS LAST, entity_id
    ) AS by_width,
    row_number() OVER (
      PARTITION BY outer_clock, inner_clock, bin ORDER BY low_ns DESC NULLS LAST, entity_id
    ) AS by_low,
    row_number() OVER (PARTITION BY outer_clock, inner_clock, bin ORDER BY high_ns, entity_id)
      AS by_high
  FROM binned
)
SELECT outer_clock, inner_clock, time_ns, low_ns, high_ns, pairs
FROM ranked
WHERE by_width <= $tightest OR by_low <= $outermost OR by_high <= $outermost
