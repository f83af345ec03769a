"""Is it fixed? Every ``done when`` is a query, asked of a later window or capture."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from analyzer.contract.types import Table
from analyzer.engines.duckdb import Engine
from analyzer.runbook._evaluate import coverage_of, steady
from analyzer.runbook._play import CriterionOf, Play

MET, NOT_MET, CANNOT_SAY = "met", "not met", "cannot say"

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "=": operator.eq,
}


def verify(plays: Iterable[Play], engine: Engine) -> Table:
    """One row a criterion: met, not met, or cannot say and why."""
    rows = [row for play in plays for row in _rows(play, engine)]
    return Table("analyze.verify", tuple(rows))


def _rows(play: Play, engine: Engine) -> list[dict[str, Any]]:
    why = _blind(play, engine)
    rows = []
    for one in play.front.done_when:
        value = None if why else steady(engine.value(one.sql))
        rows.append(
            {
                "rule": play.rule,
                "outcome": _outcome(one, value),
                "metric": one.metric,
                "value": value,
                "op": one.op,
                "target": one.value,
                "unit": one.unit,
                "why": why or ("the query gave no value" if value is None else ""),
            }
        )
    return rows


def _outcome(one: CriterionOf, value: Any) -> str:  # noqa: ANN401 - a scalar of any SQL type
    if value is None:
        return CANNOT_SAY
    return MET if _OPERATORS[one.op](float(value), one.value) else NOT_MET


def _blind(play: Play, engine: Engine) -> str:
    """What is missing to judge, empty when nothing is."""
    scope, lacking, _ = coverage_of(play, engine)
    if not scope:
        return "no requests to judge by"
    return "; ".join(f"{one.input} is missing: {one.how}" for one in lacking)
