-- Whose a request is, as its labels tell it: who asked, with which key, for which team. The values
-- stand as the logs have them; whoever shows them hashes those of people and keys.
-- grain:   one row a request with such a label
-- needs:   resolve_instance, resolve_told, request_tag
-- returns: request_key BIGINT    -- the request
-- returns: user_name VARCHAR     -- who asked
-- returns: key_name VARCHAR      -- key it was asked with
-- returns: team VARCHAR          -- team, project or organisation
WITH told AS (
  SELECT DISTINCT i.request_key, g.name, g.value
  FROM request_tag AS g
  JOIN resolve_told AS t ON g.source_id = t.source_id AND g.record = t.record
  JOIN resolve_instance AS i ON t.row_id = i.row_id
  WHERE g.name IN (
    'user', 'user_id', 'end_user', 'user.id', 'userId', 'customer', 'customer_id', 'consumer',
    'api_key', 'api_key_id', 'api_key_name', 'api_key_alias', 'key', 'key_alias', 'virtual_key',
    'team', 'team_id', 'team_alias', 'project', 'project_id', 'organization', 'organization_id'
  )
)
SELECT
  request_key,
  coalesce(
    min(CASE WHEN name IN ('end_user', 'customer', 'customer_id') THEN value END),
    min(CASE WHEN name IN ('user', 'user_id', 'user.id', 'userId', 'consumer') THEN value END)
  ) AS user_name,
  coalesce(
    min(CASE WHEN name IN ('api_key', 'api_key_id', 'virtual_key') THEN value END),
    min(CASE WHEN name IN ('api_key_name', 'api_key_alias', 'key', 'key_alias') THEN value END)
  ) AS key_name,
  coalesce(
    min(CASE WHEN name IN ('team', 'team_id', 'team_alias') THEN value END),
    min(CASE WHEN name IN ('project', 'project_id') THEN value END),
    min(CASE WHEN name IN ('organization', 'organization_id') THEN value END)
  ) AS team
FROM told
GROUP BY request_key
