"""Small robust least squares: few columns, few points, no coefficient below 0."""

from __future__ import annotations

from collections.abc import Sequence

_NEAR_NOTHING = 1e-12


def quantile(values: Sequence[float], share: float) -> float:
    """Linear between the two nearest values."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float] | None:
    """Solution of a small system; None where it has no single one."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for at in range(size):
        best = max(range(at, size), key=lambda one: abs(rows[one][at]))
        rows[at], rows[best] = rows[best], rows[at]
        if abs(rows[at][at]) < _NEAR_NOTHING:
            return None
        for below in range(at + 1, size):
            factor = rows[below][at] / rows[at][at]
            for column in range(at, size + 1):
                rows[below][column] -= factor * rows[at][column]
    found = [0.0] * size
    for at in reversed(range(size)):
        known = sum(rows[at][j] * found[j] for j in range(at + 1, size))
        found[at] = (rows[at][size] - known) / rows[at][at]
    return found


def fitted(
    columns: Sequence[Sequence[float]], values: Sequence[float], weights: Sequence[float]
) -> list[float] | None:
    """Weighted least squares with coefficients of at least 0; ``columns`` has one row a point.

    Columns are scaled first, for tokens and their squares differ by many digits. A column that says
    nothing of its own gets 0.
    """
    count = len(columns[0])
    scale = [max((abs(row[j]) for row in columns), default=0.0) or 1.0 for j in range(count)]
    heaviest = max(weights, default=0.0) or 1.0
    weights = [weight / heaviest for weight in weights]
    use = list(range(count))
    while use:
        matrix = [
            [
                sum(
                    weight * row[i] * row[j]
                    for row, weight in zip(columns, weights, strict=True)
                )
                / (scale[i] * scale[j])
                for j in use
            ]
            for i in use
        ]  # fmt: skip
        right = [
            sum(
                weight * row[i] * value
                for row, value, weight in zip(columns, values, weights, strict=True)
            )
            / scale[i]
            for i in use
        ]
        found = solved(matrix, right)
        if found is None:
            use.pop()
            continue
        worst = min(range(len(use)), key=lambda one: found[one])
        if found[worst] >= 0:
            told = [0.0] * count
            for value, column in zip(found, use, strict=True):
                told[column] = value / scale[column]
            return told
        use.pop(worst)
    return None
