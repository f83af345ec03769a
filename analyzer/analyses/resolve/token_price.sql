-- What one token costs, by row of the price list. A price that is not known is NULL and nothing stands in
-- for it: the catalogs' own rule, that a write without a price costs what input does, was applied there.
-- grain:   one row a row of resolve_unit_price
-- needs:   resolve_unit_price
-- returns: price_id INTEGER               -- the row
-- returns: fresh_usd DECIMAL(20,15)       -- of the prompt outside the cache
-- returns: read_usd DECIMAL(20,15)        -- read from the cache
-- returns: short_usd DECIMAL(20,15)       -- written to the short-lived cache, or to one whose lifetime is not told
-- returns: long_usd DECIMAL(20,15)        -- written to the long-lived cache
-- returns: output_usd DECIMAL(20,15)      -- visible output
-- returns: reasoning_usd DECIMAL(20,15)   -- reasoning
SELECT
  price_id,
  CAST(fresh_usd * 0.000001 AS DECIMAL(20,15)) AS fresh_usd,
  CAST(read_usd * 0.000001 AS DECIMAL(20,15)) AS read_usd,
  CAST(short_usd * 0.000001 AS DECIMAL(20,15)) AS short_usd,
  CAST(long_usd * 0.000001 AS DECIMAL(20,15)) AS long_usd,
  CAST(output_usd * 0.000001 AS DECIMAL(20,15)) AS output_usd,
  CAST(reasoning_usd * 0.000001 AS DECIMAL(20,15)) AS reasoning_usd
FROM resolve_unit_price
