"""The moment since which the bill is higher: by what an operation costs, else by their number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log
from statistics import median
from typing import Any

_HOUR, _DAY = 3_600_000_000_000, 86_400_000_000_000
_BLOCKS, _FEWEST, _SIDE = 48, 8, 3
"""Blocks of about as many operations into which the case is cut, at least; and on each side."""
_OPERATIONS = 10
"""Operations on each side: fewer are single requests."""
_SHORTEST = 2 * _HOUR
_RISE = 1.25
"""A bill varies by a tenth or two from week to week without a cause; a quarter is a change."""
_MANY_TIMES = 2.0
"""Calls come and go with their users: only twice as many from one day to the next are news."""
_STRONG, _LARGER = 2.8, 0.9
"""Rank sum, in deviations, and the chance that a later block is dearer. The highest three of 48 in
one row, at its end, come to 2.9: once in 17,000 by chance."""
_COVERED, _COVERED_OF_WEEK = 0.5, 0.2
"""Share of the later operations whose hour of the day has to have come before, to compare by it;
and that hour of such a day, a weekend's or another."""


@dataclass(frozen=True)
class Block:
    """A stretch of time: its operations and what they cost."""

    start_ns: int
    until_ns: int
    operations: float
    usd: float

    @property
    def each(self) -> float:
        """Dollars an operation."""
        return self.usd / self.operations


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """The one row, or none; ``told`` is in order of time."""
    bins = [
        Block(
            row["start_ns"], row["start_ns"] + row["bin_ns"],
            row["operations"], float(row["usd"]),
        )
        for row in told
        if row["usd"] > 0 and row["operations"] > 0
    ]  # fmt: skip
    if not bins or bins[-1].until_ns - bins[0].start_ns < _SHORTEST:
        return
    end = told[-1]["last_ns"] + 1
    found = _dearer(bins) or _busier(bins)
    if found is not None:
        yield _row(bins, end, *found)


def _row(
    bins: Sequence[Block], end: int, cut: int, moved: str, times: float, z: float
) -> tuple[Any, ...]:
    before, after = bins[:cut], bins[cut:]
    since = after[0].start_ns
    compared = _matched(before, after, _hour)[1] >= _COVERED
    unlike = _matched(before, after, _is_weekend)[1] < _COVERED_OF_WEEK
    low, high = _baseline(before, since, end)
    old, new = (
        _total([one for one in before if low <= one.start_ns < high] or before),
        _total(after),
    )
    return (
        low, high, since, end, moved, times, compared, unlike, old.each, new.each,
        old.operations / (high - low) * _DAY, new.operations / (end - since) * _DAY, z,
    )  # fmt: skip


def _baseline(before: Sequence[Block], since: int, end: int) -> tuple[int, int]:
    """The same hours of the weeks before; else of the days before; else all before."""
    for period in (7 * _DAY, _DAY):
        back = -(-(end - since) // period) * period
        if since - back >= before[0].start_ns:
            return since - back, end - back
    return before[0].start_ns, since


# --- what an operation costs ---------------------------------------------------------------------

_Found = tuple[int, str, float, float]


def _dearer(bins: Sequence[Block]) -> _Found | None:
    blocks = _blocks(bins)
    if len(blocks) < _FEWEST:
        return None
    values = [_total(bins[low:high]).each for low, high in blocks]
    place, z, larger = _best(values)
    if z < _STRONG or larger < _LARGER or not _jumps(values[:place], values[place:]):
        return None
    if median(values[place:]) < _RISE * median(values[:place]):
        return None
    place = _by_level(values, place)
    cut = _exact(bins, blocks[place - 1][0], blocks[place][1])
    before, after = bins[:cut], bins[cut:]
    if min(sum(one.operations for one in side) for side in (before, after)) < _OPERATIONS:
        return None
    times = _times(before, after)
    return (cut, "cost per call", times, z) if times >= _RISE else None


def _blocks(bins: Sequence[Block]) -> list[tuple[int, int]]:
    """Runs of bins with about as many operations each; what is left over joins the last."""
    wanted = sum(one.operations for one in bins) / _BLOCKS
    out, low, count = [], 0, 0.0
    for at, one in enumerate(bins, 1):
        count += one.operations
        if count >= wanted:
            out.append((low, at))
            low, count = at, 0.0
    if low < len(bins) and out:
        out[-1] = (out[-1][0], len(bins))
    return out


def _exact(bins: Sequence[Block], low: int, high: int) -> int:
    """The bin at which two levels part best, near the cut between two blocks."""
    old = log(_total(bins[:low] or bins[low:high]).each)
    new = log(_total(bins[high:] or bins[low:high]).each)
    middle = (old + new) / 2

    def dear(one: Block) -> float:
        return (log(one.each) - middle) * min(one.operations, _OPERATIONS)

    best, place, running = 0.0, low, 0.0
    for at in range(low, high):
        running -= dear(bins[at])
        if running > best:
            best, place = running, at + 1
    return max(1, min(place, len(bins) - 1))


def _times(before: Sequence[Block], after: Sequence[Block]) -> float:
    """How much dearer operations are, like hours of like days compared where they can be."""
    for key, enough in ((_hour_of_week, _COVERED_OF_WEEK), (_hour, _COVERED)):
        times, covered = _matched(before, after, key)
        if covered >= enough:
            return times
    return _total(after).each / _total(before).each


def _matched(
    before: Sequence[Block], after: Sequence[Block], key: Callable[[Block], int]
) -> tuple[float, float]:
    """Cost of the later operations over what as many cost in like hours before; share of them."""
    old: dict[int, list[Block]] = defaultdict(list)
    for one in before:
        old[key(one)].append(one)
    each = {name: _total(members).each for name, members in old.items()}
    like = [one for one in after if key(one) in each]
    usual = sum(one.operations * each[key(one)] for one in like)
    covered = sum(one.operations for one in like) / sum(one.operations for one in after)
    return (sum(one.usd for one in like) / usual if usual else 1.0), covered


def _hour(one: Block) -> int:
    return one.start_ns % _DAY // _HOUR


def _is_weekend(one: Block) -> bool:
    return (one.start_ns // _DAY + 3) % 7 >= 5


def _hour_of_week(one: Block) -> int:
    return _hour(one) + 24 * _is_weekend(one)


def _total(blocks: Sequence[Block]) -> Block:
    return Block(
        blocks[0].start_ns, blocks[-1].until_ns, sum(one.operations for one in blocks),
        sum(one.usd for one in blocks),
    )  # fmt: skip


# --- how many there are --------------------------------------------------------------------------


def _busier(bins: Sequence[Block]) -> _Found | None:
    """Whole days only, at least three on each side, none of the later ones as quiet as before."""
    first, last = bins[0].start_ns // _DAY + 1, bins[-1].start_ns // _DAY
    days = [0.0] * max(0, last - first)
    for one in bins:
        if first <= one.start_ns // _DAY < last:
            days[one.start_ns // _DAY - first] += one.operations
    if len(days) < 2 * _SIDE:
        return None
    place, z, larger = _best(days)
    old, new = days[:place], days[place:]
    if not place or larger < 1 or not _jumps(old, new) or min(old) <= 0:
        return None
    times = median(new) / median(old)
    place = _by_level(days, place)
    cut = next(at for at, one in enumerate(bins) if one.start_ns // _DAY == first + place)
    return (cut, "calls", times, z) if times >= _MANY_TIMES else None


# --- cuts ----------------------------------------------------------------------------------------


def _best(values: Sequence[float]) -> tuple[int, float, float]:
    """Where ranks rise most, by how many deviations, and how often the later value is larger."""
    count = len(values)
    ranks = _ranks(values)
    best, place, running = 0.0, 0, 0.0
    larger = 0.5
    for k in range(1, count):
        running += ranks[k - 1]
        if k < _SIDE or count - k < _SIDE:
            continue
        expected = k * (count + 1) / 2
        z = (expected - running) / (k * (count - k) * (count + 1) / 12) ** 0.5
        if z > best:
            best, place = z, k
            larger = 0.5 + (expected - running) / (k * (count - k))
    return place, best, larger


def _by_level(values: Sequence[float], place: int) -> int:
    """The cut past neighbours of the other level: by ranks, a dear block before joins a rise."""
    middle = (median(values[:place]) * median(values[place:])) ** 0.5
    while place < len(values) - _SIDE and values[place] < middle:
        place += 1
    while place > _SIDE and values[place - 1] > middle:
        place -= 1
    return place


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


def _jumps(before: Sequence[float], after: Sequence[float]) -> bool:
    """Two levels fit better than a rise from day to day: than a line through the whole."""
    values = [*before, *after]
    half = len(values) // 2
    run = len(values) - half
    slope = median((values[k + run] - values[k]) / run for k in range(half))
    base = median(value - slope * k for k, value in enumerate(values))
    line = sum(abs(value - base - slope * k) for k, value in enumerate(values))
    old, new = median(before), median(after)
    step = sum(abs(value - old) for value in before) + sum(abs(value - new) for value in after)
    return step < line
