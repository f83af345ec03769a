-- The moment from which first prompts are larger, group by group: where the order of their sizes parts
-- best in two, by ranks, so that a few huge prompts decide nothing.
-- grain:   one row a group of first prompts in which such a moment stands out
-- needs:   turns_first_prompt
-- python:  step -- the best place to cut a series is no aggregate
-- param:   fewest = 16                     -- first prompts of a group; fewer say nothing
-- param:   most_groups = 300               -- the largest groups; more are names gone wild
-- returns: group_name VARCHAR              -- the group
-- returns: from_nth BIGINT                 -- what came before begins here
-- returns: low_nth BIGINT                  -- the first larger prompt is not before this
-- returns: high_nth BIGINT                 -- nor after this
-- returns: end_nth BIGINT                  -- the last of the larger ones; NULL = it lasts
-- returns: middle_tokens DOUBLE            -- half way between the sizes before and after
-- returns: middle_chars DOUBLE             -- likewise of tool definitions and system prompt; NULL = they did not move
-- returns: chance_z DOUBLE                 -- how far from chance: rank sum in standard deviations
-- returns: larger DOUBLE                   -- chance that a prompt after is larger than one before, 0 to 1
-- returns: is_weekend BOOLEAN              -- it falls together with a weekend's begin or end, the only one: the days may explain it
WITH grouped AS (
  SELECT
    group_name, bucket, count(*) AS requests, min(nth) AS first_nth, max(nth) AS last_nth,
    min(start_ns) AS first_ns, max(requests) AS all_requests,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY input_tokens) AS prompt,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY coalesce(tools_chars, 0) + coalesce(system_chars, 0))
      FILTER (WHERE tools_chars IS NOT NULL OR system_chars IS NOT NULL) AS chars
  FROM turns_first_prompt
  GROUP BY group_name, bucket
),
sized AS (
  SELECT group_name, max(all_requests) AS requests
  FROM grouped
  GROUP BY group_name
),
ranked AS (
  SELECT group_name, row_number() OVER (ORDER BY requests DESC, group_name) AS place
  FROM sized
  WHERE requests >= $fewest
)
SELECT g.group_name, g.first_nth, g.last_nth, g.first_ns, g.requests, g.prompt, g.chars
FROM grouped AS g
JOIN ranked AS r ON g.group_name = r.group_name
WHERE r.place <= $most_groups
ORDER BY r.place, g.bucket
