"""Fits of what a world is made of, in plain Python: step times, and how many ran at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

NS = 1_000_000_000
_SWEEPS = 400
_NONE = 1e-6


def median(values: Sequence[float]) -> float:
    """Middle value, the lower one of two."""
    return sorted(values)[(len(values) - 1) // 2]


def nonnegative(rows: Sequence[Sequence[float]], wanted: Sequence[float]) -> list[float]:
    """Least squares with no negative coefficient, by cyclic descent over the normal equations.

    Relative errors count: a step of 10 ms that is off by 1 weighs as much as one of 100 off by 10.
    """
    width = len(rows[0])
    scale = [max(abs(row[at]) for row in rows) or 1.0 for at in range(width)]
    gram = [[0.0] * width for _ in range(width)]
    right = [0.0] * width
    for row, target in zip(rows, wanted, strict=True):
        weight = 1.0 / (target * target) if target else 0.0
        scaled = [value / size for value, size in zip(row, scale, strict=True)]
        for i in range(width):
            right[i] += weight * scaled[i] * target
            for j in range(width):
                gram[i][j] += weight * scaled[i] * scaled[j]
    found = [0.0] * width
    for _ in range(_SWEEPS):
        for i in range(width):
            if gram[i][i] <= 0:
                continue
            rest = right[i] - sum(gram[i][j] * found[j] for j in range(width) if j != i)
            found[i] = max(0.0, rest / gram[i][i])
    return [value / size for value, size in zip(found, scale, strict=True)]


def residual(
    rows: Sequence[Sequence[float]], wanted: Sequence[float], found: Sequence[float]
) -> float:
    """Sum of squared relative errors of a fit."""
    total = 0.0
    for row, target in zip(rows, wanted, strict=True):
        told = sum(value * one for value, one in zip(row, found, strict=True))
        total += (told / target - 1) ** 2 if target else 0.0
    return total


@dataclass(frozen=True)
class Load:
    """How many of something are there at each moment, and its mean over an interval."""

    times: list[int]
    levels: list[float]
    """From ``times[i]`` to ``times[i + 1]``."""
    area: list[float]
    """Up to ``times[i]``."""

    def mean(self, start: int, end: int) -> float:
        """Mean level between two moments."""
        if end <= start:
            return 0.0
        return (self._until(end) - self._until(start)) / (end - start)

    def at(self, moment: int) -> float:
        """Level at a moment."""
        index = bisect_right(self.times, moment) - 1
        return self.levels[index] if index >= 0 else 0.0

    def _until(self, at: int) -> float:
        index = bisect_right(self.times, at) - 1
        if index < 0:
            return 0.0
        return self.area[index] + self.levels[index] * (at - self.times[index])


def typical(level: Load, condition: Load) -> float:
    """Level that is held longest while the condition is above 0; 0 where it never is."""
    held: dict[float, int] = {}
    times = sorted({*level.times, *condition.times})
    for start, end in pairwise(times):
        if condition.at(start) > _NONE:
            now = round(level.at(start))
            held[now] = held.get(now, 0) + end - start
    return max(held, key=lambda one: (held[one], one)) if held else 0.0


def load_of(intervals: Sequence[tuple[int, int, float]]) -> Load:
    """Sum of weights over intervals: start, end, weight."""
    steps: dict[int, float] = {}
    for start, end, weight in intervals:
        if end > start:
            steps[start] = steps.get(start, 0.0) + weight
            steps[end] = steps.get(end, 0.0) - weight
    times = sorted(steps)
    levels, area, level, total = [], [], 0.0, 0.0
    for index, at in enumerate(times):
        if index:
            total += level * (at - times[index - 1])
        area.append(total)
        level += steps[at]
        levels.append(level)
    return Load(times, levels, area)
