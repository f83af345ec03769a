"""Runs analyses on the case itself: each becomes a temporary table when it is first asked for."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb
import pyarrow as pa

from analyzer.contract.types import Filters
from analyzer.engines import _slices
from analyzer.engines.analysis import Analysis, all_analyses
from analyzer.errors import AnalyzerError
from analyzer.store.case import Case

_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"^-?\d+(\.\d+)?$")
_PASSED = "passed_through"
_ARROW = {
    "BIGINT": pa.int64(),
    "INTEGER": pa.int32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "VARCHAR": pa.string(),
}


class Engine:
    """One case, one set of filters; results are computed once and kept for the session."""

    def __init__(
        self, case: Case, filters: Filters | None = None, told: Mapping[str, Any] | None = None
    ) -> None:
        """``told``: what the user says of the deployment, which beats the case."""
        self._case = case
        self._filters = _filter_literals(filters or Filters())
        said = json.dumps(dict(told), sort_keys=True) if told else None
        self._filters["told"] = f"CAST({literal(said)} AS VARCHAR)"
        self._made: set[str] = set()
        self._slices: list[_slices.Slice] | None = None

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Rows of a query over tables and analyses; what it needs is computed first."""
        try:
            self._prepare(sql)
            cursor = self._case.connection.execute(sql)
            names = _unlike([column[0] for column in cursor.description or ()])
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except (duckdb.Error, UnicodeError) as error:
            raise AnalyzerError(
                f"the query failed: {_first_line(error)}", "analyze schema lists the tables"
            ) from None
        except AttributeError:  # DuckDB gives no result at all for an empty text
            raise AnalyzerError("the query is empty", "analyze sql 'SELECT ...'") from None

    def value(self, sql: str) -> Any:  # noqa: ANN401 - a scalar of any SQL type
        """The single value of a query of one row and column; None for no row."""
        rows = self.rows(sql)
        return next(iter(rows[0].values())) if rows else None

    def stream(self, sql: str, most: int) -> Iterator[list[dict[str, Any]]]:
        """The same rows, at most so many at a time; nothing else may be asked before the end."""
        self._prepare(sql)
        cursor = self._case.connection.execute(sql)
        names = _unlike([column[0] for column in cursor.description or ()])
        while some := cursor.fetchmany(most):
            yield [dict(zip(names, row, strict=True)) for row in some]

    def _prepare(self, sql: str) -> None:
        # DuckDB cannot name the tables of a query before they exist (USING needs their columns), so
        # every analysis whose name stands in the text is made; a name too many costs only time.
        for name in sorted({word.lower() for word in _WORD.findall(sql)}):
            self._make(name, ())

    def _make(self, name: str, path: tuple[str, ...]) -> None:
        analysis = all_analyses().get(name)
        if analysis is None or name in self._made:
            return
        if name in path:
            raise AnalyzerError(f"analyses need each other: {' -> '.join([*path, name])}")
        for need in analysis.needs:
            self._make(need, (*path, name))
        if analysis.python is not None:
            self._pass_through(analysis)
        elif _slices.CHUNKS in analysis.needs and _slices.are_many(self._case):
            self._make_in_slices(analysis)
        else:
            self._case.run(f"CREATE TEMPORARY TABLE {name} AS {self.text(analysis)}")
        self._made.add(name)

    def _make_in_slices(self, analysis: Analysis) -> None:
        if self._slices is None:
            for need in _slices.NEEDS:
                self._make(need, ())
            self._slices = _slices.plan(self._case)
        _slices.create(self._case, analysis.name, self.text(analysis), self._slices)

    def _pass_through(self, analysis: Analysis) -> None:
        """Python on small results only: the rows are held in memory on their way."""
        cursor = self._case.connection.execute(self.text(analysis))
        names = [column[0] for column in cursor.description or ()]
        told = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        held = _columns(analysis, list(analysis.through()(told)))
        named = ((one.name, one.type) for one in analysis.returns)
        cast = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in named)
        self._case.connection.register(_PASSED, held)
        try:
            self._case.run(
                f"CREATE TEMPORARY TABLE {analysis.name} AS SELECT {cast} FROM {_PASSED}"
            )
        finally:
            self._case.connection.unregister(_PASSED)

    def text(self, analysis: Analysis) -> str:
        """The SQL of an analysis as it is run here, filters filled in."""
        return analysis.text(self._filters)


def statements(sql: str) -> int:
    """How many statements a text holds; one that is none counts as one, and fails by itself."""
    try:
        return len(duckdb.extract_statements(sql))
    except (duckdb.Error, UnicodeError):
        return 1


def _columns(analysis: Analysis, rows: list[tuple[Any, ...]]) -> pa.Table:
    """Rows as columns; what Arrow has no exact type for goes as text, which the query casts."""
    names = [one.name for one in analysis.returns]
    cells = zip(*rows, strict=True) if rows else ([] for _ in names)
    arrays = []
    for one, told in zip(analysis.returns, cells, strict=True):
        kind = _ARROW.get(one.type)
        values = told if kind else [None if cell is None else str(cell) for cell in told]
        arrays.append(pa.array(values, type=kind or pa.string()))
    return pa.table(arrays, names=names)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _unlike(names: list[str]) -> list[str]:
    """Column names that differ: a second ``a`` becomes ``a_2``."""
    seen: Counter[str] = Counter()
    unlike = []
    for name in names:
        seen[name] += 1
        unlike.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unlike


def literal(value: object) -> str:
    """A typed SQL literal; text is quoted, so a filter cannot become code."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)) and _NUMBER.match(repr(value)):
        return repr(value)
    text = str(value).replace("'", "''")
    return f"'{text}'"


def _filter_literals(filters: Filters) -> dict[str, str]:
    return {
        "since_ns": f"CAST({literal(filters.since_ns)} AS BIGINT)",
        "until_ns": f"CAST({literal(filters.until_ns)} AS BIGINT)",
        "model": f"CAST({literal(filters.model)} AS VARCHAR)",
        "route": f"CAST({literal(filters.route)} AS VARCHAR)",
        "session": f"CAST({literal(filters.session)} AS VARCHAR)",
    }
