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


@pytest.mark.parametrize("name", ANALYSES)
def test_columns_are_what_the_header_says(name, empty):
    rows = empty.rows(f"SELECT * FROM (DESCRIBE SELECT * FROM {name})")
    got = [(row["column_name"], row["column_type"]) for row in rows]
    assert got == [(column.name, column.type) for column in ANALYSES[name].returns]


@pytest.mark.parametrize("name", ANALYSES)
def test_needs_are_what_the_query_reads(name, empty):
    analysis = ANALYSES[name]
    read = duckdb.connect().get_table_names(empty.text(analysis))
    assert set(analysis.needs) == {one.lower() for one in read}


@pytest.mark.parametrize("name", ANALYSES)
def test_units_stand_in_names(name):
    for column in ANALYSES[name].returns:
        if column.name.endswith("_ns"):
            assert column.type in ("BIGINT", "DOUBLE"), column
            assert re.search(r"\bns\b", column.doc), f"{column.name}: say the unit in its comment"
        if column.name.endswith("_ratio"):
            assert column.type == "DOUBLE", column


@pytest.mark.parametrize("name", ANALYSES)
def test_parameters_are_used(name):
    for param in ANALYSES[name].params:
        assert f"${param.name}" in ANALYSES[name].sql


@pytest.mark.parametrize("name", ANALYSES)
def test_only_resolve_reads_what_sources_said(name):
    raw = {"request", "engine_sample"}
    if not name.startswith("resolve_"):
        assert not raw & set(ANALYSES[name].needs)


@pytest.mark.parametrize(
    ("name", "sql"),
    [pytest.param(n, a.sql, id=n) for n, a in ANALYSES.items()]
    + [pytest.param(r, q, id=f"{r}-{i}") for i, (r, q) in enumerate(_sql_of_plays())],
)
def test_sql_is_portable(name, sql):
    code = _STRINGS.sub("''", re.sub(r"--.*", "", sql))
    used = {word.lower() for word in re.findall(r"\b([A-Za-z_]\w*)\s*\(", code)}
    used -= {word.lower() for word in re.findall(r"\b(\w+)\s+AS\s*\(", code)}
    assert used - _KEYWORDS <= PORTABLE, used - _KEYWORDS - PORTABLE
    assert not _FOREIGN.search(code), _FOREIGN.search(code)
    assert not _BARE_FRACTION.search(code)


def test_a_header_that_lacks_something_is_refused():
    with pytest.raises(AnalyzerError, match="title, one grain, one needs"):
        parse("x_y", "-- A title.\n-- grain: one row\nSELECT 1")
    with pytest.raises(AnalyzerError, match="cannot read header line"):
        parse("x_y", "-- A.\n-- grain: a\n-- needs: request\n-- returns: broken\nSELECT 1")
    with pytest.raises(AnalyzerError, match=r"undeclared parameter \$nope"):
        parse("x_y", "-- A.\n-- grain: a\n-- needs: request\nSELECT $nope").text({})
