-- What each file of a bill is used for: of exports of one vendor over the same time the fullest counts,
-- and of what a file repeats of another, once.
-- grain:   one row a vendor and file with lines for the use of models, fees, credits or tax
-- needs:   cost_bill_line
-- python:  bill_source -- the same choice as in cost_reconciled
-- returns: bill VARCHAR               -- who bills
-- returns: path VARCHAR               -- file
-- returns: used_lines BIGINT          -- lines that count
-- returns: unused_lines BIGINT        -- lines that do not, for another file tells the same time
-- returns: unused_from_ns BIGINT      -- their first period begins, ns UTC; NULL = there are none
-- returns: unused_until_ns BIGINT     -- their last period ends, ns UTC
-- returns: instead VARCHAR            -- the file that counts in their place
-- returns: requests DECIMAL(38,12)    -- calls it counts; NULL = it tells none, or they do not count
SELECT
  'bill' AS told, path, reader, provider, start_ns, end_ns, model, token_kind, unit, item, charge,
  service_tier, is_long, currency, quantity, amount, list_amount
FROM cost_bill_line
ORDER BY 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
