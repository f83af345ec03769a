"""Every analysis keeps the promises of its header, and stays portable."""

from __future__ import annotations

import re

import duckdb
import pytest
from helpers import engine_of

from analyzer.engines.analysis import all_analyses, parse
from analyzer.errors import AnalyzerError
from analyzer.runbook._play import all_plays
from analyzer.store.case import open_case

ANALYSES = all_analyses()

# Functions that give the same rows on DuckDB and Spark as they stand.
PORTABLE = {
    "abs", "avg", "cast", "coalesce", "concat", "corr", "count", "first_value", "greatest", "lag",
    "last_value", "lead", "least", "length", "ln", "max", "max_by", "min", "min_by", "nullif",
    "percentile_cont", "power",
    "round", "row_number", "substr", "sum", "try_cast", "var_pop",
}  # fmt: skip
_KEYWORDS = {
    "and", "as", "by", "filter", "from", "group", "in", "join", "not", "on", "or", "over", "select",
    "then", "when", "where", "with", "else", "values", "exists", "decimal",
}  # fmt: skip
_STRINGS = re.compile(r"'(?:[^']|'')*'")
_FOREIGN = re.compile(
    r"\b(asof|qualify|group by all|ilike|unnest|list|struct|json\w*|epoch\w*|time_bucket)\b|::|//",
    re.IGNORECASE,
)
_BARE_FRACTION = re.compile(r"(?:avg|sum)\s*\([^()]*\bthen\s+\d+\.\d", re.IGNORECASE)


def _sql_of_plays():
    for play in all_plays().values():
        front = play.front
        yield play.rule, front.scope
        yield play.rule, front.touched
        for sql in (front.magnitude.sql, front.fires_when.weighing, front.confidence_sql):
            if sql:
                yield play.rule, sql
        for sql in (front.cost.sql, front.cost.whole) if front.cost else ():
            if sql:
                yield play.rule, sql
        for part in (*front.needs, *front.evidence, *front.done_when):
            yield play.rule, part.sql


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    path = tmp_path_factory.mktemp("empty") / "case.duckdb"
    open_case(path, write=True).close()
    with engine_of(str(path)) as engine:
        yield engine


def test_columns_are_what_the_header_says(empty):
    wrong = {}
    for name, analysis in ANALYSES.items():
        rows = empty.rows(f"SELECT * FROM (DESCRIBE SELECT * FROM {name})")
        got = [(row["column_name"], row["column_type"]) for row in rows]
        if got != [(column.name, column.type) for column in analysis.returns]:
            wrong[name] = got
    assert not wrong


def test_needs_are_what_the_query_reads(empty):
    connection = duckdb.connect()
    read = {
        name: {one.lower() for one in connection.get_table_names(empty.text(analysis))}
        for name, analysis in ANALYSES.items()
    }
    assert not {name: tables for name, tables in read.items() if tables != {*ANALYSES[name].needs}}


def test_units_stand_in_names():
    types = {"_ns": ("BIGINT", "DOUBLE"), "_ratio": ("DOUBLE",)}
    columns = [(name, column) for name, one in ANALYSES.items() for column in one.returns]
    assert not [
        (name, column)
        for name, column in columns
        for end, allowed in types.items()
        if column.name.endswith(end) and column.type not in allowed
    ]
    assert not [
        (name, column)
        for name, column in columns
        if column.name.endswith("_ns") and not re.search(r"\bns\b", column.doc)
    ], "say the unit in the comment"


def test_parameters_are_used():
    assert not [
        (name, param.name)
        for name, analysis in ANALYSES.items()
        for param in analysis.params
        if f"${param.name}" not in analysis.sql
    ]


def test_only_resolve_reads_what_sources_said():
    raw = {"request", "engine_sample"}
    assert not {
        name: raw & set(analysis.needs)
        for name, analysis in ANALYSES.items()
        if not name.startswith("resolve_") and raw & set(analysis.needs)
    }


def _not_portable(sql):
    """What of a query is not in the portable subset."""
    code = _STRINGS.sub("''", re.sub(r"--.*", "", sql))
    used = {word.lower() for word in re.findall(r"\b([A-Za-z_]\w*)\s*\(", code)}
    used -= {word.lower() for word in re.findall(r"\b(\w+)\s+AS\s*\(", code)}
    foreign = [match[0] for way in (_FOREIGN, _BARE_FRACTION) for match in way.finditer(code)]
    return sorted(used - _KEYWORDS - PORTABLE) + foreign


def test_sql_is_portable():
    queries = [(name, one.sql) for name, one in ANALYSES.items()]
    wrong = [
        (name, found) for name, sql in [*queries, *_sql_of_plays()] if (found := _not_portable(sql))
    ]
    assert not wrong


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT md5(x) FROM t", "SELECT x::INT FROM t", "SELECT 7 // 2",
        "SELECT * FROM a ASOF JOIN b",
        "SELECT avg(CASE WHEN x THEN 1.0 ELSE 0 END) FROM t",
    ],
)  # fmt: skip
def test_sql_that_is_not_portable_is_seen(sql):
    assert _not_portable(sql)
    assert not _not_portable("WITH t AS (SELECT 1 AS x) SELECT sum(x), 'a::b md5(' FROM t")


def test_a_header_that_lacks_something_is_refused():
    with pytest.raises(AnalyzerError, match="title, one grain, one needs"):
        parse("x_y", "-- A title.\n-- grain: one row\nSELECT 1")
    with pytest.raises(AnalyzerError, match="cannot read header line"):
        parse("x_y", "-- A.\n-- grain: a\n-- needs: request\n-- returns: broken\nSELECT 1")
    with pytest.raises(AnalyzerError, match=r"undeclared parameter \$nope"):
        parse("x_y", "-- A.\n-- grain: a\n-- needs: request\nSELECT $nope").text({})
