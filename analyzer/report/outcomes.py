"""Found, clear, cannot say: the three outcomes as blocks, never mixed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analyzer.report import words
from analyzer.report.blocks import Block, Found, Grid, Heading, Items, Words, grid_of
from analyzer.report.values import plural, safe_text

if TYPE_CHECKING:
    from analyzer.contract.types import CannotSay, Clear, Finding, Findings, Table

_MOST = 5
"""Missing inputs that ``findings`` tells; a screen of them would push the verdict off it."""


def findings(value: Findings) -> list[Block]:
    """Verdict, tally, what was found, what is clear, what could not look."""
    out: list[Block] = [Words(text) for text in (value.verdict, value.split) if text]
    out.append(Words(words.tally(value)))
    out += [found(item) for item in words.by_severity(value.found)]
    return out + clear(value.clear) + _blind(value.cannot_say)


def found(value: Finding) -> Found:
    """Shorten a finding to four lines at most."""
    lines = (words.size_of(value), words.place_of(value), words.grade_of(value))
    return Found(value.severity, value.rule, value.title, tuple(line for line in lines if line))


def clear(values: tuple[Clear, ...]) -> list[Block]:
    """Rules that looked and found nothing, by name."""
    out: list[Block] = [Heading(f"clear: {plural(len(values), 'check')}")]
    return [*out, Words(", ".join(item.rule for item in values))] if values else out


def waiting(values: tuple[CannotSay, ...]) -> list[tuple[str, str, list[str]]]:
    """Inputs that rules lack, how to record each, and which rules wait for it; most first."""
    rules: dict[tuple[str, str], list[str]] = {}
    for item in values:
        for miss in item.missing:
            rules.setdefault((miss.input, miss.how), []).append(item.rule)
    return sorted(((*key, names) for key, names in rules.items()), key=lambda one: -len(one[2]))


def _blind(values: tuple[CannotSay, ...]) -> list[Block]:
    """Rules that could not look, by name, and the inputs that most of them wait for."""
    out: list[Block] = [Heading(f"cannot say: {plural(len(values), 'check')}")]
    if not values:
        return out
    most = waiting(values)[:_MOST]
    return [
        *out,
        Words(words.NOT_CLEAR),
        Words(", ".join(item.rule for item in values)),
        Words("What they lack most often:"),
        Items(tuple(f"{name} ({plural(len(on), 'check')}): {how}" for name, how, on in most)),
        Words("What each of them lacks, and how to record it: analyze status"),
    ]


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


def family(value: Table) -> list[Block]:
    """The rules of a family; a narrow terminal keeps what each claims, not the counts."""
    wide = grid_of(value.rows)
    narrow = Grid(
        header=("rule", "outcome", "title"),
        rows=tuple(
            (
                row["rule"],
                ", ".join(filter(None, (row["outcome"], row["severity"]))),
                safe_text(row["title"]),
            )
            for row in value.rows
        ),
        right=(False, False, False),
        keep=(True, True, False),
    )
    return [replace(wide, keep=tuple(True for _ in wide.header), narrow=narrow)]
