"""Lines that keep within bounds: where one clock can be, seen from another, given causality.

Each request bounds the offset from below and above at its time. The lines ``offset + drift * x``
within all bounds are a convex polygon in the plane of offset and drift; what is not in it is ruled
out. Few bounds may be those of wrong joins: what contradicts many others is left out and counted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

NS = 1_000_000_000
NS_PER_S_OF_PPM = 1_000.0
MOST_PPM = 500.0
"""A clock that drifts more is broken: NTP's own limit."""
SLACK_NS = 5_000_000.0
"""Stamps of one machine are taken at slightly different moments: what a log calls the end is some
milliseconds after the last byte left."""
REFUSED_SHARE = 0.1
"""Pairs that may contradict the others: more are no few wrong joins."""
FEWEST = 5
"""Pairs on each side of a jump."""
MOST_STRETCHES = 4
"""A clock that jumps more often is not described by jumps."""

Point = tuple[float, float | None, float]
"""Seconds since the middle, lowest and highest offset in ns since a base."""
Vertex = tuple[float, float]
"""Offset in ns and drift in ns a second."""


@dataclass(frozen=True)
class Polygon:
    """All lines that a set of bounds leaves."""

    vertices: tuple[Vertex, ...]

    def at(self, x: float) -> tuple[float, float]:
        """Lowest and highest offset at a time."""
        values = [a + b * x for a, b in self.vertices]
        return min(values), max(values)

    def drift(self) -> tuple[float, float]:
        """Lowest and highest drift, ns a second."""
        values = [b for _, b in self.vertices]
        return min(values), max(values)

    def best(self) -> Vertex:
        """A line inside: without drift if there is one, else the middle of the corners."""
        low, high = self.drift()
        if low <= 0.0 <= high:
            cut = self._without_drift()
            return (cut[0] + cut[1]) / 2, 0.0
        count = len(self.vertices)
        return (
            sum(a for a, _ in self.vertices) / count,
            sum(b for _, b in self.vertices) / count,
        )

    def _without_drift(self) -> tuple[float, float]:
        crossings = [a for a, b in self.vertices if b == 0.0]
        for (a1, b1), (a2, b2) in zip(
            self.vertices, (*self.vertices[1:], self.vertices[0]), strict=True
        ):
            if b1 * b2 < 0.0:
                crossings.append(a1 + (a2 - a1) * b1 / (b1 - b2))
        return min(crossings), max(crossings)


@dataclass(frozen=True)
class Stretch:
    """Bounds from one jump to the next, and the lines they leave."""

    first: int
    until: int
    polygon: Polygon
    refused: int


def polygon_of(points: Sequence[Point], slack: float = 0.0) -> Polygon | None:
    """Lines within all bounds; None where there is none."""
    ends = [value for _, low, high in points for value in (low, high) if value is not None]
    limit = MOST_PPM * NS_PER_S_OF_PPM
    reach = max((abs(x) for x, _, _ in points), default=0.0) * limit
    least, most = min(ends) - reach - 4 * NS, max(ends) + reach + 4 * NS
    corners: list[Vertex] = [(least, -limit), (most, -limit), (most, limit), (least, limit)]
    for x, low, high in points:
        corners = _cut(corners, x, high + slack, 1.0)
        if low is not None and corners:
            corners = _cut(corners, x, low - slack, -1.0)
        if not corners:
            return None
    return Polygon(tuple(corners))


def _cut(corners: list[Vertex], x: float, bound: float, sign: float) -> list[Vertex]:
    """What is left of a convex polygon where ``sign * (a + b * x) <= sign * bound``."""
    over = [sign * (a + b * x - bound) for a, b in corners]
    if max(over) <= 0.0:
        return corners
    kept: list[Vertex] = []
    for here, (corner, excess) in enumerate(zip(corners, over, strict=True)):
        before, lack = corners[here - 1], over[here - 1]
        if (excess > 0.0) != (lack > 0.0):
            part = lack / (lack - excess)
            kept.append(
                (
                    before[0] + (corner[0] - before[0]) * part,
                    before[1] + (corner[1] - before[1]) * part,
                )
            )
        if excess <= 0.0:
            kept.append(corner)
    return kept


def fitted(points: Sequence[Point]) -> list[Stretch] | None:
    """Stretches in order of time that explain the points; None where no few jumps do."""
    whole = _steady(points)
    if whole is not None:
        return [whole]
    found: list[Stretch] = []
    first = 0
    while first < len(points):
        if len(found) == MOST_STRETCHES:
            return None
        cut = _longest(points, first)
        if cut is None:
            return None
        found.append(cut)
        first = cut.until
    return _meeting(points, found)


def _steady(points: Sequence[Point], first: int = 0, until: int | None = None) -> Stretch | None:
    """One stretch for a slice of the points, few of them left out."""
    until = len(points) if until is None else until
    told = points[first:until]
    polygon = polygon_of(told) if told else None
    if polygon is not None:
        return Stretch(first, until, polygon, 0)
    if not told:
        return None
    order = _by_conflict(told)
    most = int(len(told) * REFUSED_SHARE)
    drop = 1
    while drop <= most:
        out = set(order[:drop])
        polygon = polygon_of([one for at, one in enumerate(told) if at not in out])
        if polygon is not None:
            return Stretch(first, until, polygon, drop)
        drop = min(2 * drop, most) if drop < most else most + 1
    polygon = polygon_of(told, SLACK_NS)
    return None if polygon is None else Stretch(first, until, polygon, 0)


def _by_conflict(points: Sequence[Point]) -> list[int]:
    """Indices of the points, those first that contradict most of the others."""
    slope = _slope(points)
    lows = [None if low is None else low - slope * x for x, low, _ in points]
    highs = [high - slope * x for x, _, high in points]
    all_lows = sorted(low for low in lows if low is not None)
    all_highs = sorted(highs)
    clashes = []
    for low, high in zip(lows, highs, strict=True):
        above = len(all_lows) - bisect_right(all_lows, high)
        below = 0 if low is None else bisect_left(all_highs, low)
        clashes.append(above + below)
    return sorted(range(len(points)), key=lambda at: (-clashes[at], at))


def _slope(points: Sequence[Point]) -> float:
    """Drift between the medians of the first and the last third, within what a clock can do."""
    third = len(points) // 3
    if third < FEWEST:
        return 0.0
    (x1, y1), (x2, y2) = (
        (median(x for x, _, _ in part), median(middle(one) for one in part))
        for part in (points[:third], points[-third:])
    )
    limit = MOST_PPM * NS_PER_S_OF_PPM
    return max(-limit, min(limit, (y2 - y1) / (x2 - x1))) if x2 > x1 else 0.0


def middle(point: Point) -> float:
    """Of its bounds."""
    _, low, high = point
    return high if low is None else (low + high) / 2


def _longest(points: Sequence[Point], first: int) -> Stretch | None:
    """The longest steady stretch from a point on: what fits so far fits with less as well."""
    best = None
    shortest, most = FEWEST, len(points) - first
    while shortest <= most:
        length = (shortest + most) // 2
        found = _steady(points, first, first + length)
        if found is None:
            most = length - 1
        else:
            best, shortest = found, length + 1
    return best


def _meeting(points: Sequence[Point], found: list[Stretch]) -> list[Stretch] | None:
    """The same stretches, each jump where the fewest points have to be left out.

    A stretch takes some points behind its end as wrong joins before it breaks.
    """
    bounds = [one.first for one in found] + [len(points)]
    for here in range(1, len(found)):
        before, behind = bounds[here - 1], bounds[here + 1]
        reach = int((bounds[here] - before) * REFUSED_SHARE) + FEWEST
        least = max(before + FEWEST, bounds[here] - reach)
        choices = []
        for cut in range(least, min(bounds[here], behind - FEWEST) + 1):
            left, right = _steady(points, before, cut), _steady(points, cut, behind)
            if left is not None and right is not None:
                choices.append((left.refused + right.refused, -cut))
        if not choices:
            return None
        bounds[here] = -min(choices)[1]
    stretches = [_steady(points, first, until) for first, until in pairwise(bounds)]
    return None if None in stretches else [one for one in stretches if one is not None]
