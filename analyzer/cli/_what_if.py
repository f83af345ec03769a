"""Two runs of a world side by side: segments, cost, and how they moved."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from analyzer.cli import _console
from analyzer.report import markdown, text
from analyzer.report.blocks import Block, Grid, Heading, Items
from analyzer.report.values import NONE, percent, quantity, safe_text

if TYPE_CHECKING:
    from analyzer.contract.types import Table

_SAME = 0.005
"""Relative change below which a line is shown to stay."""


def render(table: Table, form: str, words: tuple[str, str] = ("before", "after")) -> str:
    """The comparison for a terminal or as Markdown."""
    shown = blocks(table, words)
    if form == "md":
        return markdown.render(shown)
    return text.render(shown, width=_console.width(), color=_console.color())


def blocks(table: Table, words: tuple[str, str]) -> list[Block]:
    """A heading and a grid for each alternative."""
    out: list[Block] = []
    for name, rows in groupby(table.rows, key=lambda row: row["what_if"]):
        out += [Heading(safe_text(name)), _grid(list(rows), words)]
    notes = tuple(safe_text(note) for note in table.notes)
    return [*out, Heading("the world"), Items(notes)] if notes else out


def _grid(rows: list[dict[str, Any]], words: tuple[str, str]) -> Grid:
    before, after = words
    return Grid(
        ("", before, after, "change", f"p95 {before}", f"p95 {after}"),
        tuple(
            (
                row["metric"], _told(row, "before"), _told(row, "after"), _moved(row["change"]),
                _told(row, "before_p95"), _told(row, "after_p95"),
            )
            for row in rows
        ),
        right=(False,) + (True,) * 5,
        keep=(True,) * 4 + (False,) * 2,
    )  # fmt: skip


def _told(row: dict[str, Any], key: str) -> str:
    value = row[key]
    if value is None:
        return "" if key.endswith("_p95") and row["unit"] != "ns" else NONE
    return quantity(value, row["unit"])


def _moved(change: float | None) -> str:
    if change is None:
        return NONE
    if abs(change) < _SAME:
        return "same"
    return f"{'+' if change > 0 else ''}{percent(change)}"
