"""The incident report as blocks: the order and the words, not the looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.report import conversations, costs, gpu, hardware, law, objectives, words
from analyzer.report.blocks import Block, Facts, Heading, Items, Words, grid, grid_of
from analyzer.report.latencies import without_unused
from analyzer.report.outcomes import cannot_say, clear
from analyzer.report.proof import Queries, explained
from analyzer.report.values import count, moment, plural, quantity, window

if TYPE_CHECKING:
    from analyzer.contract.types import Report, Table


def table(value: Table) -> list[Block]:
    """Rows of a command and what is to be said about them."""
    notes = [Words(note) for note in value.notes]
    return [grid(value), *notes] if value.rows else [*notes] or [Words("no rows")]


def report(value: Report) -> list[Block]:
    """The whole report, for a terminal or an incident channel; each query stands once."""
    facts = (
        ("window", window(value.window)),
        ("requests", count(value.requests)),
        ("outcome", words.tally(value.findings)),
    )
    out: list[Block] = [Heading(value.title, 1), Words(value.verdict), Facts(facts)]
    out += [Words(value.findings.split)] if value.findings.split else []
    out += _incident(value)
    queries = Queries()
    for item in words.by_severity(value.findings.found):
        out += explained(item, queries)
    if value.objectives:
        out += [Heading("Objectives"), *objectives.blocks(value.objectives)]
    out += [Heading("Segments"), *table(without_unused(value.segments))]
    if value.slowest:
        out += [Heading("Slowest requests"), grid_of(value.slowest)]
    if value.turns:
        out += conversations.blocks(value.turns)
    if value.costs:
        out += [Heading("Cost"), *costs.blocks(value.costs)]
    if value.gpu:
        out += gpu.blocks(value.gpu, title=True)
    if value.law:
        out += [Heading("Longer answers"), *law.blocks(value.law)]
    if value.hardware:
        out += [Heading("Against the hardware"), *hardware.blocks(value.hardware)]
    out += cannot_say(value.findings.cannot_say) + clear(value.findings.clear)
    out += queries.blocks()
    out += [Heading("Sources"), *table(value.sources)]
    return [*out, *(Words(note) for note in value.notes), Words(f"analyze {value.version}")]


def _incident(value: Report) -> list[Block]:
    out: list[Block] = []
    if value.incident:
        known = value.incident
        out += [Heading(f"Incident {window(known.window)}"), Words(known.why)]
        beyond, rest = words.changes(known.changes.rows)
        if beyond:
            out.append(Facts(tuple((words.measured(row), _change(row)) for row in beyond)))
        if rest:
            out.append(Words(f"No more than noise: {plural(len(rest), 'other number')}"))
        out += [Words(note) for note in known.changes.notes]
    if value.marks:
        marks = tuple(f"{moment(mark.time_ns)}  {mark.text}" for mark in value.marks)
        out += [Heading("Marks"), Items(marks)]
    return out


def _change(row: dict[str, Any]) -> str:
    unit = str(row.get("unit", ""))
    sides = (quantity(row.get("baseline"), unit), quantity(row.get("window"), unit))
    return f"{sides[0]} -> {sides[1]}: {words.change(row)}"
