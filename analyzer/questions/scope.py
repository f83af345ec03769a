"""What part of a case is asked about, and whether there is anything in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analyzer.contract.types import Filters
from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError, near

_SHOWN, _MOST = 5, 5_000
_NAMED = {"model": "model", "route": "route", "session": "session_id"}
"""Filters that name a value -> where it stands."""
Say = Callable[[Any, str], str]


def require_some(engine: Engine, filters: Filters | None, say: Say) -> None:
    """Raise where filters leave no request of a case that has some: an answer would mislead."""
    if filters in (None, Filters()) or engine.value("SELECT count(*) FROM resolve_request"):
        return
    span = span_of(engine, say)
    if not span:
        return
    for name, column in _NAMED.items():
        wanted = getattr(filters, name)
        known = [] if wanted is None else _values(engine, column)
        if wanted is not None and wanted not in known:
            raise AnalyzerError(
                f"no request matches the filters: none has the {name} {wanted!r}",
                _near_or_some(name, wanted, known),
            )
    models = ", ".join(_values(engine, "model")[:_SHOWN]) or "not told"
    raise AnalyzerError(
        f"no request matches the filters{_asked(filters, say)}",
        f"the case: {span}; models: {models}",
    )


def _values(engine: Engine, column: str) -> list[str]:
    rows = engine.rows(f"SELECT DISTINCT {column} AS v FROM request WHERE {column} IS NOT NULL")
    return sorted(row["v"] for row in rows)


def _near_or_some(name: str, wanted: str, known: list[str]) -> str:
    if meant := near(wanted, known[:_MOST]):
        return f"did you mean {' or '.join(meant)}?"
    more = ", …" if len(known) > _SHOWN else ""
    return f"{name}s of the case: {', '.join(known[:_SHOWN]) or 'none is told'}{more}"


def _asked(filters: Filters | None, say: Say) -> str:
    if filters is None:
        return ""
    named = [f"{name} {value}" for name in _NAMED if (value := getattr(filters, name)) is not None]
    since, until = filters.since_ns, filters.until_ns
    if since is None and until is None:
        return f" together: {' and '.join(named)}" if named else ""
    start = "the beginning" if since is None else say(since, "time_ns")
    end = "the end" if until is None else say(until, "time_ns")
    return f" ({start} to {end})"


def span_of(engine: Engine, say: Say) -> str:
    """First and last start of all requests of the case, whatever the filters; empty for none."""
    told = engine.rows(
        "SELECT min(start_ns) AS first_ns, max(start_ns) AS last_ns FROM resolve_told"
    )[0]
    if told["first_ns"] is None:
        return ""
    return f"{say(told['first_ns'], 'time_ns')} to {say(told['last_ns'], 'time_ns')}"
