"""Time to first token = floor + prefill, fitted to requests that nobody was ahead of.

Prefill is what a pass over the uncached prompt takes: at least one step (its weights are read
whatever the length), a rate a token beyond, and a term for attention where the data supports it.
Beside running answers a prompt waits for the end of the step that runs, and some servers have the
next one scheduled already: ``gap`` counts both, in steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from analyzer.analyses.latency._lines import fitted, quantile

_ROUNDS, _TURNS = 12, 4
_STARTS = (0.15, 0.45)
_GAP = 1.5
"""Half a step until the running one ends, and one that is scheduled already."""
_MOST_GAP = 2.0
_SIDES = 8
"""Points on each side from which the gap is fitted, not assumed."""
_CUT = 3.5
_CORE = {0.6: 0.8416, 0.5: 0.6745, 0.25: 0.3186}
"""Share of a normal scatter -> its half-width in deviations."""
_TERM, _FORM = 0.03, 0.05
"""A further term, or the less physical form, has to narrow the scatter by this much."""


@dataclass
class Point:
    """One request; times in ns. ``value`` is what is fitted."""

    value: float
    fresh: float
    pairs: float
    start: int
    first: int | None
    last: int | None
    after: int | None
    told: bool = False
    prefill: float | None = None
    ahead: float = field(default=0.0)
    busy: bool = field(default=False)
    alone: bool = field(default=False)


@dataclass(frozen=True)
class Line:
    """The fitted model; ``least`` is one step."""

    floor: float
    token: float
    pair: float
    gap: float
    least: float
    added: bool
    """The step comes on top of the rate, instead of being hidden by it."""
    spread: float = 0.0

    def rate(self, one: Point) -> float:
        """What grows with the prompt."""
        return self.token * one.fresh + self.pair * one.pairs

    def total(self, one: Point) -> float:
        """Floor and prefill of one request."""
        rate = self.rate(one)
        prefill = self.least + rate if self.added else max(self.least, rate)
        return max(1.0, self.floor + prefill + (self.gap * self.least if one.busy else 0.0))


def place(points: Sequence[Point], floor: float) -> None:
    """Who is ahead of whom, once the way to the client and back is known."""
    for one in points:
        room = max(0.0, one.value - floor)
        one.ahead = 0.0
        if one.first is not None and not one.told:
            one.ahead = min(max(0.0, one.first - floor - one.start), room)
        one.busy = one.last is not None and one.last - floor > one.start
        one.alone = one.after is None or one.after >= one.start + one.value - floor


def best_line(points: Sequence[Point], least: float, core: float) -> Line | None:
    """The form that leaves the least scatter; a further term has to earn its place."""
    found: list[tuple[float, Line]] = []
    for added in (False, True):
        for paired in (False, True):
            line = _bounded(points, least, core, added=added, paired=paired)
            if line is not None:
                cost = line.spread * (1 + _TERM * paired + _FORM * added)
                found.append((cost, line))
    return min(found, key=lambda one: one[0])[1] if found else None


def _bounded(
    points: Sequence[Point], least: float, core: float, *, added: bool, paired: bool
) -> Line | None:
    busy = sum(one.busy for one in points)
    free = _SIDES <= busy <= len(points) - _SIDES and least > 0
    line = concentrated(points, least, core, added, paired, None if free else _GAP)
    if line is not None and line.gap > _MOST_GAP:
        return concentrated(points, least, core, added, paired, _MOST_GAP)
    return line


def concentrated(
    points: Sequence[Point],
    least: float,
    core: float,
    added: bool,  # noqa: FBT001
    paired: bool,  # noqa: FBT001
    gap: float | None,
) -> Line | None:
    """Least squares on the densest ``core`` share of the points, then with outliers cut softly."""
    shape = Line(0.0, 0.0, 0.0, gap or 0.0, least, added)
    best: Line | None = None
    for share in _STARTS:
        line = _core(points, shape, paired, gap, share, core)
        if line is not None and (best is None or line.spread < best.spread):
            best = line
    if best is None:
        return None
    for _ in range(_TURNS * 2):
        off = [one.value / best.total(one) - 1 for one in points]
        dense = sorted(abs(value) for value in off)[: max(4, int(core * len(points)))]
        spread = max(1e-3, dense[-1] / _CORE[core])
        weights = [
            max(0.0, 1 - (value / (_CUT * spread)) ** 2) ** 2 / best.total(one) ** 2
            for value, one in zip(off, points, strict=True)
        ]
        line = _solve(points, weights, best, paired, gap)
        if line is None:
            break
        best = replace(line, spread=spread)
    return best


def _core(
    points: Sequence[Point], shape: Line, paired: bool, gap: float | None, share: float,  # noqa: FBT001
    core: float,
) -> Line | None:  # fmt: skip
    keep = _start(points, share)
    weights = [1 / max(one.value, 1.0) ** 2 for one in keep]
    line: Line | None = None
    many = max(6, int(core * len(points)))
    for _ in range(_ROUNDS):
        line = _solve(keep, weights, line or shape, paired, gap)
        if line is None:
            return None
        known = line
        off = sorted((abs(one.value / known.total(one) - 1), at) for at, one in enumerate(points))
        dense = [points[at] for _, at in sorted(off[:many], key=lambda pair: pair[1])]
        line = replace(line, spread=off[min(many, len(off)) - 1][0])
        if dense == keep:
            break
        keep = dense
        weights = [1 / line.total(one) ** 2 for one in keep]
    return line


def _start(points: Sequence[Point], share: float) -> list[Point]:
    """Fast ones of every length: a band around a low quantile in bins of the prompt."""
    ordered = sorted(points, key=lambda one: one.fresh)
    bins = max(2, min(12, len(points) // 6))
    kept = []
    for nth in range(bins):
        part = ordered[nth * len(ordered) // bins : (nth + 1) * len(ordered) // bins]
        part.sort(key=lambda one: one.value)
        low = max(0, int((len(part) - 1) * share - 0.15 * len(part)))
        kept += part[low : low + max(1, int(0.3 * len(part)))]
    return kept


def _solve(
    points: Sequence[Point], weights: Sequence[float], at: Line, paired: bool, gap: float | None,  # noqa: FBT001
) -> Line | None:  # fmt: skip
    """Coefficients; which points are longer than one step depends on them, so a few turns."""
    for turn in range(_TURNS):
        columns, values = [], []
        first = turn == 0 and at.token == at.pair == 0
        for one in points:
            grows = at.added or first or at.rate(one) >= at.least
            base = at.least if at.added or not grows else 0.0
            if one.busy and gap is not None:
                base += gap * at.least
            columns.append(
                [1.0, one.fresh if grows else 0.0]
                + ([one.pairs if grows else 0.0] if paired else [])
                + ([at.least if one.busy else 0.0] if gap is None else [])
            )
            values.append(max(0.0, one.value - base))
        found = fitted(columns, values, weights)
        if found is None:
            return None
        pair = found[2] if paired else 0.0
        line = replace(
            at, floor=found[0], token=found[1], pair=pair, gap=found[-1] if gap is None else gap
        )
        same = abs(line.token - at.token) <= 1e-6 * line.token
        at = line
        if same and turn:
            break
    return at


def error_of(points: Sequence[Point], line: Line, blocks: int = 6) -> tuple[float, float]:
    """Deviations of floor and rate, from leaving out every so many points in turn."""
    paired = line.pair > 0
    told = []
    for block in range(blocks):
        rest = [one for nth, one in enumerate(points) if nth % blocks != block]
        weights = [
            max(0.0, 1 - ((one.value / line.total(one) - 1) / (_CUT * line.spread)) ** 2) ** 2
            / line.total(one) ** 2
            for one in rest
        ]
        other = _solve(rest, weights, line, paired, line.gap)
        if other is not None:
            told.append(other)
    if len(told) < blocks:
        return line.floor, line.token
    scale = (blocks - 1) / blocks

    def deviation(values: list[float]) -> float:
        middle = sum(values) / len(values)
        return float((scale * sum((value - middle) ** 2 for value in values)) ** 0.5)

    return deviation([one.floor for one in told]), deviation([one.token for one in told])


def step_of(steps: Sequence[float]) -> float:
    """One step of a server that is not busy; 0 where nothing tells it."""
    return quantile(steps, 0.1) if steps else 0.0
