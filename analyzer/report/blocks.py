"""What a printed answer is made of; terminal and Markdown draw the same blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analyzer.report.values import (
    TIME_KEYS,
    cell,
    label,
    plain_number,
    quantity,
    raw_cell,
    safe_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from analyzer.contract.types import Bar, Table


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the answer's own."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Facts:
    """Labelled values, one a line."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Items:
    """A list of short texts."""

    items: tuple[str, ...]
    numbered: bool = False


@dataclass(frozen=True)
class Code:
    """Text to be copied: SQL or a command."""

    text: str


@dataclass(frozen=True)
class Found:
    """A finding in a few lines."""

    severity: str
    rule: str
    title: str
    details: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A table of texts. ``right`` aligns numbers; ``keep`` marks columns that are never cut.

    ``raw`` holds each number's exact value for printers that can show it on demand. ``narrow`` says
    the same in fewer columns, for a terminal on which the grid itself would have to be split.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]
    keep: tuple[bool, ...]
    raw: tuple[tuple[str, ...], ...] = ()
    narrow: Grid | None = None


@dataclass(frozen=True)
class Waterfall:
    """Bars on one scale, in ns from the request's start."""

    bars: tuple[Bar, ...]
    total_ns: int


@dataclass(frozen=True)
class Spark:
    """One line over bins of time, None where nothing is told. ``highest`` is its top value."""

    name: str
    values: tuple[float | None, ...]
    highest: str


@dataclass(frozen=True)
class Sparks:
    """Lanes of lines over the same bins, a scale for each lane; ``marked`` bins are set off."""

    lanes: tuple[tuple[str, tuple[Spark, ...]], ...]
    bins: int
    marked: tuple[bool, ...]


Block = Heading | Words | Facts | Items | Code | Found | Grid | Waterfall | Sparks

_KEEP = frozenset({"id", "request_id", "rule", "name", "table", "column", "reader", "segment"})
"""Columns people copy from: a name that is cut is of no use to the next command."""


def keys_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Keys over all rows, in the order in which they first appear."""
    return list(dict.fromkeys(key for row in rows for key in row))


def grid(table: Table) -> Grid:
    """Table with every value in its unit; ``sql`` rows stay as asked for."""
    return grid_of(table.rows, raw=table.kind == "analyze.sql")


_IN_UNIT = ("value", "target", "baseline", "window", "change", "low", "high")
"""Columns whose unit stands in the row's own ``unit``; people read both in one cell."""


def grid_of(rows: tuple[dict[str, Any], ...], *, raw: bool = False) -> Grid:
    """Rows as a grid; ``raw`` shows bare numbers."""
    keys = keys_of(rows)
    in_unit = () if raw or "unit" not in keys else tuple(key for key in _IN_UNIT if key in keys)
    if in_unit:
        keys = [key for key in keys if key != "unit"]
    return Grid(
        header=tuple(safe_text(key) if raw else label(key) for key in keys),
        rows=tuple(tuple(_cell(row, key, in_unit, raw=raw) for key in keys) for row in rows),
        right=tuple(
            key not in TIME_KEYS
            and (key.endswith("_ns") or _numeric([row.get(key) for row in rows]))
            for key in keys
        ),
        keep=tuple(key in _KEEP or key in in_unit or key.endswith("_ns") for key in keys),
        raw=tuple(
            tuple(
                raw_cell(key, row.get(key), str(row["unit"]) if key in in_unit else "")
                for key in keys
            )
            for row in rows
        ),
    )


def _cell(row: dict[str, Any], key: str, in_unit: tuple[str, ...], *, raw: bool) -> str:
    if raw:
        return _raw(row.get(key))
    if key in in_unit:
        return quantity(row.get(key), row["unit"])
    return cell(key, row.get(key))


def _numeric(values: list[Any]) -> bool:
    told = [value for value in values if value is not None]
    return bool(told) and all(
        not isinstance(value, str | bool | list | tuple | dict) for value in told
    )


def _raw(value: Any) -> str:  # noqa: ANN401 - a cell the user's own query gave
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return plain_number(value) if isinstance(value, float) else cell("", value)
