-- Where sources say themselves what a request cost: how far that is from what it costs here.
-- grain:   one row a model, reader and price source
-- needs:   cost_request, resolve_request
-- param:   smallest_share = 0.005     -- sources round to a fraction of a cent; less is no difference
-- returns: model VARCHAR              -- model
-- returns: reader VARCHAR             -- format that reports the cost
-- returns: price_source VARCHAR       -- where our prices are from; NULL = no price
-- returns: requests BIGINT            -- requests with a reported cost
-- returns: differ BIGINT              -- of those that are priced here, those that differ
-- returns: unpriced BIGINT            -- of those, without a price here
-- returns: usd DECIMAL(38,15)         -- what they cost here, of those that are priced
-- returns: reported_usd DECIMAL(38,9) -- what is reported of the same
-- returns: unpriced_usd DECIMAL(38,9) -- what is reported of those without a price here
SELECT
  q.model,
  q.reader,
  c.price_source,
  count(*) AS requests,
  count(CASE WHEN abs(c.usd - c.reported_usd) > $smallest_share * greatest(c.usd, c.reported_usd)
    AND abs(c.usd - c.reported_usd) > 0.000001 THEN 1 END) AS differ,
  count(CASE WHEN c.usd IS NULL THEN 1 END) AS unpriced,
  CAST(sum(c.usd) AS DECIMAL(38,15)) AS usd,
  CAST(sum(CASE WHEN c.usd IS NOT NULL THEN c.reported_usd END) AS DECIMAL(38,9)) AS reported_usd,
  CAST(sum(CASE WHEN c.usd IS NULL THEN c.reported_usd END) AS DECIMAL(38,9)) AS unpriced_usd
FROM cost_request AS c
JOIN resolve_request AS q ON c.request_key = q.request_key
WHERE c.reported_usd IS NOT NULL
GROUP BY q.model, q.reader, c.price_source
