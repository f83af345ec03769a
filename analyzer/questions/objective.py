"""Objectives: how many requests keep them, at what rate, and which part of the time breaks them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from analyzer.contract.outputs import BINS_NS
from analyzer.contract.types import Criterion, Lane, Objectives
from analyzer.engines.duckdb import Engine
from analyzer.questions import timeline
from analyzer.questions._goal import Goal, goals_of
from analyzer.questions.latency import group_of

ALL = "all of them"
"""The row of requests that keep every objective."""

ENOUGH = Decimal("0.9")
"""Share of the requests that must tell the metric before an objective counts as met."""

RULE = "slo"
"""What stands for a rule's name where an objective is verified."""

MET, NOT_MET, CANNOT_SAY = "met", "not met", "cannot say"
_PARTS = {
    "ttft": ("queue", "prefill", "network_ttft", "unattributed_ttft"),
    "e2e": ("queue", "prefill", "decode", "network", "unattributed"),
}
_Row = dict[str, Any]


def objectives(
    engine: Engine, slos: Sequence[str], by: Sequence[str] = (), *, drawn: bool = False
) -> Objectives:
    """Every objective, and all of them together, by group; without groups the budget too.

    ``drawn`` adds how they were kept over time.
    """
    goals = goals_of(slos)
    span = timeline.window_of(engine)
    rows = tuple(_attained(engine, goals, by, span))
    budget = () if by else tuple(row for goal in goals for row in _budget(engine, goal))
    return Objectives(
        kind="analyze.latency.slo",
        rows=rows,
        notes=() if by else tuple(_notes(rows)),
        budget=budget,
        lane=_over_time(engine, goals, timeline.width_ns(span)) if drawn and span else None,
    )


# --- attainment and goodput ----------------------------------------------------------------------


def _names(goals: Sequence[Goal]) -> list[str]:
    return [goal.text for goal in goals] + ([ALL] if len(goals) > 1 else [])


def _kept(goals: Sequence[Goal]) -> list[str]:
    """One test a goal, and their conjunction: a miss decides it, whatever else is unknown."""
    tests = [goal.sql for goal in goals]
    return tests + ([" AND ".join(f"({test})" for test in tests)] if len(goals) > 1 else [])


def _attained(
    engine: Engine, goals: Sequence[Goal], by: Sequence[str], span: tuple[int, int] | None
) -> list[_Row]:
    groups = [group_of(name) for name in by]
    chosen = "".join(f"{expression} AS {alias}, " for expression, alias in groups)
    keys = "".join(f"{alias}, " for _, alias in groups)
    tests = _kept(goals)
    kept = ", ".join(f"{test} AS kept_{i}" for i, test in enumerate(tests))
    counts = ", ".join(
        f"count(*) FILTER (WHERE kept_{i}) AS met_{i}, "
        f"count(*) FILTER (WHERE NOT kept_{i}) AS missed_{i}, "
        f"count(output_tokens) FILTER (WHERE kept_{i}) AS told_{i}, "
        f"CAST(SUM(output_tokens) FILTER (WHERE kept_{i}) AS BIGINT) AS tokens_{i}"
        for i in range(len(tests))
    )
    values = "".join(
        f", {goal.percentile_sql} FILTER (WHERE kept_{i} IS NOT NULL) AS value_{i}"
        for i, goal in enumerate(goals)
        if goal.percent < Decimal(100)
    )
    rows = engine.rows(
        f"""WITH held AS (
  SELECT *, {kept} FROM (
    SELECT {chosen}o.*
    FROM latency_objective AS o JOIN resolve_request AS r ON o.request_key = r.request_key
  ) AS told
)
SELECT {keys}count(*) AS every, count(*) FILTER (WHERE failed) AS failed, {counts}{values}
FROM held {f"GROUP BY {keys[:-2]} ORDER BY {_ordered(keys)}" if keys else ""}"""
    )
    return [row for told in rows if told["every"] for row in _rows(told, goals, by, span)]


def _ordered(keys: str) -> str:
    return ", ".join(f"{name} NULLS LAST" for name in keys[:-2].split(", "))


def _rows(
    told: _Row, goals: Sequence[Goal], by: Sequence[str], span: tuple[int, int] | None
) -> list[_Row]:
    """The rows of one group."""
    group = {alias: told[alias] for _, alias in map(group_of, by)}
    length_ns = _length(group, by, span)
    rows: list[_Row] = []
    for i, name in enumerate(_names(goals)):
        met, missed = told[f"met_{i}"], told[f"missed_{i}"]
        judged = met + missed
        goal = goals[i] if i < len(goals) else None
        outcomes = [row["outcome"] for row in rows]
        rows.append(
            group
            | {
                "slo": name,
                "outcome": _outcome(goal.percent / 100, met, missed, told["every"])
                if goal
                else min(outcomes, key=(NOT_MET, CANNOT_SAY, MET).index),
                "requests": judged,
                "met": met,
                "missed": missed,
                "failed": told["failed"],
                "met_ratio": met / judged if judged else None,
                "target_ratio": float(goal.percent / 100) if goal else None,
                "value_ns": _value(told.get(f"value_{i}")),
                "without": told["every"] - judged,
                "coverage": judged / told["every"],
                "goodput_per_s": met / (length_ns / 1e9) if length_ns else None,
                "goodput_tokens_per_s": told[f"tokens_{i}"] / (length_ns / 1e9)
                if length_ns and met and told[f"told_{i}"] >= ENOUGH * met
                else None,
                "length_ns": length_ns,
            }
        )
    return rows


def _length(group: _Row, by: Sequence[str], span: tuple[int, int] | None) -> int | None:
    """Time over which a rate counts: of the case, or of the bin as far as the case reaches."""
    if span is None:
        return None
    first, last = span
    for name in by:
        if name in BINS_NS:
            start = group[f"{name}_ns"]
            if start is None:
                return None
            first, last = max(first, start), min(last, start + BINS_NS[name])
    return last - first if last > first else None


def _value(value: float | None) -> int | None:
    """A percentile; among failures there is none, nor among answers without a second token."""
    return None if value is None or not 0 <= value < float("inf") else int(value)


def _outcome(share: Decimal, met: int, missed: int, every: int) -> str:
    """Met, not met, or cannot say; what is unknown can never turn enough misses into met."""
    if every - missed < share * every:
        return NOT_MET
    if met + missed < ENOUGH * every:
        return CANNOT_SAY
    return MET if met >= share * (met + missed) else NOT_MET


def _notes(rows: Sequence[_Row]) -> list[str]:
    out = []
    if rows and rows[0]["failed"]:
        failed = rows[0]["failed"]
        misses = "request failed: it misses" if failed == 1 else "requests failed: each misses"
        out.append(f"{failed:,} {misses} every objective.")
    for row in rows:
        if row["without"] and row["slo"] != ALL:
            verb = "request does" if row["without"] == 1 else "requests do"
            metric = row["slo"].split(" <")[0].split(" ")[-1]
            out.append(f"{row['without']:,} {verb} not tell {metric}: not judged by {row['slo']}.")
    if any(row["slo"].split(" <")[0].endswith("itl") for row in rows):
        out.append("itl is the median gap between the chunks of an answer, not between tokens.")
    return out


# --- what breaks them ----------------------------------------------------------------------------


def _budget(engine: Engine, goal: Goal) -> list[_Row]:
    """Parts of the time of those that missed, against those that met: the means add up exactly."""
    test = goal.sql
    if goal.metric == "tpot":
        return _pace(engine, goal)
    parts = _PARTS.get(goal.metric)
    if parts is None:
        return []
    means = ", ".join(
        f"avg(CAST(coalesce({part}_ns, 0) AS DOUBLE)) FILTER (WHERE kept) AS met_{part}, "
        f"avg(CAST(coalesce({part}_ns, 0) AS DOUBLE)) FILTER (WHERE NOT kept) AS missed_{part}, "
        f"count({part}_ns) FILTER (WHERE NOT kept) AS known_{part}"
        for part in parts
    )
    (row,) = engine.rows(
        f"""SELECT count(*) FILTER (WHERE NOT kept) AS missed, {means}
FROM (SELECT *, {test} AS kept FROM latency_objective WHERE NOT failed AND {goal.metric}_ns >= 0)"""
    )
    return _spent(goal, row, parts)


def _pace(engine: Engine, goal: Goal) -> list[_Row]:
    """Of the time per token, what one long gap takes; where gaps are not told, all is one part."""
    (row,) = engine.rows(
        f"""WITH held AS (
  SELECT *, {goal.sql} AS kept FROM latency_objective WHERE NOT failed AND tpot_ns >= 0
)
SELECT count(*) FILTER (WHERE NOT kept) AS missed, count(*) AS every, count(one_gap_ns) AS told,
  avg(coalesce(one_gap_ns, 0)) FILTER (WHERE kept) AS met_gap,
  avg(coalesce(one_gap_ns, 0)) FILTER (WHERE NOT kept) AS missed_gap,
  count(one_gap_ns) FILTER (WHERE NOT kept) AS known_gap,
  avg(tpot_ns) FILTER (WHERE kept) AS met_decode,
  avg(tpot_ns) FILTER (WHERE NOT kept) AS missed_decode,
  count(*) FILTER (WHERE NOT kept) AS known_decode
FROM held"""
    )
    if row["told"] < ENOUGH * row["every"]:
        return _spent(goal, row, ("decode",))
    for side in ("met", "missed"):
        whole, gap = row[f"{side}_decode"], row[f"{side}_gap"]
        row[f"{side}_pace"] = None if whole is None else whole - gap
    row["known_pace"] = row["known_gap"]
    return _spent(goal, row, ("pace", "gap"))


_SEGMENTS = {
    "network_ttft": "network",
    "unattributed_ttft": "unattributed",
    "gap": "decode, its longest gap",
    "pace": "decode, all other tokens",
}


def _spent(goal: Goal, row: _Row, parts: Sequence[str]) -> list[_Row]:
    """One row a part, the largest first; no rows where nothing missed."""
    if not row["missed"]:
        return []
    one_sided = row[f"met_{parts[0]}"] is None
    excesses = {
        part: row[f"missed_{part}"] - (0 if one_sided else row[f"met_{part}"]) for part in parts
    }
    whole = sum(excesses.values())
    rows = [
        {
            "slo": goal.text,
            "segment": _SEGMENTS.get(part, part),
            "requests": row["missed"],
            "missed_mean_ns": round(row[f"missed_{part}"]),
            "met_mean_ns": None if one_sided else round(row[f"met_{part}"]),
            "excess_ns": None if one_sided else round(excesses[part]),
            "excess_share": excesses[part] / whole if whole > 0 else None,
            "coverage": row[f"known_{part}"] / row["missed"],
        }
        for part in parts
    ]
    return sorted(rows, key=lambda one: -(one["excess_share"] or 0))


# --- over time, and as a criterion ---------------------------------------------------------------


def _over_time(engine: Engine, goals: Sequence[Goal], bin_ns: int) -> Lane:
    """Share of the judged requests that keep each, by the bin they start in."""
    tests = _kept(goals)
    kept = ", ".join(f"{test} AS kept_{i}" for i, test in enumerate(tests))
    shares = ", ".join(
        f"CAST(count(*) FILTER (WHERE kept_{i}) AS DOUBLE) / nullif(count(kept_{i}), 0) AS k_{i}"
        for i in range(len(tests))
    )
    rows = engine.rows(
        f"""WITH held AS (
  SELECT start_ns - start_ns % {bin_ns} AS bin_at, {kept}
  FROM latency_objective WHERE start_ns IS NOT NULL
)
SELECT bin_at, {shares} FROM held GROUP BY bin_at ORDER BY bin_at"""
    )
    points = [
        {"start_ns": row["bin_at"], "group": name, "value": row[f"k_{i}"]}
        for row in rows
        for i, name in enumerate(_names(goals))
        if row[f"k_{i}"] is not None
    ]
    return Lane("Share of requests that keep the objective", "ratio", bin_ns, tuple(points))


def asked_of(slos: Sequence[str]) -> tuple[tuple[str, Criterion], ...]:
    """The criteria of objectives with their queries."""
    return tuple(
        (RULE, Criterion(metric, op, target, unit, _sql(goal)))
        for goal in goals_of(slos)
        for metric, op, target, unit in [_held_to(goal)]
    )


def _held_to(goal: Goal) -> tuple[str, str, float, str]:
    if goal.percent < Decimal(100):
        return goal.statistic, goal.op, goal.limit_ns, "ns"
    return f"requests that miss {goal.limit}", "<=", 0.0, "requests"


def _sql(goal: Goal) -> str:
    if goal.percent < Decimal(100):
        return f"SELECT {goal.percentile_sql} FROM latency_objective WHERE {goal.sql} IS NOT NULL"
    return f"SELECT count(*) FROM latency_objective WHERE NOT {goal.sql}"


def criteria(engine: Engine, slos: Sequence[str]) -> tuple[_Row, ...]:
    """Rows of ``analyze.verify``: a percentile is held to its limit, else nothing may miss it."""
    goals = goals_of(slos)
    told = {row["slo"]: row for row in _attained(engine, goals, (), None)}
    return tuple(_criterion(goal, told.get(goal.text)) for goal in goals)


def _criterion(goal: Goal, row: _Row | None) -> _Row:
    metric, op, target, unit = _held_to(goal)
    value = "value_ns" if unit == "ns" else "missed"
    return {
        "rule": RULE,
        "outcome": row["outcome"] if row else CANNOT_SAY,
        "metric": metric,
        "value": row[value] if row else None,
        "op": op,
        "target": target,
        "unit": unit,
        "when": None,
        "why": _why(goal, row),
    }


def _why(goal: Goal, row: _Row | None) -> str:
    if row is None:
        return "there is no request to judge by"
    if row["outcome"] == CANNOT_SAY:
        return (
            f"{row['requests']:,} of {row['requests'] + row['without']:,} requests tell "
            f"{goal.metric}, which takes 90 %. analyze status says what is missing"
        )
    if row["outcome"] == NOT_MET and row["value_ns"] is None and goal.percent < Decimal(100):
        return f"{goal.statistic} lies among the {row['failed']:,} that failed"
    return ""
