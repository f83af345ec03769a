"""Is it fixed? Every ``done when`` is a query, asked of a later window or capture."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from analyzer.contract.types import Criterion, Finding, Table
from analyzer.contract.units import singular
from analyzer.engines.duckdb import Engine
from analyzer.runbook._evaluate import (
    Say,
    coverage_of,
    evaluate,
    outcome_of,
    steady,
    target_of,
)  # fmt: skip
from analyzer.runbook._family import family_of
from analyzer.runbook._play import Play, play_named

MET, NOT_MET, CANNOT_SAY = "met", "not met", "cannot say"
BEFORE = "before"
NEVER = "never"

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "=": operator.eq,
}


@dataclass(frozen=True)
class Asked:
    """The plays to ask, when each one's finding holds in the case, and which found nothing."""

    plays: list[Play]
    windows: dict[str, tuple[int, int]]
    never: frozenset[str] = frozenset()
    fired: tuple[Finding, ...] = ()

    @property
    def criteria(self) -> tuple[tuple[str, Criterion], ...]:
        """Rule and criterion of every ``done when``."""
        told = {one.rule: one.done_when for one in self.fired}
        return tuple(
            (play.rule, criterion)
            for play in self.plays
            for criterion in told.get(play.rule)
            or [Criterion(c.metric, c.op, c.value, c.unit, c.sql) for c in play.front.done_when]
        )


def asked_of(rule: str | None, engine: Engine | None, say: Say) -> Asked:
    """What to hold a later time to: a rule, a family of them (those that fire), or all that fire.

    ``engine`` is the case in which they fired; without it that is not known.
    """
    plays = [] if rule is None else family_of(rule) or [play_named(rule)]
    if engine is None:
        return Asked(plays, {})
    if rule is None:
        found = [one for one in evaluate(engine, say).found if one.severity != "note"]
        plays = [play_named(one.rule) for one in found]
    else:
        told = [outcome_of(play, engine, say) for play in plays]
        found = [one for one in told if isinstance(one, Finding)]
    fired = {one.rule for one in found}
    plays = [play for play in plays if play.rule in fired] or plays
    windows = {one.rule: one.window for one in found if one.window}
    never = frozenset(play.rule for play in plays) - fired
    return Asked(plays, windows, never, tuple(found))


def verify(
    plays: Iterable[Play],
    engine: Engine,
    windows: Mapping[str, tuple[int, int]] | None = None,
    never: Collection[str] = (),
) -> Table:
    """One row a criterion: met, not met, or cannot say and why.

    ``windows`` tells when each finding held: what was met before it began proves no fix. ``never``
    names the rules that found nothing in the case, where nothing was to be fixed.
    """
    told = engine.rows(
        "SELECT min(start_ns) AS first_ns, max(start_ns) AS last_ns FROM resolve_request"
    )[0]
    asked = None if told["first_ns"] is None else (told["first_ns"], told["last_ns"])
    rows = [
        row
        for play in plays
        for row in _rows(
            play,
            engine,
            NEVER if play.rule in never else _when(asked, (windows or {}).get(play.rule)),
        )
    ]
    return Table("analyze.verify", tuple(rows))


def _when(asked: tuple[int, int] | None, held: tuple[int, int] | None) -> str | None:
    """Where the requests that are judged lie, seen from the finding's own window."""
    if asked is None or held is None:
        return None
    if asked[1] < held[0]:
        return BEFORE
    return "after" if asked[0] >= held[1] else "during"


def _rows(play: Play, engine: Engine, when: str | None) -> list[dict[str, Any]]:
    why = _blind(play, engine)
    rows = []
    for one in play.front.done_when:
        value = None if why else steady(engine.value(one.sql))
        target = one.value if why else target_of(one, engine)
        rows.append(
            {
                "rule": play.rule,
                "outcome": _outcome(one.op, target, value),
                "metric": one.metric,
                "value": value,
                "op": one.op,
                "target": target,
                "unit": one.unit,
                "when": when,
                "why": why or ("the query gave no value" if value is None else ""),
            }
        )
    return rows


def _outcome(op: str, target: float, value: Any) -> str:  # noqa: ANN401 - a scalar of any SQL type
    if value is None:
        return CANNOT_SAY
    return MET if _OPERATORS[op](float(value), target) else NOT_MET


def _blind(play: Play, engine: Engine) -> str:
    """What is missing to judge and how to record it; empty when nothing is."""
    scope, lacking, _ = coverage_of(play, engine)
    if not scope:
        return f"there is no {singular(play.front.unit)} to judge by"
    return "; ".join(f"it needs the {one.input}. To record it: {one.how}" for one in lacking)
