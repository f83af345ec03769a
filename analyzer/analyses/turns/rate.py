"""How the time to first token grows with the uncached prompt: a median of slopes.

Where most prompts are about equally long, the few longer ones are held against their middle.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from analyzer.analyses.latency._lines import quantile

FEWEST = 8
"""Requests below which a slope is chance."""
WIDE_TOKENS = 256
"""Prompts closer than this say nothing of what a token takes."""
FEWEST_LONG = 2
"""Prompts that stand out, below which what they took is chance."""
_AGREE = 0.75
"""Share of the slopes that have to be above 0."""


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a group; ``told`` is in order of the group, then of tokens."""
    for (model, route), members in groupby(told, lambda one: (one["model"], one["route"])):
        group = [(float(one["fresh_tokens"]), float(one["first_ns"])) for one in members]
        yield (model, route, len(group), *_slope(group))


def _slope(points: list[tuple[float, float]]) -> tuple[Any, ...]:
    """Median and quartiles of the slopes between shorter and longer prompts (after Theil)."""
    if len(points) < FEWEST:
        return None, None, None, f"fewer than {FEWEST} requests tell both"
    half = len(points) // 2
    pairs = zip(points[:half], points[-half:], strict=True)
    slopes = [
        (long_ns - short_ns) / (more - fewer)
        for (fewer, short_ns), (more, long_ns) in pairs
        if more - fewer >= WIDE_TOKENS
    ]
    if len(slopes) * 2 < half:
        slopes = _standing_out(points)
    if not slopes:
        return None, None, None, "the uncached prompts are about equally long"
    if sum(slope > 0 for slope in slopes) < _AGREE * len(slopes):
        return None, None, None, "the time to first token does not follow the uncached prompt"
    low, middle, high = (quantile(slopes, share) for share in (0.25, 0.5, 0.75))
    return middle, max(low, 0.0), high, None


def _standing_out(points: list[tuple[float, float]]) -> list[float]:
    """Slopes from the middle of the bulk to each much longer prompt; none where too few are."""
    usual = quantile([tokens for tokens, _ in points], 0.5)
    bulk = [took for tokens, took in points if tokens < usual + WIDE_TOKENS]
    took_ns = quantile(bulk, 0.5)
    slopes = [
        (took - took_ns) / (tokens - usual)
        for tokens, took in points
        if tokens >= max(usual + WIDE_TOKENS, 2 * usual)
    ]
    return slopes if len(slopes) >= FEWEST_LONG else []
