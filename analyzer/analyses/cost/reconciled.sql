-- Bills and usage reports against what the logs track, at the finest grain both tell: period, model
-- and kind of token. Tokens first: where they agree, money that differs is a matter of prices. Each
-- difference is held against the usual reasons. What a usage report and a bill of one vendor tell of
-- the same tokens is never added.
-- grain:   one row a bill, period, model and kind of token (or what is billed beside tokens)
-- needs:   cost_logged, cost_matched, cost_hidden, cost_bill_line
-- python:  reconciled -- aligns periods, models and kinds, and looks for reasons
-- param:   hour_ns = 3600000000000             -- records of single calls are shown by the hour
-- returns: bill VARCHAR                        -- who bills; records = a provider's records of single calls
-- returns: period_start_ns BIGINT              -- the bill's period begins, ns UTC
-- returns: period_end_ns BIGINT                -- it ends, exclusive, ns UTC
-- returns: model VARCHAR                       -- model as the logs call it, else as the bill does; NULL = not told apart
-- returns: token_kind VARCHAR                  -- kind of token; all = not told apart; NULL = no tokens
-- returns: logged_tokens BIGINT                -- by the logs
-- returns: billed_tokens BIGINT                -- by the bill; NULL = it tells none
-- returns: logged_usd DECIMAL(38,15)           -- the logs' tokens by our prices; NULL = not priced
-- returns: billed_usd DECIMAL(38,15)           -- by the bill; NULL = it tells none, or in another currency
-- returns: difference_tokens BIGINT            -- billed less logged
-- returns: difference_usd DECIMAL(38,15)       -- billed less logged; where no money is told, tokens by our prices
-- returns: class VARCHAR                       -- matched, log only, bill only, price difference or token difference
-- returns: reason VARCHAR                      -- why, as far as found; not explained; NULL = no difference
-- returns: evidence VARCHAR                    -- what shows it
-- returns: is_harmless BOOLEAN                 -- the bill itself tells why, or it is no difference of usage and price
-- returns: counts BOOLEAN                      -- no finer bill tells the same calls: sums are made of these lines alone
-- returns: is_material BOOLEAN                 -- beyond rounding: its reason makes one percent of the bill or more
SELECT
  'bill' AS told, provider, start_ns, end_ns, model, token_kind, unit, item, charge, service_tier,
  is_long, currency, quantity, CAST(NULL AS BIGINT) AS logged, amount, list_amount,
  CAST(NULL AS DECIMAL(38,15)) AS usd, CAST(1 AS BIGINT) AS n, reader, path
FROM cost_bill_line
UNION ALL
SELECT
  'log', coalesce(provider, ''), bin_ns, CAST(NULL AS BIGINT), model, token_kind, NULL, NULL, NULL,
  service_tier, FALSE, NULL, CAST(tokens AS DECIMAL(38,12)), unpriced_tokens,
  CAST(NULL AS DECIMAL(38,12)), CAST(NULL AS DECIMAL(38,12)), usd, requests, NULL, NULL
FROM cost_logged
UNION ALL
SELECT
  'record', '', start_ns - start_ns % $hour_ns, CAST(NULL AS BIGINT), model, NULL, NULL, finer, kind,
  NULL, FALSE, NULL, CAST(sum(billed_tokens) AS DECIMAL(38,12)),
  CAST(sum(logged_tokens) AS BIGINT),
  CAST(sum(billed_usd) AS DECIMAL(38,12)), CAST(NULL AS DECIMAL(38,12)),
  CAST(sum(logged_usd) AS DECIMAL(38,15)), count(*), NULL, NULL
FROM (
  SELECT
    *, CASE
      WHEN class = 'matched' AND abs(billed_tokens - logged_tokens) > 0 THEN 'token difference'
      WHEN class = 'matched' AND abs(billed_usd - logged_usd)
        > greatest(0.005 * abs(billed_usd), 0.000002) THEN 'price difference'
      ELSE class
    END AS finer
  FROM cost_matched
) AS m
WHERE start_ns IS NOT NULL AND class NOT IN ('not billed', 'suspected', 'not compared')
GROUP BY start_ns - start_ns % $hour_ns, model, finer, kind
UNION ALL
SELECT
  'suspect', '', start_ns - start_ns % $hour_ns, CAST(NULL AS BIGINT), model, NULL, NULL, NULL,
  NULL, NULL, FALSE, NULL, CAST(sum(low_usd) AS DECIMAL(38,12)), CAST(NULL AS BIGINT),
  CAST(sum(high_usd) AS DECIMAL(38,12)), CAST(NULL AS DECIMAL(38,12)),
  CAST(NULL AS DECIMAL(38,15)), count(*), NULL, NULL
FROM cost_hidden
WHERE NOT is_billed AND start_ns IS NOT NULL
GROUP BY start_ns - start_ns % $hour_ns, model
ORDER BY 1, 2, 3, 5, 6, 8, 9, 4, 7, 10, 11, 12, 19, 20
