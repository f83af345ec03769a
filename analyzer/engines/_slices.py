"""Runs what reads chunks for some requests at a time, so that memory does not grow with the case.

A hundred chunks a request make ``chunk`` the one table that is far larger than memory, and sorting
or taking percentiles of all of it at once spills several times its size. No analysis needs that:
each looks at the chunks of one request, or sums them up by request.
"""

from __future__ import annotations

import re

from analyzer.store.case import Case

CHUNKS = "chunk"
NEEDS = ("resolve_told", "resolve_instance")
"""Analyses that say which request a row of a source belongs to."""

_AT_ONCE = 8_000_000
"""Chunks of a slice: less than a GB while gaps are sorted and their percentiles taken. Each slice
joins the rows of all requests again, so small ones cost time."""

_NONE = (-1, "FALSE")
"""A slice without chunks."""

_READS = re.compile(r"\b(FROM|JOIN) chunk\b", re.IGNORECASE)
_PLAN = """
CREATE TEMPORARY TABLE chunk_slice AS
WITH counted AS (
  SELECT source_id, record, count(*) AS chunks FROM chunk GROUP BY source_id, record
),
keyed AS (
  SELECT c.source_id, c.record, min(i.request_key) AS request_key, min(c.chunks) AS chunks
  FROM counted AS c
  JOIN resolve_told AS t ON c.source_id = t.source_id AND c.record = t.record
  JOIN resolve_instance AS i ON t.row_id = i.row_id
  GROUP BY c.source_id, c.record
),
summed AS (
  SELECT
    source_id, record, chunks,
    CAST(SUM(chunks) OVER (ORDER BY request_key) AS BIGINT) AS up_to,
    CAST(SUM(chunks) OVER (PARTITION BY request_key) AS BIGINT) AS own
  FROM keyed
)
SELECT source_id, record, (up_to - own) // {at_once} AS slice FROM summed
"""
_PART = """
CREATE OR REPLACE TEMPORARY VIEW chunk_part AS
SELECT c.* FROM chunk AS c
JOIN chunk_slice AS s ON c.source_id = s.source_id AND c.record = s.record
WHERE s.slice = {slice} AND {where}
"""
# Rows of a request lie together: with the ends of a slice DuckDB reads no more than its part.
_ENDS = """
SELECT slice, concat(
  'c.source_id BETWEEN ', min(source_id), ' AND ', max(source_id),
  ' AND c.record BETWEEN ', min(record), ' AND ', max(record)
) FROM chunk_slice GROUP BY slice ORDER BY slice
"""
Slice = tuple[int, str]
"""Its number, and where its rows lie at most."""


def are_many(case: Case) -> bool:
    """Whether a case has more chunks than are read at once."""
    ((count,),) = case.run("SELECT count(*) FROM chunk")
    return bool(count > _AT_ONCE)


def plan(case: Case) -> list[Slice]:
    """Give all chunks of a request the same slice; the slices there are."""
    case.run(_PLAN.format(at_once=_AT_ONCE))
    return [(number, where) for number, where in case.run(_ENDS)]


def create(case: Case, name: str, sql: str, slices: list[Slice]) -> None:
    """Make the table ``name`` of an analysis, slice by slice."""
    part = _READS.sub(r"\1 chunk_part", sql)
    how = f"CREATE TEMPORARY TABLE {name} AS"
    for number, where in slices or [_NONE]:
        case.run(_PART.format(slice=number, where=where))
        case.run(f"{how} {part}")
        how = f"INSERT INTO {name}"
