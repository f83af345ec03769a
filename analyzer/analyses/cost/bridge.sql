-- What changed with the last lasting rise of cost, factor by factor: the time since against as long a
-- time of before. The parts add up to the difference, whatever order the factors changed in.
-- grain:   one row a factor of that rise
-- needs:   cost_window
-- python:  bridge -- exact fractions on some hundred sums
-- returns: place INTEGER                 -- 1 = the largest part
-- returns: is_lead BOOLEAN               -- the one that added most
-- returns: factor VARCHAR                -- calls, retries, model mix, input per call, cache-read share, cache writes, visible output per call, reasoning per call, price, price tier, server tools, sound and pictures
-- returns: cost_usd DECIMAL(38,15)       -- what it added; negative = saved
-- returns: share DOUBLE                  -- of the difference
-- returns: before_value DOUBLE           -- its figure before, over all models; NULL = it is no single figure
-- returns: after_value DOUBLE            -- since
-- returns: unit VARCHAR                  -- of that figure
-- returns: drivers VARCHAR               -- groups that made most of it, with their money
-- returns: difference_usd DECIMAL(38,15) -- what the window cost more, over all factors
-- returns: before_usd DECIMAL(38,15)     -- what as long a time cost before
-- returns: after_usd DECIMAL(38,15)      -- what the window cost
-- returns: days DOUBLE                   -- length of the window
-- returns: session VARCHAR               -- the session that cost most of it; NULL = none is told
-- returns: session_usd DECIMAL(38,15)    -- what it cost in the window more than before
-- returns: unpriced_tokens BIGINT        -- tokens of the window without a price, in no sum
-- returns: sentence VARCHAR              -- all of it in one sentence
SELECT *
FROM cost_window
ORDER BY kind, name, model, lane, fresh_usd, is_window
