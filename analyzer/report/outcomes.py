"""Found, clear, cannot say: the three outcomes as blocks, never mixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.report import words
from analyzer.report.blocks import Block, Found, Heading, Items, Words, grid_of
from analyzer.report.values import plural

if TYPE_CHECKING:
    from analyzer.contract.types import CannotSay, Clear, Finding, Findings


def findings(value: Findings) -> list[Block]:
    """Verdict, tally, what was found, what is clear, what could not look."""
    out: list[Block] = [Words(text) for text in (value.verdict, value.split) if text]
    out.append(Words(words.tally(value)))
    out += [found(item) for item in words.by_severity(value.found)]
    return out + clear(value.clear) + cannot_say(value.cannot_say)


def found(value: Finding) -> Found:
    """Shorten a finding to four lines at most."""
    lines = (words.size_of(value), words.place_of(value), words.grade_of(value))
    return Found(value.severity, value.rule, value.title, tuple(line for line in lines if line))


def clear(values: tuple[Clear, ...]) -> list[Block]:
    """Rules that looked and found nothing, by name."""
    out: list[Block] = [Heading(f"clear: {plural(len(values), 'check')}")]
    return [*out, Words(", ".join(item.rule for item in values))] if values else out


def cannot_say(values: tuple[CannotSay, ...]) -> list[Block]:
    """Rules that could not look, what each lacks and how to record it."""
    out: list[Block] = [Heading(f"cannot say: {plural(len(values), 'check')}")]
    if not values:
        return out
    rows = [
        {"rule": item.rule, "needs": words.needs(item), "coverage": item.coverage}
        for item in values
    ]
    how = dict.fromkeys((miss.input, miss.how) for item in values for miss in item.missing)
    return [
        *out,
        Words(words.NOT_CLEAR),
        grid_of(tuple(rows)),
        Words("How to record what is missing:"),
        Items(tuple(f"{name}: {text}" for name, text in how)),
    ]
