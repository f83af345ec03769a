"""The line of time per output token over context: the cache apart from weights and overhead."""

from __future__ import annotations

import math
from typing import Any

from analyzer.bounds.ask import Setting
from analyzer.bounds.cells import decode_cell

_FEWEST = 8
_VARIED = 1.5
"""Ninetieth over tenth percentile of the context from which a slope can be told."""
_BATCH_VARIES = 0.05
"""Deviation over mean of the batch from which it is a term of its own."""
_TOGETHER = 0.95
"""Squared correlation of batch and context above which they cannot be told apart."""
_Z = 1.959964
_MS = 1e6


def fit_of(at: Setting, sums: dict[str, Any] | None) -> dict[str, Any] | None:
    """Slope and intercept with their intervals, or why there are none."""
    if sums is None:
        return None
    count, low, high = sums["requests"], sums["low_context"], sums["high_context"]
    if count < _FEWEST:
        return _refused(count, f"fewer than {_FEWEST} answers")
    if not low or high < _VARIED * low:
        return _refused(count, "the contexts do not vary enough")
    xx, bb, xb = sums["context_context"], sums["batch_batch"], sums["context_batch"]
    spread = math.sqrt(bb / count) / max(sums["mean_batch"], 1e-9)
    two = spread > _BATCH_VARIES
    if two and xb * xb > _TOGETHER * xx * bb:
        return _refused(count, "batch and context grow together: they cannot be told apart")
    free = count - (3 if two else 2)
    determinant = xx * bb - xb * xb
    if two:
        slope = (bb * sums["context_tpot"] - xb * sums["batch_tpot"]) / determinant
        by_batch = (xx * sums["batch_tpot"] - xb * sums["context_tpot"]) / determinant
        inverse = bb / determinant
    else:
        slope, by_batch, inverse = sums["context_tpot"] / xx, 0.0, 1 / xx
    left = sums["tpot_tpot"] - slope * sums["context_tpot"] - by_batch * sums["batch_tpot"]
    noise = max(0.0, left) / free
    reach = _quantile(free)
    half = reach * math.sqrt(noise * inverse)
    mean = sums["mean_context"]
    intercept = sums["mean_tpot_ns"] - slope * mean
    wide = reach * math.sqrt(noise * (1 / count + mean * mean * inverse))
    bound, weights = _of_bound(at, sums)
    return {
        "requests": count,
        "slope_ns_per_token": slope,
        "slope_low": slope - half,
        "slope_high": slope + half,
        "bound_slope_ns_per_token": bound,
        "cache_ratio": bound / slope
        if bound and slope - half > 0 and bound <= slope + half
        else None,
        "intercept_ms": intercept / _MS,
        "intercept_low": (intercept - wide) / _MS,
        "intercept_high": (intercept + wide) / _MS,
        "weights_ms": None if weights is None else weights / _MS,
        "why": _doubt(slope - half, slope + half, bound),
    }


def _doubt(low: float, high: float, bound: float | None) -> str | None:
    if low <= 0:
        return "the slope is not distinct from none"
    if bound and high < bound:
        return "flatter than reading that cache can be: some of it is shared, or never read"
    return None


def _refused(count: int, why: str) -> dict[str, Any]:
    names = (
        "slope_ns_per_token", "slope_low", "slope_high", "bound_slope_ns_per_token", "cache_ratio",
        "intercept_ms", "intercept_low", "intercept_high", "weights_ms",
    )  # fmt: skip
    return {"requests": count, **dict.fromkeys(names), "why": why}


def _quantile(free: int) -> float:
    """97.5 % quantile of Student's t, by its expansion around the normal one."""
    z = _Z
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / free + second / free**2 + third / free**3


def _of_bound(at: Setting, sums: dict[str, Any]) -> tuple[float | None, float | None]:
    """The bound's own slope over the same contexts, and its time without any context."""
    batch = max(1, round(sums["mean_batch"]))
    ends = [round(sums[name] / batch) for name in ("low_context", "high_context")]
    times = [decode_cell(at, batch, context).expected_ns for context in (*ends, 0)]
    low, high, none = times
    if low is None or high is None or none is None or ends[1] <= ends[0]:
        return None, none
    return (high - low) / (batch * (ends[1] - ends[0])), none
