"""The moment from which a series lies higher: cut by ranks, told from a slow rise and a drift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from statistics import median
from typing import Any

FEWEST = 8
"""Requests on each side of a cut."""
STRONG = 4.0
"""Standard deviations of the rank sum that the two sides have to be apart."""
CLEAR = 3.3
"""Where the series moves nowhere else like that: eight requests and eight come to no more."""
SHOWN = 2.5
"""Where the characters of tools or system prompt show the same step, which is no chance."""
LIKELY = 2.5
"""What a cut needs to be looked at: a rise that ended parts no series as a whole."""
LARGER = 0.7
"""Chance that a value after the cut is larger than one before: below it the two are much alike."""
_MOST_CUTS = 40
_MAIN = 0.6
"""Of the largest rise: the first as large as this is the moment, what follows adds to it."""
_SHARP = 0.8
"""Of a rise between two levels, that stands between the requests right before and after it."""
_CLEAR = 0.7
"""Of what a line between the two levels misses, that the levels may."""
_STANDS_OUT = 4.5
"""A jump of so many times what the series moves elsewhere over as many requests is no drift."""
_USUAL = 0.8
"""Of the moves elsewhere, that are no larger than its usual one: another step is among the rest."""
_AT_ONCE = 0.6
"""Of the rise, that stands right before and after the cut where nothing else moves."""
_DRIFTS = -2.0
"""Standard deviations by which neighbours are more alike than by chance: the level wanders."""
_HOUR_NS = 3_600_000_000_000
_ZONES = (-8, 0, 9)
"""Hours off UTC in which a weekend is looked for."""


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a group with a step up; ``told`` is in order of the group, then of time."""
    for name, members in groupby(told, lambda one: one["group_name"]):
        found = _step(list(members))
        if found is not None:
            yield (name, *found)


def _step(parts: list[dict[str, Any]]) -> tuple[Any, ...] | None:
    """Where prompts rise; else where tools and system prompt do, and prompts with them."""
    chars = [one["chars"] for one in parts]
    found = _rise(parts, [float(one["prompt"]) for one in parts])
    if found is None and all(one is not None for one in chars):
        found = _rise(parts, [float(one) for one in chars])
    return found


def _rise(parts: list[dict[str, Any]], series: list[float]) -> tuple[Any, ...] | None:
    """The largest rise between two levels, with what lay before it and what follows."""
    sizes = [float(one["prompt"]) for one in parts]
    weights = [int(one["requests"]) for one in parts]
    cuts = [0, *_cuts(series, weights), len(series)]
    levels = [median(series[low:high]) for low, high in pairwise(cuts)]
    rises = [after - before for before, after in pairwise(levels)]
    if not rises or max(rises) <= 0:
        return None
    at = next(k for k, rise in enumerate(rises, 1) if rise >= _MAIN * max(rises))
    middle = (levels[at - 1] + levels[at]) / 2
    if _comes_again(series, weights, middle):
        return None
    first, last = at - 1, at
    while first and levels[first - 1] <= middle:
        first -= 1
    while last + 1 < len(levels) and levels[last + 1] > middle:
        last += 1
    low, high = cuts[first], cuts[last + 1]
    near = (cuts[at - 1], cuts[at + 1])
    exact = _moment(series, weights, near, (levels[at - 1], levels[at]))
    cut, middle_chars = _by_chars(parts, low, exact, high)
    before, after = sizes[low:cut], sizes[cut:high]
    z, larger = _apart(before, after, weights[low:cut], weights[cut:high])
    is_shown = middle_chars is not None
    if z < SHOWN or not (is_shown or _is_step(sizes[low:high], cut - low, z, larger)):
        return None
    if not (is_shown or _jumps(before, after) or _is_sharp(sizes, near, cut)):
        return None
    return (
        parts[low]["first_nth"],
        parts[cut - 1]["first_nth"] if weights[cut - 1] > 1 else parts[cut]["first_nth"],
        parts[cut]["last_nth"],
        None if high == len(parts) else parts[high - 1]["last_nth"],
        (median(before) + median(after)) / 2,
        middle_chars,
        z,
        larger,
        not is_shown and _is_weekend(parts[low:cut], parts[cut:high]),
    )


def _cuts(sizes: Sequence[float], weights: Sequence[int]) -> list[int]:
    """Where the series parts in two, then its parts again, the clearest first."""
    found: list[int] = []
    open_parts = [(0, len(sizes))]
    while open_parts and len(found) < _MOST_CUTS:
        low, high = open_parts.pop(0)
        best = _best(sizes[low:high], weights[low:high])
        if best is not None:
            found.append(low + best)
            open_parts += [(low, low + best), (low + best, high)]
    return sorted(found)


def _best(sizes: Sequence[float], weights: Sequence[int]) -> int | None:
    """The cut whose two sides differ most by their ranks; None where chance would do as well."""
    count, all_weight = len(sizes), sum(weights)
    ranks = _ranks(sizes)
    best, place, running, weight = LIKELY, None, 0.0, 0
    for k in range(1, count):
        running += ranks[k - 1]
        weight += weights[k - 1]
        if weight < FEWEST or all_weight - weight < FEWEST:
            continue
        z = abs(_z(running, k, count))
        if z > best:
            best, place = z, k
    return place


def _moment(
    series: Sequence[float], weights: Sequence[int], near: tuple[int, int],
    levels: tuple[float, float],
) -> int:  # fmt: skip
    """The cut that leaves the least on the wrong side of two levels.

    No value counts for more than the step itself; of equals the last, for a huge prompt may come
    before it.
    """
    low, high = near
    old, new = levels
    best, place, running = float("inf"), low, 0.0
    for k in range(low, high):
        value = min(max(series[k], old), new)
        if k > low and running <= best:
            best, place = running, k
        running += (2 * value - old - new) * weights[k]
    return place


def _comes_again(series: Sequence[float], weights: Sequence[int], middle: float) -> bool:
    """Runs of small values give way to runs of large ones more than once.

    That is how nights and weekends look, or a batch that runs again.
    """
    runs: list[bool] = []
    start = 0
    for is_large, same in groupby(series, lambda one: one > middle):
        stop = start + len(list(same))
        if sum(weights[start:stop]) >= FEWEST:
            runs.append(is_large)
        start = stop
    kinds = [is_large for is_large, _ in groupby(runs)]
    return kinds[1:].count(True) > 1


def _is_sharp(sizes: Sequence[float], near: tuple[int, int], cut: int) -> bool:
    """From one level to the next at once, though the whole is a staircase."""
    before, after = sizes[near[0] : cut], sizes[cut : near[1]]
    rise = median(after) - median(before)
    jump = median(after[:FEWEST]) - median(before[-FEWEST:])
    return jump >= _SHARP * rise and _jumps(before, after, _CLEAR)


def _is_step(values: Sequence[float], cut: int, z: float, larger: float) -> bool:
    """By its sizes alone: the sides are far enough apart, and the level is no drift."""
    if _stands_out(values, cut):
        return z >= CLEAR and larger >= LARGER
    return z >= STRONG and larger >= LARGER and _is_steady(values[:cut], values[cut:])


def _stands_out(values: Sequence[float], cut: int) -> bool:
    """The series moves nowhere else as it does here: one that wanders parts in two as well.

    Over few requests, and over many, where hours of the day are evened out.
    """
    few = max(3, min(FEWEST, len(values) // 8))
    for width in {few, max(few, len(values) // 8)}:
        moves = {
            k: median(values[k : k + width]) - median(values[k - width : k])
            for k in range(width, len(values) - width + 1)
        }
        others = sorted(abs(move) for k, move in moves.items() if abs(k - cut) >= width)
        here = max((moves[k] for k in (cut - 1, cut, cut + 1) if k in moves), default=0.0)
        if others and here > 0 and here >= _STANDS_OUT * others[int(_USUAL * (len(others) - 1))]:
            return True
    return False


def _is_steady(before: Sequence[float], after: Sequence[float]) -> bool:
    """The rise stands at the cut, and neighbours on each side are no more alike than any two.

    By the squared steps of the ranks from one to the next, 2 of their variance by chance.
    """
    width = max(FEWEST, min(len(before), len(after)) // 4)
    at_once = median(after[:width]) - median(before[-width:])
    steps = spread = 0.0
    for side in (before, after):
        ranks = _ranks(side)
        steps += sum((new - old) ** 2 for old, new in pairwise(ranks))
        spread += sum((rank - (len(side) + 1) / 2) ** 2 for rank in ranks)
    alike = (steps / spread - 2) / (4 / (len(before) + len(after))) ** 0.5 if spread else 0.0
    return alike >= _DRIFTS and at_once >= _AT_ONCE * (median(after) - median(before))


def _is_weekend(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> bool:
    """All on one side lies on weekends and all on the other does not: the days may explain it."""
    for zone in _ZONES:
        sides = [
            {(one["first_ns"] // _HOUR_NS + zone) // 24 % 7 in (2, 3) for one in side}
            for side in (before, after)
        ]
        if sides in ([{True}, {False}], [{False}, {True}]):
            return True
    return False


def _z(rank_sum: float, k: int, count: int) -> float:
    spread = (k * (count - k) * (count + 1) / 12) ** 0.5
    return float((rank_sum - k * (count + 1) / 2) / spread)


def _ranks(values: Sequence[float]) -> list[float]:
    """From 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=lambda one: values[one])
    ranks = [0.0] * len(values)
    start = 0
    for _, same in groupby(order, lambda one: values[one]):
        members = list(same)
        for one in members:
            ranks[one] = start + (len(members) + 1) / 2
        start += len(members)
    return ranks


def _apart(
    before: Sequence[float], after: Sequence[float], old: Sequence[int], new: Sequence[int]
) -> tuple[float, float]:
    """Standard deviations of the rank sum, and the chance that a later value is the larger."""
    if sum(old) < FEWEST or sum(new) < FEWEST:
        return 0.0, 0.5
    many, count = len(after), len(before) + len(after)
    rank_sum = sum(_ranks([*before, *after])[len(before) :])
    larger = (rank_sum - many * (many + 1) / 2) / (many * len(before))
    return _z(rank_sum, many, count), larger


def _jumps(before: Sequence[float], after: Sequence[float], most: float = 1.0) -> bool:
    """Two levels fit better than one straight line does: it is a step, not a slow rise.

    ``most``: of what the line misses, that two levels may.
    """
    values = [*before, *after]
    half = len(values) // 2
    run = len(values) - half
    slopes = [(values[k + run] - values[k]) / run for k in range(half)]
    slope = median(slopes) if slopes else 0.0
    base = median(value - slope * k for k, value in enumerate(values))
    line = sum(abs(value - base - slope * k) for k, value in enumerate(values))
    old, new = median(before), median(after)
    step = sum(abs(value - old) for value in before) + sum(abs(value - new) for value in after)
    return step < most * line


def _by_chars(
    parts: Sequence[dict[str, Any]], low: int, cut: int, high: int
) -> tuple[int, float | None]:
    """The same step in tools and system prompt, which shows the moment to the request."""
    told = [one["chars"] for one in parts[low:high]]
    if any(one is None for one in told):
        return cut, None
    old, new = median(told[: cut - low]), median(told[cut - low :])
    if new <= old:
        return cut, None
    middle = (old + new) / 2
    near = max(5, (high - low) // 10)
    places = [
        k for k in range(max(low + 1, cut - near), min(high, cut + near + 1))
        if parts[k]["chars"] > middle >= parts[k - 1]["chars"]
    ]  # fmt: skip
    if not places:
        return cut, None
    return min(places, key=lambda k: abs(k - cut)), float(middle)
