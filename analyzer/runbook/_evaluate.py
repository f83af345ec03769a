"""Asks a case every play's question. Three outcomes: found, clear, cannot say; never two."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from analyzer.contract.types import (
    CONFIDENCES,
    SEVERITIES,
    Action,
    CannotSay,
    Clear,
    Criterion,
    Evidence,
    Finding,
    Findings,
    Magnitude,
    Missing,
)
from analyzer.contract.units import agreeing
from analyzer.engines.duckdb import Engine
from analyzer.runbook._chart import chart_of
from analyzer.runbook._play import CriterionOf, Front, Play, all_plays
from analyzer.runbook._touched import Touched, touched_by

ENOUGH = 0.9
"""Share of the requests in scope that must carry the inputs before "nothing there" means clear."""

_NOTHING = "the case holds none; analyze formats says which logs tell them"
_SLOT = re.compile(r"\{(\w+)\}")
_CLAUSE = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
UNTOLD = "(not told)"
"""In a sentence that should have left out what this case does not hold."""
_ONE = "\0"
"""Stands behind a count of 1 while the rest of a sentence is filled in."""

Say = Callable[[Any, str], str]
"""Writes a value with its unit for people."""


def evaluate(engine: Engine, say: Say) -> Findings:
    """Every rule's outcome, findings by severity, then share, then id."""
    outcomes = [outcome_of(play, engine, say) for play in all_plays().values()]
    found = [one for one in outcomes if isinstance(one, Finding)]
    found.sort(key=lambda one: (SEVERITIES.index(one.severity), -one.share, one.rule))
    return Findings(
        tuple(found),
        tuple(one for one in outcomes if isinstance(one, Clear)),
        tuple(one for one in outcomes if isinstance(one, CannotSay)),
    )


def outcome_of(play: Play, engine: Engine, say: Say) -> Finding | Clear | CannotSay:
    """One rule's outcome in this case."""
    title = play.front.title
    scope, lacking, coverage = coverage_of(play, engine)
    if not scope:
        nothing = Missing(f"{play.front.unit} it could look at", _NOTHING)
        return CannotSay(play.rule, lacking or (nothing,), 0.0, title)
    touched = touched_by(play.front, engine)
    if touched.requests:
        return _finding(play, engine, say, touched, coverage)
    if lacking:
        return CannotSay(play.rule, lacking, coverage, title)
    return Clear(play.rule, coverage, title)


def coverage_of(play: Play, engine: Engine) -> tuple[int, tuple[Missing, ...], float]:
    """Requests in scope, inputs that too few of them carry, and the smallest share that does."""
    front = play.front
    scope = int(engine.value(front.scope) or 0)
    if not scope:
        unmet = (need for need in front.needs if not engine.value(need.sql))
        return 0, tuple(Missing(need.input, need.how) for need in unmet), 0.0
    covered = [(engine.value(need.sql) or 0) / scope for need in front.needs]
    lacking = tuple(
        Missing(need.input, need.how)
        for need, share in zip(front.needs, covered, strict=True)
        if share < ENOUGH
    )
    return scope, lacking, min(covered, default=1.0)


def _finding(play: Play, engine: Engine, say: Say, touched: Touched, coverage: float) -> Finding:
    front = play.front
    size = front.magnitude
    value: float = touched.excess / touched.requests * size.scale
    if size.sql is not None:
        value = float(engine.value(size.sql) or 0)
    if size.unit != "s" and value.is_integer():
        value = int(value)
    cost, of_cost = _cost(front, engine)
    share = touched.excess / touched.total if front.is_time and touched.total else of_cost
    # A share of requests is no share of time, but weighs as one.
    weight = value if size.unit == "ratio" and not size.time else share
    share, value = steady(min(1.0, max(0.0, share))), steady(value)
    evidence = tuple(
        Evidence(one.label, steady(engine.value(one.sql)), one.unit, one.sql)
        for one in front.evidence
    )
    words = {
        one.id: None if got.value in (None, "") else say(got.value, got.unit)
        for one, got in zip(front.evidence, evidence, strict=True)
    } | {
        "requests": say(touched.requests, ""),
        "magnitude": say(value, size.unit),
        "share": say(share, "ratio"),
        "where": touched.where or "the whole case",
    }  # fmt: skip
    return Finding(
        rule=play.rule,
        severity=_severity(play, _weighing(play, engine, touched), touched, weight, value),
        segment=front.segment,
        title=front.title,
        requests=touched.requests,
        magnitude=Magnitude(value, size.unit, size.of),
        share=share,
        confidence=_confidence(front, engine),
        coverage=min(1.0, coverage),
        cost_usd=cost,
        where=touched.where,
        window=touched.window,
        evidence=evidence,
        actions=tuple(
            Action(do, one.owner, _fill(one.expect, words))
            for one in front.actions
            if (do := _fill(one.do, words))
        ),
        done_when=tuple(
            Criterion(one.metric, one.op, target_of(one, engine), one.unit, one.sql)
            for one in front.done_when
        ),
        examples=touched.examples,
        brief=_fill(front.brief, words),
        symptom=_fill(play.symptom, words),
        cause=_fill(play.cause, words),
        contradicts=_fill(play.contradicts, words),
        how_computed=front.touched,
        record_it=front.record,
        chart=chart_of(front.chart, engine) if front.chart else None,
        unit=front.unit,
    )


def target_of(one: CriterionOf, engine: Engine) -> float:
    """What a criterion's metric must be, which the case may decide."""
    told = engine.value(one.value_sql) if one.value_sql else None
    return one.value if told is None else float(steady(float(told)))


def _cost(front: Front, engine: Engine) -> tuple[str | None, float]:
    """Dollars to nine decimals, and the share of all cost where that is the finding's share."""
    told = engine.value(front.cost.sql) if front.cost else None
    if front.cost is None or told is None:
        return None, 0.0
    whole = engine.value(front.cost.whole) if front.cost.whole and front.is_share_of_cost else None
    return f"{Decimal(told):.9f}", float(told) / float(whole) if whole else 0.0


def steady(value: Any) -> Any:  # noqa: ANN401 - a scalar of any SQL type
    """Nine significant digits: threads add floats in any order, and the last bits show it."""
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _confidence(front: Front, engine: Engine) -> str:
    told = engine.value(front.confidence_sql) if front.confidence_sql else None
    return str(told) if told in CONFIDENCES else front.confidence


def _weighing(play: Play, engine: Engine, touched: Touched) -> int:
    sql = play.front.fires_when.weighing
    return touched.requests if sql is None else int(engine.value(sql) or 0)


def _severity(play: Play, weighing: int, touched: Touched, weight: float, value: float) -> str:
    rule = play.front.fires_when
    relative = touched.excess / touched.whole if touched.whole else 1.0
    few = weighing < rule.requests or value < rule.smallest
    if few or relative < rule.relative:
        return "note"
    reached = "critical" if weight >= rule.critical_share else "warning"
    return max(reached, rule.at_most, key=SEVERITIES.index)


def _fill(text: str, words: dict[str, str | None]) -> str:
    """``{name}`` becomes the evidence of that id; an unknown one is a mistake of the play.

    ``[[...]]`` is left out where it names evidence that this case does not hold. Plays speak of
    many: where a bare count is 1, the noun and verb after it agree.
    """

    def put(match: re.Match[str]) -> str:
        value = words[match[1]]
        return f"1{_ONE}" if value == "1" else value or UNTOLD

    def keep(match: re.Match[str]) -> str:
        told = all(words[name] is not None for name in _SLOT.findall(match[1]))
        return match[1] if told else ""

    kept = re.sub(" {2,}", " ", _CLAUSE.sub(keep, text)).strip()
    first, *rest = _SLOT.sub(put, kept).split(_ONE)
    return first + "".join(map(agreeing, rest))
