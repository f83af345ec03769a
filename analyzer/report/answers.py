"""What ``compare`` and ``verify`` answer in words: one sentence, and the few rows that matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.report import document, words
from analyzer.report.blocks import Block, Grid, Heading, Words
from analyzer.report.values import percent, plural, quantity, safe_text, significant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analyzer.contract.types import Table

    Rows = Iterable[dict[str, Any]]

_NAMED = 3
"""Changes that the sentence names; the table above it has all."""


_TIMES = 9
"""From this relative change on "20 times" reads better than "+1,900 %"."""


def blocks(value: object) -> list[Block]:
    """Blocks of any value a command prints; ``-f json`` and ``csv`` have every row."""
    kind = getattr(value, "kind", "")
    if kind == "analyze.compare":
        return _comparison(value)  # type: ignore[arg-type]
    if kind == "analyze.verify":
        return _verification(value)  # type: ignore[arg-type]
    return document.blocks(value)


# --- compare -------------------------------------------------------------------------------------


def _comparison(table: Table) -> list[Block]:
    out: list[Block] = []
    beyond, _ = words.changes(table.rows)
    if beyond:
        out.append(changed(beyond))
    out += [Words(line) for line in (*unchanged(table), *table.notes) if line]
    return [*out, Words(compared(table))]


def changed(rows: Rows) -> Grid:
    """What differs beyond noise: the change and its interval in one cell."""
    return Grid(
        header=("changed", "before", "after", "change (95 % interval)"),
        rows=tuple(
            (
                words.measured(row),
                quantity(row.get("baseline"), str(row.get("unit", ""))),
                quantity(row.get("window"), str(row.get("unit", ""))),
                safe_text(f"{words.change(row)}{_relative(row)}"),
            )
            for row in rows
        ),
        right=(False, True, True, False),
        keep=(True, True, True, False),
    )


def _relative(row: dict[str, Any]) -> str:
    ratio = row.get("change_ratio")
    if ratio is None:
        return ""
    if ratio > _TIMES:
        return f" ({significant(ratio + 1)} times)"
    return f" ({'+' if ratio > 0 else ''}{percent(ratio)})"


def unchanged(table: Table) -> list[str]:
    """Metrics that are not in the list of changes, counted by why."""
    beyond, rest = words.changes(table.rows)
    told = {row["metric"] for row in beyond}
    judged = {row["metric"] for row in rest if row.get("beyond_noise") is False} - told
    alone = {row["metric"] for row in rest if row.get("change") is None} - told - judged
    few = {row["metric"] for row in rest} - told - judged - alone
    lines = []
    if judged:
        count = plural(len(judged), "metric")
        lines.append(f"{count} did not change beyond noise: {_names(judged)}.")
    if few:
        lines.append(f"{plural(len(few), 'metric')} with too few values to tell: {_names(few)}.")
    if alone:
        lines.append(f"{plural(len(alone), 'metric')} known on one side only: {_names(alone)}.")
    return lines


def _names(metrics: set[str]) -> str:
    return ", ".join(safe_text(name).replace("_", " ") for name in sorted(metrics))


def compared(table: Table) -> str:
    """The answer in one sentence."""
    beyond, rest = words.changes(table.rows)
    if not table.rows:
        return "Neither side holds anything that could be compared."
    if not beyond and not any(row.get("beyond_noise") is False for row in rest):
        return "Nothing can be said: no metric has enough values on both sides."
    if not beyond:
        return "Nothing changed beyond noise."
    metrics = list(dict.fromkeys(row["metric"] for row in beyond))
    every = len({row["metric"] for row in table.rows})
    first = {name: next(row for row in beyond if row["metric"] == name) for name in metrics}
    named = ", ".join(_rose(first[name]) for name in metrics[:_NAMED])
    more = f" and {len(metrics) - _NAMED} more" if len(metrics) > _NAMED else ""
    verb = "changed" if len(metrics) != 1 else "has changed"
    return f"{len(metrics)} of {plural(every, 'metric')} {verb} beyond noise: {named}{more}."


def _rose(row: dict[str, Any]) -> str:
    unit = str(row.get("unit", ""))
    verb = "rose" if row["change"] > 0 else "fell"
    before, after = quantity(row.get("baseline"), unit), quantity(row.get("window"), unit)
    return f"{words.measured(row)} {verb} from {before} to {after}"


# --- verify --------------------------------------------------------------------------------------

OUTCOMES = ("not met", "cannot say", "met")


def _verification(table: Table) -> list[Block]:
    out: list[Block] = []
    if table.rows:
        out.append(criteria(table))
    blind = dict.fromkeys(
        f"{row['rule']}: {row['why']}" for row in table.rows if row["outcome"] == "cannot say"
    )
    if blind:
        out += [
            Heading("cannot say, which is not met"),
            *(Words(safe_text(line)) for line in blind),
        ]
    return [*out, *(Words(note) for note in table.notes), Words(verified(table))]


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
    """The answer in one sentence."""
    counts = {name: sum(row["outcome"] == name for row in table.rows) for name in OUTCOMES}
    every = len(table.rows)
    if not every:
        return "No finding fires, so there is nothing to verify."
    if counts["met"] == every:
        return f"Fixed: {'the criterion is' if every == 1 else f'all {every} criteria are'} met."
    parts = [f"{counts[name]} {name}" for name in ("met", "not met", "cannot say") if counts[name]]
    word = "Not fixed" if counts["not met"] else "Not known to be fixed"
    return f"{word}: of {every} {'criterion' if every == 1 else 'criteria'} {', '.join(parts)}."


def unmet(table: Table) -> str | None:
    """Rule to look at next; None when all are met."""
    for outcome in OUTCOMES[:2]:
        for row in table.rows:
            if row["outcome"] == outcome:
                return str(row["rule"])
    return None
