"""What the timeline draws: lanes on one time axis, scaled, with windows and marks over them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from analyzer.report.values import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analyzer.contract.types import Finding, Lane, Report, Series

COLOURS = {
    "queue": "#d9822b",
    "prefill": "#8a6fd1",
    "decode": "#3b8fc4",
    "network": "#3f9b6c",
    "client": "#c25b86",
    "unattributed": "#8c9196",
}
_OTHER = "#8c9196"
_LINES = ("#3b8fc4", "#d9822b", "#8a6fd1", "#3f9b6c", "#c25b86", "#8c9196")
_BANDS, _MARKS = 12, 8
"""Most windows and marks drawn; the list beside the picture names all."""

_NS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
_IN_WORDS = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
    "ratio": "share",
    "1": "",
    "usd": "USD",
}
_NS_PER_MS = 1_000_000
_MINUTE_NS = 60_000_000_000


@dataclass(frozen=True)
class Drawn:
    """One lane as it is drawn: times in ms, values in the unit that reads best.

    ``groups`` are names with their colours, in the order of the rows' ``group`` index.
    """

    title: str
    groups: tuple[tuple[str, str], ...]
    rows: tuple[dict[str, Any], ...]
    stacked: bool
    ratio: bool = False


@dataclass(frozen=True)
class Band:
    """A numbered window over all lanes, in ms."""

    name: str
    start: int
    end: int
    severity: str


@dataclass(frozen=True)
class Moment:
    """A labelled line over all lanes, in ms."""

    name: str
    at: int
    text: str


@dataclass(frozen=True)
class Timeline:
    """Everything one picture shows."""

    lanes: tuple[Drawn, ...]
    domain: tuple[int, int]
    bands: tuple[Band, ...]
    marks: tuple[Moment, ...]
    incident: tuple[int, int] | None


def colour(segment: str) -> str:
    """Fill of a segment, the same in every picture."""
    return COLOURS.get(segment, _OTHER)


def letter(index: int) -> str:
    """Name of a mark: A to Z, then A1."""
    return chr(ord("A") + index % 26) + (str(index // 26) if index >= 26 else "")


def timeline(report: Report, found: Sequence[Finding]) -> Timeline | None:
    """Gather the picture of a report; None where nothing tells a time."""
    lanes = [lane for lane in (_stack(report.timeline), *map(_lines, report.lanes)) if lane.rows]
    if not lanes:
        return None
    domain = (
        min(row["from"] for lane in lanes for row in lane.rows),
        max(row["to"] for lane in lanes for row in lane.rows),
    )
    bands = [
        Band(str(number), *_ms(item.window), item.severity)
        for number, item in enumerate(found, 1)
        if item.window and _seen(_ms(item.window), domain)
    ]
    marks = [
        Moment(letter(index), item.time_ns // _NS_PER_MS, safe_text(item.text))
        for index, item in enumerate(report.marks)
        if domain[0] <= item.time_ns // _NS_PER_MS <= domain[1]
    ]
    during = _ms(report.incident.window) if report.incident else None
    return Timeline(
        lanes=tuple(lanes),
        domain=domain,
        bands=tuple(bands[:_BANDS]),
        marks=tuple(marks[:_MARKS]),
        incident=during if during and _seen(during, domain) else None,
    )


def _ms(window: tuple[int, int]) -> tuple[int, int]:
    return window[0] // _NS_PER_MS, window[1] // _NS_PER_MS


def _seen(window: tuple[int, int], domain: tuple[int, int]) -> bool:
    return window[0] < domain[1] and window[1] > domain[0]


# --- the stacked lane ----------------------------------------------------------------------------


def _stack(series: Series) -> Drawn:
    """Stack the rows here, since Vega-Lite leaves bars with a start and an end unstacked."""
    told = [row for row in series.rows if is_told(row.get(series.y))]
    told.sort(key=lambda row: (row[series.x], _order(group_of(series, row))))
    step = _step([int(row[series.x]) for row in series.rows])
    sums: dict[int, float] = {}
    for row in told:
        sums[row[series.x]] = sums.get(row[series.x], 0.0) + float(row[series.y])
    scale, unit = factor(series.unit, max(sums.values(), default=0.0))
    names = sorted({group_of(series, row) for row in told}, key=_order)
    rows: list[dict[str, Any]] = []
    for row in told:
        start, base = int(row[series.x]), 0.0
        if rows and rows[-1]["from"] == start // _NS_PER_MS:
            base = rows[-1]["high"]
        rows.append(
            {
                "from": start // _NS_PER_MS,
                "to": (start + step) // _NS_PER_MS,
                "low": base,
                "high": float(f"{base + float(row[series.y]) / scale:.9g}"),
                "group": names.index(group_of(series, row)),
            }
        )
    groups = tuple((name, colour(name)) for name in names)
    return Drawn(titled(safe_text(series.title), unit), groups, tuple(rows), stacked=True)


def is_told(value: float | None) -> bool:
    """Whether a point has a value that can be drawn."""
    return value is not None and math.isfinite(value)


def group_of(series: Series, row: dict[str, Any]) -> str:
    """Segment of a row."""
    return safe_text(str(row.get(series.group, ""))) if series.group else ""


def _order(segment: str) -> tuple[int, str]:
    names = list(COLOURS)
    return (names.index(segment) if segment in names else len(names), segment)


def _step(times: Iterable[int]) -> int:
    starts = sorted(set(times))
    return min((after - before for before, after in pairwise(starts)), default=_MINUTE_NS)


def factor(unit: str, highest: float) -> tuple[float, str]:
    """How much of ``unit`` is one of the unit that reads best, and that unit's name."""
    if unit != "ns":
        return 1.0, unit
    name = next((name for name, size in _NS.items() if highest >= size), "ns")
    return _NS[name], name


def titled(title: str, unit: str) -> str:
    """Add the unit in words where the title lacks it."""
    words = _IN_WORDS.get(unit, unit)
    return f"{title}, {words}" if words and words.lower() not in title.lower() else title


# --- lanes of lines ------------------------------------------------------------------------------


def lines_of(lane: Lane) -> list[str]:
    """Names of a lane's lines, in the order in which they come."""
    return list(dict.fromkeys(safe_text(str(row.get("group") or "")) for row in lane.rows))


def _lines(lane: Lane) -> Drawn:
    """Steps of each line; a bin without a value breaks its line, for nothing is known there."""
    told = [row for row in lane.rows if is_told(row.get("value"))]
    names = lines_of(lane)[: len(_LINES)]
    highest = max((abs(float(row["value"])) for row in told), default=0.0)
    scale, unit = factor(lane.unit, highest)
    rows: list[dict[str, Any]] = []
    for index, name in enumerate(names):
        mine = [row for row in told if safe_text(str(row.get("group") or "")) == name]
        rows += _steps(index, sorted(mine, key=lambda row: int(row["start_ns"])), lane, scale)
    title = titled(safe_text(lane.name), unit)
    groups = tuple(zip(names, _LINES, strict=False))
    ratio = lane.unit == "ratio"
    return Drawn(title, groups, tuple(rows), stacked=False, ratio=ratio)


def _steps(
    index: int, rows: list[dict[str, Any]], lane: Lane, scale: float
) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    width = max(1, lane.bin_ns // _NS_PER_MS)
    piece, end = 0, None
    for row in rows:
        start = int(row["start_ns"]) // _NS_PER_MS
        value = float(f"{float(row['value']) / scale:.9g}")
        if end is not None and start > end:
            piece += 1
        end = start + width
        out.append(
            {"from": start, "to": end, "value": value, "group": index, "piece": f"{index}-{piece}"}
        )
    return out
