"""What part of a case is asked about, and whether there is anything in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analyzer.contract.types import Filters
from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError

_MODELS = 5
Say = Callable[[Any, str], str]


def require_some(engine: Engine, filters: Filters | None, say: Say) -> None:
    """Raise where filters leave no request of a case that has some: an answer would mislead."""
    if filters in (None, Filters()) or engine.value("SELECT count(*) FROM resolve_request"):
        return
    span = span_of(engine, say)
    if not span:
        return
    rows = engine.rows("SELECT DISTINCT model FROM request WHERE model IS NOT NULL ORDER BY 1")
    models = ", ".join(row["model"] for row in rows[:_MODELS]) or "not told"
    raise AnalyzerError(
        f"no request matches the filters{_asked(filters, say)}",
        f"the case: {span}; models: {models}",
    )


def _asked(filters: Filters | None, say: Say) -> str:
    since, until = (filters.since_ns, filters.until_ns) if filters else (None, None)
    if since is None and until is None:
        return ""
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
