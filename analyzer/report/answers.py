"""What commands answer in words; ``compare`` and ``verify`` begin with it in a sentence or two."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from analyzer.contract.costs import Costs
from analyzer.contract.devices import Devices
from analyzer.contract.types import (
    Explanation,
    Findings,
    IngestResult,
    Objectives,
    Report,
    RequestView,
    Status,
    Table,
)
from analyzer.report import (
    case,
    costs,
    document,
    gpu,
    hardware,
    lanes,
    latencies,
    objectives,
    outcomes,
    proof,
    request,
    turns,
    words,
)
from analyzer.report.blocks import Block, Grid, Heading, Items, Words
from analyzer.report.values import NONE, percent, plural, quantity, safe_text, significant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Rows = Iterable[dict[str, Any]]

_NAMED = 3
"""Changes that the sentence names; the table below it has all."""

_ERRORS = "error_rate"
FEWEST = 20
FEWEST_MINUTES = 5
"""Values, or minutes counted, that a side needs for an interval; the question judges by them."""

_TIMES = 10
"""From this relative change on (1,000 %) a factor reads better."""


def blocks(value: object) -> list[Block]:
    """Blocks of any value a command prints; ``-f json`` and ``csv`` have every row."""
    if isinstance(value, Explanation):
        return proof.explanation(value)
    if isinstance(value, Status):
        return case.status(value)
    if isinstance(value, RequestView):
        return request.view(value)
    if isinstance(value, IngestResult):
        return case.ingested(value)
    if isinstance(value, Costs):
        return costs.blocks(value)
    if isinstance(value, Devices):
        return gpu.blocks(value)
    if isinstance(value, Objectives):
        return objectives.blocks(value)
    if isinstance(value, Table) and value.kind in _TABLES:
        return _TABLES[value.kind](value)
    if isinstance(value, Table):
        return document.table(value)
    if isinstance(value, Findings):
        return outcomes.findings(value)
    if isinstance(value, Report):
        return document.report(value)
    msg = f"no printed form for {type(value).__name__}"
    raise TypeError(msg)


# --- compare -------------------------------------------------------------------------------------


def _comparison(table: Table) -> list[Block]:
    out: list[Block] = [Words(compared(table))]
    beyond, _ = words.changes(table.rows)
    if beyond:
        out.append(changed(beyond))
    out += [Words(line) for line in (*unchanged(table), *table.notes) if line]
    thin = _first_rows(table.rows, _few(table))
    return [*out, _thin(thin)] if thin else out


def _thin(rows: Rows) -> Grid:
    """What cannot be judged is shown all the same, with how many values there are."""
    return Grid(
        header=("too few to judge", "before", "after", "values before", "after"),
        rows=tuple(
            (
                words.measured(row),
                *_sides(row),
                *(f"{number:,}" for number in _counts(row)),
            )
            for row in rows
        ),
        right=(False, True, True, True, True),
        keep=(True, True, True, True, True),
    )


def changed(rows: Rows) -> Grid:
    """What differs beyond noise, errors first, then by size: each change beside its interval."""
    return Grid(
        header=("changed", "before", "after", "change", "difference (95 % interval)"),
        rows=tuple(
            (
                words.measured(row),
                *_sides(row),
                _relative(row),
                safe_text(words.change(row | {"unit": _unit(row)})),
            )
            for row in _biggest_first(rows)
        ),
        right=(False, True, True, True, False),
        keep=(True, True, True, True, False),
    )


_JUDGED = {True: "yes", False: "no", None: "too few to tell"}


def every(rows: Rows) -> Grid:
    """All rows, in the words of those that changed."""
    return Grid(
        header=(
            *("metric", "before", "after", "change", "difference (95 % interval)"),
            *("beyond noise", "values before", "values after"),
        ),
        rows=tuple(
            (
                words.measured(row),
                *_sides(row),
                _relative(row),
                safe_text(words.change(row | {"unit": _unit(row)})),
                NONE if 0 in _counts(row) else _JUDGED[row.get("beyond_noise")],
                *(f"{number:,}" for number in _counts(row)),
            )
            for row in rows
        ),
        right=(False, True, True, True, False, False, True, True),
        keep=(True,) * 8,
    )


def _sides(row: dict[str, Any]) -> tuple[str, str]:
    unit = _unit(row)
    return quantity(row.get("baseline"), unit), quantity(row.get("window"), unit)


def _unit(row: dict[str, Any]) -> str:
    """The unit, unless the metric's own name says it: ``16.0 requests per minute``."""
    unit = str(row.get("unit", ""))
    return "" if unit in str(row.get("metric", "")).split("_") else unit


def _biggest_first(rows: Rows) -> list[dict[str, Any]]:
    """Rows of one metric stay together; the error rate leads, whatever its size."""
    listed = list(rows)
    sizes: dict[str, float] = {}
    for row in listed:
        sizes[row["metric"]] = max(sizes.get(row["metric"], 0.0), _size(row))
    return sorted(listed, key=lambda row: (row["metric"] != _ERRORS, -sizes[row["metric"]]))


def _size(row: dict[str, Any]) -> float:
    """How many fold a value changed, either way, as a logarithm."""
    before, after = row.get("baseline") or 0, row.get("window") or 0
    return abs(math.log(after / before)) if before > 0 and after > 0 else math.inf


def _relative(row: dict[str, Any]) -> str:
    ratio = row.get("change_ratio")
    if ratio is None:
        return NONE
    if ratio >= _TIMES:
        return f"x {significant(ratio + 1)}"
    return f"{'+' if ratio > 0 else ''}{percent(ratio)}"


def unchanged(table: Table) -> list[str]:
    """Metrics that are not in the list of changes, counted by why."""
    beyond, rest = words.changes(table.rows)
    told = {row["metric"] for row in beyond}
    judged = {row["metric"] for row in rest if row.get("beyond_noise") is False} - told
    alone = {row["metric"] for row in rest if 0 in _counts(row)} - told - judged
    few = _few(table)
    lines = []
    if judged:
        count = plural(len(judged), "metric")
        lines.append(f"{count} did not change beyond noise: {_names(judged)}.")
    if few:
        lines.append(
            f"{plural(len(few), 'metric')} with too few values on a side for an interval or a p95, "
            f"which take {FEWEST} values ({FEWEST_MINUTES} minutes for requests per minute): "
            f"{_names(few)}."
        )
    if alone:
        for side, number in (("before", 0), ("after", 1)):
            there = {row["metric"] for row in rest if _counts(row)[number]} & alone
            if there:
                lines.append(f"{plural(len(there), 'metric')} known only {side}: {_names(there)}.")
    return lines


def _few(table: Table) -> set[str]:
    """Metrics that both sides have, one of them too few times to judge."""
    judged = {row["metric"] for row in table.rows if row.get("beyond_noise") is not None}
    return {row["metric"] for row in table.rows if 0 not in _counts(row)} - judged


def _counts(row: dict[str, Any]) -> tuple[int, int]:
    return int(row.get("baseline_requests") or 0), int(row.get("window_requests") or 0)


def _first_rows(rows: Rows, metrics: set[str]) -> list[dict[str, Any]]:
    first: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["metric"] in metrics:
            first.setdefault(row["metric"], row)
    return [first[name] for name in sorted(first)]


def _names(metrics: set[str]) -> str:
    return ", ".join(safe_text(name).replace("_", " ") for name in sorted(metrics))


def compared(table: Table) -> str:
    """The answer in a sentence or two: errors first where they changed, else last."""
    beyond, rest = words.changes(table.rows)
    if not table.rows:
        return "Neither side holds anything that could be compared."
    errors = next((row for row in rest if row["metric"] == _ERRORS), None)
    last = f" {_failing(errors)}" if errors and 0 not in _counts(errors) else ""
    if not beyond and not any(row.get("beyond_noise") is False for row in rest):
        return f"Nothing can be said: no metric has enough values on both sides.{last}"
    if not beyond:
        return f"Nothing changed beyond noise.{last}"
    ordered = _biggest_first(beyond)
    metrics = list(dict.fromkeys(row["metric"] for row in ordered))
    every = len({row["metric"] for row in table.rows})
    leading = {name: next(row for row in ordered if row["metric"] == name) for name in metrics}
    named = ", ".join(_rose(leading[name]) for name in metrics[:_NAMED])
    more = f" and {len(metrics) - _NAMED} more" if len(metrics) > _NAMED else ""
    order = ", biggest first" if len(metrics) > 1 else ""
    return (
        f"{len(metrics)} of {plural(every, 'metric')} changed beyond noise{order}: "
        f"{named}{more}.{last}"
    )


def _failing(row: dict[str, Any]) -> str:
    """The error rate where it is not among the changes: whoever compares asks for it first."""
    before, after = (quantity(row.get(side), "ratio") for side in ("baseline", "window"))
    if row.get("beyond_noise") is None:
        return f"Error rate {before} before, {after} after (too few requests to tell)."
    return f"Error rate {before} before, {after} after: no change beyond noise."


def _rose(row: dict[str, Any]) -> str:
    verb = "rose" if row["change"] > 0 else "fell"
    before, after = _sides(row)
    size = "" if row.get("change_ratio") is None else f" ({_relative(row)})"
    return f"{words.measured(row)} {verb} from {before} to {after}{size}"


# --- verify --------------------------------------------------------------------------------------

OUTCOMES = ("not met", "cannot say", "met")


def _verification(table: Table) -> list[Block]:
    out: list[Block] = [Words(verified(table)), *(Words(note) for note in table.notes)]
    if table.rows:
        out.append(criteria(table))
    blind = dict.fromkeys(
        f"{row['rule']}: {row['why']}" for row in table.rows if row["outcome"] == "cannot say"
    )
    if blind:
        out += [Heading("cannot say, which is not met"), Items(tuple(blind))]
    return out


def criteria(table: Table) -> Grid:
    """One line a criterion, what is not met first."""
    rank = {name: index for index, name in enumerate(OUTCOMES)}
    rows = sorted(table.rows, key=lambda row: rank.get(row["outcome"], len(rank)))
    return Grid(
        header=("outcome", "rule", "metric", "is", "must be"),
        rows=tuple(
            (
                safe_text(row["outcome"]).upper(),
                safe_text(row["rule"]),
                safe_text(row["metric"]),
                quantity(row["value"], row["unit"]),
                safe_text(f"{row['op']} {quantity(row['target'], row['unit'])}"),
            )
            for row in rows
        ),
        right=(False, False, False, True, False),
        keep=(True, True, False, True, True),
    )


def verified(table: Table) -> str:
    """The answer in a sentence or two."""
    counts = {name: sum(row["outcome"] == name for row in table.rows) for name in OUTCOMES}
    every = len(table.rows)
    if every and all(row["rule"] == "slo" for row in table.rows):
        return _objectives(counts, every)
    if not every:
        return "No finding fires, so there is nothing to verify."
    ahead = [row for row in table.rows if row.get("when") == "before"]
    early = list(dict.fromkeys(row["rule"] for row in ahead if row["outcome"] == "met"))
    never = list(dict.fromkeys(row["rule"] for row in table.rows if row.get("when") == "never"))
    if counts["met"] == every:
        met = f"{'the criterion is' if every == 1 else f'all {every} criteria are'} met"
        if never:
            return f"{_capital(met)}, but {_not_found(never)}"
        return f"{_capital(met)}, but {_too_early(early)}" if early else f"Fixed: {met}."
    if counts["cannot say"] == every:
        none = "the criterion cannot" if every == 1 else f"none of {every} criteria can"
        return f"Not known to be fixed: {none} be judged, for want of what stands below."
    names = {"met": "met", "not met": "not met", "cannot say": "cannot be judged"}
    parts = [f"{counts[name]} {text}" for name, text in names.items() if counts[name]]
    word = "Not fixed" if counts["not met"] else "Not known to be fixed"
    told = f"{word}: of {every} {'criterion' if every == 1 else 'criteria'} {', '.join(parts)}."
    return f"{told} What is met: {_too_early(early)}" if early else told


def _objectives(counts: dict[str, int], every: int) -> str:
    """Objectives were not broken by a finding, so meeting them fixes nothing."""
    if counts["met"] == every:
        return "The objective is met." if every == 1 else f"All {every} objectives are met."
    names = {"met": "met", "not met": "not met", "cannot say": "cannot be judged"}
    parts = [f"{counts[name]} {text}" for name, text in names.items() if counts[name]]
    word = "Not met" if counts["not met"] else "Not known to be met"
    return f"{word}: of {plural(every, 'objective')} {', '.join(parts)}."


def _too_early(rules: list[str]) -> str:
    """A window that ends before a finding begins shows what health looks like, no fix."""
    return (
        f"the requests judged are from before {', '.join(rules)} began: this shows what healthy "
        "looks like, not that it is fixed. Ask of a time after the change."
    )


def _not_found(rules: list[str]) -> str:
    were = "was" if len(rules) == 1 else "were"
    return f"{', '.join(rules)} {were} not found in this case to begin with: nothing was fixed."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def unmet(table: Table) -> str | None:
    """Rule to look at next; None when all are met."""
    for outcome in OUTCOMES[:2]:
        for row in table.rows:
            if row["outcome"] == outcome:
                return str(row["rule"])
    return None


_TABLES: dict[str, Callable[[Table], list[Block]]] = {
    "analyze.bounds.observed": hardware.blocks,
    "analyze.compare": _comparison,
    **{f"analyze.gpu.{name}": gpu.table for name in gpu.TABLES},
    "analyze.latency": latencies.latency,
    "analyze.rules": outcomes.family,
    "analyze.timeline": lanes.lanes,
    "analyze.turns": turns.sessions,
    "analyze.turns.calls": turns.calls,
    "analyze.verify": _verification,
}
"""How a table of a kind is told; any other is printed as it is."""
