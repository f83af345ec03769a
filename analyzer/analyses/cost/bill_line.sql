-- Lines of bills and usage reports as their files tell them, added up over what nothing here asks for
-- (projects, keys, resources). What files tell twice stands here twice.
-- grain:   one row a file, period, model, kind of token, unit, item, charge, tier and currency
-- needs:   invoice_line, source
-- returns: path VARCHAR                    -- file
-- returns: reader VARCHAR                  -- its format
-- returns: provider VARCHAR                -- vendor as the file names it; empty = not told
-- returns: start_ns BIGINT                 -- period begins, ns UTC
-- returns: end_ns BIGINT                   -- it ends, exclusive, ns UTC; NULL = not told
-- returns: model VARCHAR                   -- model; NULL = not told apart
-- returns: token_kind VARCHAR              -- kind of token; NULL = no tokens, or not told apart
-- returns: unit VARCHAR                    -- of the quantity: tokens, requests, ...
-- returns: item VARCHAR                    -- what the line is for, in the file's words
-- returns: charge VARCHAR                  -- usage, credit, tax, ... in the file's words
-- returns: service_tier VARCHAR            -- tier
-- returns: is_long BOOLEAN                 -- at the price of long prompts
-- returns: currency VARCHAR                -- of the amounts, USD however it is spelled; NULL = not told
-- returns: quantity DECIMAL(38,12)         -- in units; NULL = not told
-- returns: amount DECIMAL(38,12)           -- billed; NULL = not told
-- returns: list_amount DECIMAL(38,12)      -- before discounts; NULL = not told
SELECT
  path, reader, coalesce(provider, '') AS provider, period_start_ns AS start_ns,
  period_end_ns AS end_ns, model, token_kind, unit, item, charge, service_tier,
  coalesce(long_context, FALSE) AS is_long, upper_currency AS currency,
  CAST(sum(quantity) AS DECIMAL(38,12)) AS quantity,
  CAST(sum(amount) AS DECIMAL(38,12)) AS amount,
  CAST(sum(list_amount) AS DECIMAL(38,12)) AS list_amount
FROM (
  SELECT
    i.*, s.reader, s.path,
    CASE WHEN i.currency IN ('usd', 'Usd') THEN 'USD' ELSE i.currency END AS upper_currency
  FROM invoice_line AS i
  JOIN source AS s ON i.source_id = s.source_id
  WHERE i.period_start_ns IS NOT NULL
) AS lines
GROUP BY
  path, reader, provider, period_start_ns, period_end_ns, model, token_kind, unit, item, charge,
  service_tier, coalesce(long_context, FALSE), upper_currency
