"""Latency as one table: every column where there is room, the same facts in fewer where not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analyzer.report.blocks import Block, Grid, Words, grid_of, keys_of
from analyzer.report.values import count, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from analyzer.contract.types import Table

    Row = dict[str, Any]

_GRADES = ("measured", "derived", "modelled", "absent")
_EDGES = ("low_ns", "high_ns")
_STATISTICS = ("mean_ns", "p50_ns", "p95_ns", "p99_ns")
_FAILED = "failed"
_NO_DURATION = (
    "No request tells how long it took, so there is no latency to show. How a format records it: "
    "analyze formats NAME; which inputs are missing: analyze status"
)


def latency(table: Table) -> list[Block]:
    """Metrics by group; what no request has and what failed is said below, in a line each."""
    told = [row for row in table.rows if row["requests"] or row["metric"] == _FAILED]
    if not told:
        return [Words(_NO_DURATION), *(Words(note) for note in table.notes)]
    out: list[Block] = [_latency_grid(told)]
    have = {row["metric"] for row in told}
    lacking = dict.fromkeys(row["metric"] for row in table.rows if row["metric"] not in have)
    if lacking:
        out.append(Words(f"Known of no request: {', '.join(lacking)}."))
    failed = sum(row["requests"] + row["absent"] for row in told if row["metric"] == _FAILED)
    if failed:
        apart = "its end-to-end time has" if failed == 1 else "their end-to-end times have"
        out.append(Words(f"{plural(failed, 'request')} failed: {apart} a row apart, no other."))
    return out + [Words(note) for note in table.notes]


def without_unused(table: Table) -> Table:
    """The same table without the columns that no row of it uses."""
    spent = _unused(table.rows)
    rows = tuple({k: v for k, v in row.items() if k not in spent} for row in table.rows)
    return replace(table, rows=rows)


def _unused(rows: Iterable[Row]) -> tuple[str, ...]:
    listed = list(rows)
    empty = [
        key for key in ("share", *_EDGES) if not any(row.get(key) is not None for row in listed)
    ]
    return (*empty, *(key for key in _GRADES if not any(row.get(key) for row in listed)))


def _latency_grid(rows: list[Row]) -> Grid:
    keys = keys_of(rows)
    groups = tuple(keys[: keys.index("metric")])
    spent = _unused(rows)
    wide = grid_of(tuple({k: v for k, v in row.items() if k not in spent} for row in rows))
    share = () if "share" in spent else ("share",)
    names = (*groups, "metric")
    folded = _grid(rows, names, ("known", _known), (*_STATISTICS, *share))
    fewest = _grid(rows, names, ("known", _known), _STATISTICS[:3])
    tightest = replace(fewest, keep=tuple(name != "known" for name in fewest.header))
    keep = tuple(True for _ in wide.header)
    return replace(wide, keep=keep, narrow=replace(folded, narrow=replace(fewest, narrow=tightest)))


def _grid(
    rows: Iterable[Row],
    names: tuple[str, ...],
    middle: tuple[str, Callable[[Row], str]],
    numbers: tuple[str, ...],
) -> Grid:
    listed = list(rows)
    left = grid_of(tuple({key: row.get(key) for key in names} for row in listed))
    right = grid_of(tuple({key: row.get(key) for key in numbers} for row in listed))
    header, text = middle
    lines = zip(left.rows, listed, right.rows, strict=True)
    return Grid(
        header=(*left.header, header, *right.header),
        rows=tuple((*start, text(row), *end) for start, row, end in lines),
        right=(*(False for _ in left.header), False, *(True for _ in right.header)),
        keep=(*(True for _ in left.header), True, *(True for _ in right.header)),
    )


def _known(row: Row) -> str:
    """``119 of 120 measured``: how many have it and how that is known."""
    seen, every = row["requests"], sum(row.get(name) or 0 for name in _GRADES)
    of_all = f"{count(seen)} of {count(every)}" if seen < every else count(seen)
    graded = [name for name in _GRADES[:3] if row.get(name)]
    if len(graded) != 1:
        parts = ", ".join(f"{count(row[name])} {name}" for name in graded)
        return parts or of_all
    return f"{of_all} {graded[0]}"
