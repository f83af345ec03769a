"""What a foreign table is (CSV, JSON Lines, Parquet) and which columns it names."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from analyzer.readers._file import Head
from analyzer.readers._jsonl import objects
from analyzer.readers._mapping import Plan, shipped

DELIMITERS = ",;\t|"
_SHOWN = 6
_DEEPEST = 4
_NUMBER = re.compile(r"[-+]?[\d.]+(?:[eE][-+]?\d+)?|")


@dataclass(frozen=True)
class Shape:
    """Kind of a table, its columns, and the delimiter of a CSV."""

    kind: str
    """csv, jsonl or parquet."""
    names: tuple[str, ...]
    delimiter: str = ","
    alike: bool = True
    """The second line has as many cells as the first, as in any table."""


def shape_of(head: Head, plan: Plan | None = None) -> Shape | None:
    """The table a file is, with the delimiter that finds most of the plan's columns."""
    if head.data.startswith(b"PAR1"):
        return Shape("parquet", head.columns)
    lines = head.lines
    if not lines:
        return None
    if lines[0][:1] == b"{":
        paths = [path for one in objects(head) for path in _paths(one)]
        return Shape("jsonl", tuple(dict.fromkeys(paths))) if paths else None
    if b"\0" in lines[0]:
        return None
    wanted = set(plan.theirs) if plan else set()
    given = plan.file.delimiter if plan else None
    if plan and plan.file.header is not None:
        return Shape("csv", tuple(plan.file.header), given or _usual(lines[0]))
    shapes = [_csv(lines, delimiter) for delimiter in given or DELIMITERS]
    return max(shapes, key=lambda one: (len(wanted & set(one.names)), len(one.names)))


def _csv(lines: Sequence[bytes], delimiter: str) -> Shape:
    names = cells_of(lines[0], delimiter)
    alike = len(lines) < 2 or len(cells_of(lines[1], delimiter)) == len(names)
    return Shape("csv", names, delimiter, alike)


def cells_of(line: bytes, delimiter: str, *, strict: bool = False) -> tuple[str, ...]:
    """Cells of one row of CSV, without the space around them; none where it is no CSV."""
    text = line.decode("utf-8", "replace").strip("\r\n")
    try:
        (row,) = csv.reader([text], delimiter=delimiter, strict=strict)
    except (csv.Error, ValueError):
        return ()
    return tuple(cell.strip() for cell in row)


def _usual(line: bytes) -> str:
    return max(DELIMITERS, key=lambda one: line.count(one.encode()))


def _paths(value: dict[str, Any], before: str = "", depth: int = 0) -> Iterator[str]:
    """Keys of an object and of those inside it, joined with dots."""
    for key, inner in value.items():
        yield f"{before}{key}"
        if isinstance(inner, dict) and depth < _DEEPEST:
            yield from _paths(inner, f"{before}{key}.", depth + 1)


def recognised(shape: Shape | None) -> Plan | None:
    """The mapping that ships for exactly these columns."""
    if shape is None or len(set(shape.names)) < len(shape.names):
        return None
    names = set(shape.names)
    for plan in shipped():
        if set(plan.needed) <= names <= set(plan.theirs):
            return plan
    return None


def misfit(plan: Plan, head: Head) -> str:
    """Why a file cannot be read through a mapping; empty where it can."""
    shape = shape_of(head, plan)
    if shape is None:
        return "no table: neither CSV, JSON Lines nor Parquet"
    if shape.kind == "parquet" and not shape.names:
        return ""  # cut or damaged, which the reader tells
    if missing := plan.missing(shape.names, head.path):
        return missing
    twice = [name for name in plan.theirs if shape.names.count(name) > 1]
    return f"{head.path} has the column {twice[0]!r} twice" if twice else ""


def closest(shape: Shape | None) -> tuple[float, str]:
    """How near a table comes to a mapping that ships, and what to do with it."""
    if shape is None:
        return 0, "no table: neither CSV, JSON Lines nor Parquet"
    if shape.kind == "parquet":
        if not shape.names:
            return 0.9, "a Parquet file that is cut or damaged: copy it again"
        return (
            0.5,
            f"a Parquet file of {len(shape.names)} columns: --mapping FILE tells what they mean",
        )
    names = set(shape.names)
    best = max(shipped(), key=lambda one: len(names & set(one.needed)) / len(one.needed))
    shared = len(names & set(best.needed)) / len(best.needed)
    if shared >= 0.5:
        strange = sorted(names - set(best.theirs)) + sorted(set(best.needed) - names)
        differing = ", ".join(repr(name[:40]) for name in strange[:_SHOWN])
        return 0.5 + 0.1 * shared, (
            f"its columns differ from {best.name} by {differing}: --mapping FILE tells how to read "
            "them"
        )
    if shape.kind == "jsonl":
        return 0.5, (
            "JSON Lines of no known kind: where each is a request, --mapping FILE tells what their "
            "keys mean"
        )
    if len(shape.names) < 3 or not shape.alike:
        return 0, "no table: neither CSV, JSON Lines nor Parquet"
    if sum(bool(_NUMBER.fullmatch(name)) for name in shape.names) * 2 >= len(shape.names):
        return 0.5, (
            "a CSV without a header line: where its rows are requests, a mapping FILE with "
            "header = [...] names its columns"
        )
    return 0.5, (
        f"a CSV of {len(shape.names)} columns: where its rows are requests, --mapping FILE tells "
        "what they mean"
    )
