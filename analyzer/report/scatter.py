"""What a finding's picture draws: its points in the units that read best, and their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analyzer.report.blocks import Grid
from analyzer.report.timeline import factor, is_told, titled
from analyzer.report.values import count, quantity, raw, safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyzer.contract.types import Chart

_COLOURS = ("#d0564a", "#3b8fc4", "#8a6fd1", "#3f9b6c", "#c25b86", "#8c9196")
_REST = ("others", "answered", "outcome not told", "passed on at once", "before it")
"""Series that stand for the requests without the finding: drawn first, in the second colour."""
_MOMENT = "time_ns"
_NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class Axis:
    """Name and unit of an axis as it is written, and the ends of its values."""

    title: str
    timed: bool
    lowest: float
    highest: float


@dataclass(frozen=True)
class Scatter:
    """Points with ``x``, ``y`` and the index of their series, which have names and colours."""

    x: Axis
    y: Axis
    series: tuple[tuple[str, str], ...]
    rows: tuple[dict[str, Any], ...]
    joined: frozenset[int] = frozenset()
    """Series drawn as lines."""


def scatter(chart: Chart) -> Scatter | None:
    """Scale the points of a finding; None where none can be drawn."""
    told = [row for row in chart.rows if is_told(row["x"]) and is_told(row["y"])]
    if not told:
        return None
    names = _names(told)
    x, x_factor = _axis(chart.x, chart.x_unit, [float(row["x"]) for row in told])
    y, y_factor = _axis(chart.y, chart.y_unit, [float(row["y"]) for row in told])
    rows = tuple(
        {
            "x": float(f"{row['x'] / x_factor:.15g}") if x.timed else _short(row["x"] / x_factor),
            "y": _short(row["y"] / y_factor),
            "series": names.index(_name(row)),
        }
        for row in sorted(told, key=lambda row: names.index(_name(row)))
    )
    # The one that was found is red, or the first line, a limit; the others never are.
    found = chart.lines or [name for name in names if name not in _REST]
    colours = dict(zip(found, (_COLOURS[0], *_COLOURS[2:]), strict=False))
    series = tuple((name, colours.get(name, _COLOURS[1])) for name in names)
    joined = frozenset(names.index(name) for name in chart.lines if name in names)
    return Scatter(x, y, series, rows, joined)


def _name(row: dict[str, Any]) -> str:
    return safe_text(str(row.get("series") or "requests"))


def _names(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Series with the rest first, so that what was found is drawn over it."""
    names = sorted({_name(row) for row in rows})
    return sorted(names, key=lambda name: (name not in _REST, name))[: len(_COLOURS)]


def _axis(name: str, unit: str, values: list[float]) -> tuple[Axis, float]:
    if unit == _MOMENT:
        low, high = min(values) / _NS_PER_MS, max(values) / _NS_PER_MS
        return Axis(name, timed=True, lowest=low, highest=high), _NS_PER_MS
    scale, word = factor(unit, max(map(abs, values)))
    title = titled(name[:1].upper() + name[1:], word)
    return Axis(title, timed=False, lowest=min(values) / scale, highest=max(values) / scale), scale


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def summary(chart: Chart) -> Grid:
    """The picture in numbers: a row a series, of the points that are drawn."""
    told = [row for row in chart.rows if is_told(row["x"]) and is_told(row["y"])]
    rows, exact = [], []
    for name in reversed(_names(told)):
        mine = [row for row in told if _name(row) == name]
        ends = [pick(row[key] for row in mine) for key in ("x", "y") for pick in (min, max)]
        middle = sorted(row["y"] for row in mine)[len(mine) // 2]
        units = (chart.x_unit, chart.x_unit, chart.y_unit, chart.y_unit, chart.y_unit)
        cells = (ends[0], ends[1], ends[2], middle, ends[3])
        shown = [quantity(value, unit) for value, unit in zip(cells, units, strict=True)]
        rows.append((name, count(len(mine)), *shown))
        exact.append(("", "", *(raw(v, u) for v, u in zip(cells, units, strict=True))))
    x, y = chart.x, chart.y
    header = ("", "points", f"{x}, first", "last", f"{y}, lowest", "median", "highest")
    if chart.x_unit != _MOMENT:
        header = ("", "points", f"{x}, lowest", "highest", f"{y}, lowest", "median", "highest")
    numeric = (False, *(True for _ in header[1:]))
    return Grid(header, tuple(rows), numeric, tuple(True for _ in header), tuple(exact))
