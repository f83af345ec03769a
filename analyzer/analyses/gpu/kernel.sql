-- What each kernel, copy and set does: the class of its name, by the ordered rules of the catalog.
-- grain:   one row a kind and name, the most frequent names first
-- needs:   gpu_event
-- python:  kernel -- regular expressions of catalogs/kernels.toml, once a distinct name
-- param:   most_names = 200000              -- distinct names that are looked up, a trace has hundreds; the rest is other
-- returns: kind VARCHAR                     -- kernel, memcpy, memset or graph
-- returns: name VARCHAR                     -- its name; empty = not told
-- returns: class VARCHAR                    -- what it does; other = no rule found it
-- returns: class_group VARCHAR              -- what classes are summed under
-- returns: rule BIGINT                      -- number of the rule that found it; NULL = by its kind, or none
SELECT kind, coalesce(name, '') AS name
FROM gpu_event
WHERE kind IN ('kernel', 'memcpy', 'memset', 'graph')
GROUP BY 1, 2
ORDER BY count(*) DESC, 1, 2
LIMIT $most_names
