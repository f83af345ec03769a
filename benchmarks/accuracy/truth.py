"""The truth of a world, and from where on something in it is large."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MS, S = 1_000_000, 1_000_000_000
MARGIN = 1.25
"""How far above a play's stated size a cause must be to be demanded."""

Attempt = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """From where on a cause is large: requests, and their excess over the whole."""

    requests: int
    relative: float
    least_ns: int = 100 * MS
    share: float = 0.0
    """Of its own whole that a touched request's excess makes up."""
    mean_ns: int = 0
    """Least mean excess."""


@dataclass
class Truth:
    """A world's truth, read once."""

    attempts: list[Attempt]
    events: list[dict[str, Any]]
    world: dict[str, Any]
    start_ns: int


def due(one: Attempt, *kinds: str) -> int:
    """Time of an attempt that causes of these kinds took."""
    return sum(cause["ns"] for cause in one["causes"] if cause["kind"] in kinds)


def first_of(one: Attempt) -> int:
    """Time to its first token: the client's, or the engine's where no client saw it."""
    return one.get("ttft_ns") or one.get("engine_ttft_ns") or one.get("e2e_ns") or 1


def whole_of(one: Attempt) -> int:
    """The whole of it."""
    return one.get("e2e_ns") or one.get("engine_e2e_ns") or 1


def judged(pairs: Iterable[tuple[int, int]], line: Line) -> str:
    """yes, may or no, of (excess, whole) of every request."""
    told = list(pairs)
    for name, factor, count in (("yes", MARGIN, line.requests), ("may", 0.5, 1)):
        least = line.least_ns * factor
        touched = [(e, w) for e, w in told if e >= least and e >= line.share * factor * w]
        whole = sum(w for _, w in touched)
        if len(touched) >= count and whole:
            excess = sum(e for e, _ in touched)
            mean = excess / len(touched)
            if excess / whole >= line.relative * factor and mean >= line.mean_ns * factor:
                return name
    return "no"
