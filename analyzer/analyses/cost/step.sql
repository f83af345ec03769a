-- The moment since which stretches of time cost more an operation, or since which there are many more
-- operations, and the two windows that it parts: all since, and the same hours of the weeks before, else of
-- the days before, else all before. A rhythm of the day or the week is no such moment, nor a slow rise.
-- That it is not the doing of few sessions is looked at afterwards.
-- grain:   one row, where there is such a moment that lasts until the log ends
-- needs:   cost_time
-- python:  step -- the best place to cut a series is no aggregate
-- returns: baseline_from_ns BIGINT      -- the time before: from, ns UTC
-- returns: baseline_until_ns BIGINT     -- to, ns UTC
-- returns: window_from_ns BIGINT        -- the time since: from, ns UTC
-- returns: window_until_ns BIGINT       -- to, ns UTC
-- returns: moved VARCHAR                -- cost per call, or calls
-- returns: times DOUBLE                 -- what moved, as a multiple of before, like hours of the day compared
-- returns: is_compared BOOLEAN          -- like hours of the day could be compared: no rhythm of the day
-- returns: is_unlike BOOLEAN            -- one of the two has weekends only, the other none: may be the week's rhythm
-- returns: before_usd DOUBLE            -- dollars an operation in the baseline
-- returns: after_usd DOUBLE             -- since
-- returns: before_calls DOUBLE          -- operations a day in the baseline
-- returns: after_calls DOUBLE           -- since
-- returns: chance_z DOUBLE              -- how far from chance: rank sum in standard deviations
SELECT start_ns, bin_ns, requests, operations, usd, last_ns
FROM cost_time
ORDER BY start_ns
