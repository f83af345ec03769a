"""Puts every clock of a case on one: lines between pairs of clocks, then along the best of them."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from analyzer.analyses.resolve.clock_line import (
    NS,
    NS_PER_S_OF_PPM,
    SLACK_NS,
    Point,
    Stretch,
    fitted,
    middle,
)

QUARTER_NS = 900 * NS
"""Zones are whole quarters of an hour."""
ZONE_WITHIN_NS = 30 * NS
"""A clock nobody sets is seldom further off than this on top of its zone."""
FEWEST = 3
"""Pairs that agree before an offset is believed: one pair may be two requests under one id."""
FEWEST_FAR = 5
"""And from this many on one of hours: two runs may share ids."""
FAR_NS = 3600 * NS
STEADY_SHARE = 0.75
"""Pairs that must fit; of ids that mean several requests fewer do."""


@dataclass(frozen=True)
class Piece:
    """One clock against another for a stretch of time; ``at_ns`` is on the clock itself."""

    from_ns: int | None
    until_ns: int | None
    at_ns: int
    offset: float
    low: float
    high: float
    drift: float
    drift_low: float
    drift_high: float

    def offset_at(self, time_ns: float) -> float:
        """Offset at a time of this clock."""
        return self.offset + self.drift * (time_ns - self.at_ns) / 1e6

    def minus(self) -> Piece:
        """The other clock against this one."""
        shift = round(self.offset)
        return Piece(
            None if self.from_ns is None else self.from_ns - shift,
            None if self.until_ns is None else self.until_ns - shift,
            self.at_ns - shift, -self.offset, -self.high, -self.low, -self.drift,
            -self.drift_high, -self.drift_low,
        )  # fmt: skip

    def plus(self, base: Piece) -> Piece:
        """The same against what the other clock is held against."""
        there = base.offset_at(self.at_ns - self.offset)
        apart = abs(self.at_ns - self.offset - base.at_ns) / 1e6
        loose = apart * (base.drift_high - base.drift_low)
        return replace(
            self,
            offset=self.offset + there,
            low=self.low + there - (base.offset - base.low) - loose,
            high=self.high + there + (base.high - base.offset) + loose,
            drift=self.drift + base.drift,
            drift_low=self.drift_low + base.drift_low,
            drift_high=self.drift_high + base.drift_high,
        )


@dataclass(frozen=True)
class Edge:
    """An inner clock against an outer one; no pieces: nothing steady explains the pairs."""

    pieces: tuple[Piece, ...]
    pairs: int
    refused: int
    low: float | None
    high: float | None

    @property
    def width(self) -> float:
        """How well it is known."""
        return max(one.high - one.low for one in self.pieces)


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a clock and stretch; ``told`` are the clocks, then the pairs."""
    clocks = {row["clock"]: row for row in told if row["kind"] == "clock"}
    between: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in told:
        if row["kind"] == "pair":
            between[row["other"], row["clock"]].append(row)
    edges = {names: edge_of(group) for names, group in sorted(between.items())}
    reference = _reference(clocks, edges)
    known = _spread(reference, edges) if reference else {}
    for name in sorted(clocks):
        yield from _told(clocks[name], name, reference, known.get(name), edges)


def _reference(clocks: dict[str, dict[str, Any]], edges: dict[tuple[str, str], Edge]) -> str | None:
    """The outermost clock that others can be held against; of equals the one of most rows."""
    joined = {name for names in edges for name in names}
    return min(
        clocks,
        key=lambda name: (
            name not in joined, clocks[name]["vantage_rank"], -clocks[name]["pairs"], name,
        ),
        default=None,
    )  # fmt: skip


def edge_of(group: list[dict[str, Any]]) -> Edge:
    """The inner clock against the outer one, from the pairs that say most."""
    group = sorted(group, key=lambda row: (row["time_ns"], row["high_ns"], row["low_ns"] or 0))
    pairs = group[0]["pairs"]
    sound = [
        row for row in group if row["low_ns"] is None or row["low_ns"] <= row["high_ns"] + SLACK_NS
    ]
    refused = len(group) - len(sound)
    lows = [row["low_ns"] for row in sound if row["low_ns"] is not None]
    if not lows:
        return Edge((), pairs, refused, None, min((row["high_ns"] for row in sound), default=None))
    base = round(median(row["high_ns"] for row in sound))
    mid = (sound[0]["time_ns"] + sound[-1]["time_ns"]) // 2
    points: list[Point] = [
        (
            (row["time_ns"] - mid) / NS,
            None if row["low_ns"] is None else float(min(row["low_ns"], row["high_ns"]) - base),
            float(max(row["high_ns"], row["low_ns"] or row["high_ns"]) - base),
        )
        for row in sound
    ]
    stretches = fitted(points)
    if stretches is not None:
        refused += sum(one.refused for one in stretches)
    if stretches is None or len(group) - refused < STEADY_SHARE * len(group):
        values = [middle(one) + base for one in points]
        return Edge((), pairs, refused, min(values), max(values))
    pieces = _pieces(points, stretches, base, mid)
    return Edge(
        pieces, pairs, refused, min(one.low for one in pieces), max(one.high for one in pieces)
    )


def _pieces(
    points: list[Point], stretches: list[Stretch], base: int, mid: int
) -> tuple[Piece, ...]:
    """Stretches in whole ns on the inner clock."""
    found = []
    for number, one in enumerate(stretches):
        told = points[one.first : one.until]
        x = (told[0][0] + told[-1][0]) / 2
        low, high = one.polygon.at(x)
        offset, drift = one.polygon.best()
        slow, fast = one.polygon.drift()
        last = number == len(stretches) - 1
        found.append(
            Piece(
                None if number == 0 else mid + round(told[0][0] * NS),
                None if last else mid + round(points[one.until][0] * NS),
                mid + round(x * NS), offset + drift * x + base, low + base, high + base,
                drift / NS_PER_S_OF_PPM, slow / NS_PER_S_OF_PPM, fast / NS_PER_S_OF_PPM,
            )
        )  # fmt: skip
    return tuple(found)


def _spread(reference: str, edges: dict[tuple[str, str], Edge]) -> dict[str, tuple[Edge, str]]:
    """Each clock against the reference, along the ways that leave the least uncertainty.

    A way goes on only behind clocks that did not jump.
    """
    steps: dict[str, list[tuple[str, Edge]]] = defaultdict(list)
    for (outer, inner), edge in edges.items():
        if edge.pieces:
            steps[outer].append((inner, edge))
            turned = tuple(one.minus() for one in edge.pieces)
            steps[inner].append(
                (outer, replace(edge, pieces=turned, low=-(edge.high or 0), high=-(edge.low or 0)))
            )
    zero = Piece(None, None, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    known = {reference: (Edge((zero,), 0, 0, 0.0, 0.0), reference)}
    waiting = [(edge.width, name, reference) for name, edge in steps[reference]]
    heapq.heapify(waiting)
    while waiting:
        width, name, via = heapq.heappop(waiting)
        if name in known or len(known[via][0].pieces) > 1:
            continue
        edge = dict(steps[via])[name]
        base = known[via][0].pieces[0]
        known[name] = (replace(edge, pieces=tuple(one.plus(base) for one in edge.pieces)), via)
        for further, next_edge in steps[name]:
            if further not in known:
                heapq.heappush(waiting, (width + next_edge.width, further, name))
    return known


def _told(
    clock: dict[str, Any],
    name: str,
    reference: str | None,
    known: tuple[Edge, str] | None,
    edges: dict[tuple[str, str], Edge],
) -> Iterator[tuple[Any, ...]]:
    vantage, grain = clock["vantage"], clock["high_ns"]
    none = (None,) * 7
    if name == reference:
        yield (
            name, vantage, "reference", None, None, clock["time_ns"], 0, 0, 0, 0.0, 0.0, 0.0,
            False, 0, None, clock["pairs"], 0, grain,
        )  # fmt: skip
        return
    if known is None:
        mine = [edge for names, edge in edges.items() if name in names]
        unsteady = [edge for edge in mine if edge.low is not None]
        edge = max(unsteady or mine, key=lambda one: one.pairs, default=None)
        state = "unsteady" if unsteady else "unpaired"
        low, high = (None, None) if edge is None else (edge.low, edge.high)
        yield (
            name, vantage, state, None, None, clock["time_ns"], None,
            None if low is None else round(low), None if high is None else round(high),
            *none[:3], False, 0, None, edge.pairs if edge else 0, edge.refused if edge else 0,
            grain,
        )  # fmt: skip
        return
    edge, _ = known
    before: Piece | None = None
    for one in edge.pieces:
        yield _row(name, vantage, one, before, edge, grain)
        before = one


def _row(
    name: str, vantage: str, one: Piece, before: Piece | None, edge: Edge, grain: int
) -> tuple[Any, ...]:
    agreed = edge.pairs - edge.refused
    enough = agreed >= (FEWEST_FAR if abs(one.offset) > FAR_NS else FEWEST)
    shifted = one.low > 0 or one.high < 0
    drifts = one.drift_low > 0 or one.drift_high < 0
    quarters = round(one.offset / QUARTER_NS)
    zone = quarters * QUARTER_NS
    if abs(quarters) < 2 or abs(one.offset - zone) > ZONE_WITHIN_NS:
        zone = 0
    step = None
    if before is not None and one.from_ns is not None:
        step = round(one.offset_at(one.from_ns) - before.offset_at(one.from_ns))
    return (
        name, vantage, "known", one.from_ns, one.until_ns, one.at_ns, round(one.offset),
        round(one.low), round(one.high), one.drift, one.drift_low, one.drift_high,
        enough and (shifted or drifts), zone, step, edge.pairs, edge.refused, grain,
    )  # fmt: skip
