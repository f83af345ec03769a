"""Runs analyses on the case itself: each becomes a temporary table when it is first asked for."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import duckdb

from analyzer.contract.types import Filters
from analyzer.engines.analysis import Analysis, all_analyses
from analyzer.errors import AnalyzerError
from analyzer.store.case import Case

_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"^-?\d+(\.\d+)?$")


class Engine:
    """One case, one set of filters; results are computed once and kept for the session."""

    def __init__(self, case: Case, filters: Filters | None = None) -> None:
        self._case = case
        self._filters = _filter_literals(filters or Filters())
        self._made: set[str] = set()

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
        self._case.run(f"CREATE TEMPORARY TABLE {name} AS {self.text(analysis)}")
        self._made.add(name)

    def text(self, analysis: Analysis) -> str:
        """The SQL of an analysis as it is run here, filters filled in."""
        return analysis.text(self._filters)


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
