"""What changed between two windows of the bill, factor by factor."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.bridging.money import dollars
from analyzer.bridging.told import Told, told
from analyzer.bridging.told import Window as Side
from analyzer.contract.types import Table
from analyzer.engines.analysis import all_analyses
from analyzer.engines.duckdb import Engine

Window = tuple[int, int]


def bridge(engine: Engine, baseline: Window, window: Window, *, per: str | None = None) -> Table:
    """The factors whose parts add up to what ``window`` cost more than ``baseline``.

    Windows are half-open, ns UTC. ``per="day"`` compares what they cost a day; else they are
    compared as they are, however long.
    """
    found = between(engine, baseline, window, per=per)
    return Table("analyze.cost.bridge", found.rows, tuple(_notes(found, per)))


def between(engine: Engine, baseline: Window, window: Window, *, per: str | None = None) -> Told:
    """The same with its windows and its sentence."""
    text = all_analyses()["cost_window"].text(
        {
            "baseline_from_ns": str(baseline[0]),
            "baseline_until_ns": str(baseline[1]),
            "window_from_ns": str(window[0]),
            "window_until_ns": str(window[1]),
        }
    )
    return told(engine.rows(text), (baseline, window), per)


def _notes(found: Told, per: str | None) -> Iterator[str]:
    before, after = found.windows
    if before.requests and after.requests:
        yield found.sentence
        yield from _lengths(found, per)
    elif before.requests or after.requests:
        which = "baseline" if after.requests else "window"
        yield f"The {which} holds no priced request: there is nothing to compare with."
    else:
        yield "Neither window holds a priced request: what changed cannot be said."
    yield from _left_out(before, after)


def _lengths(found: Told, per: str | None) -> Iterator[str]:
    """That one of them is longer than the other."""
    before, after = found.windows
    days = [one.days for one in found.windows]
    if per == "day":
        yield "Dollars and calls are those of a day."
    elif before.days != after.days and all(days):
        unit, number = ("hour", 24) if max(days) < 1 else ("day", 1)
        long = [float(one * number) for one in days]
        each = [dollars(one.usd / (one.days * number)) for one in found.windows]
        yield (
            f"The windows are compared as they are: {long[0]:.3g} and {long[1]:.3g} {unit}s. "
            f"{'An' if unit == 'hour' else 'A'} {unit} cost {each[0]} in the first and {each[1]} "
            "in the second."
        )


def _left_out(before: Side, after: Side) -> Iterator[str]:
    """What has no price and is in no factor."""
    requests = before.unpriced_requests + after.unpriced_requests
    tokens = before.unpriced_tokens + after.unpriced_tokens
    if tokens:
        yield (
            f"{tokens:,} tokens have no known price and are in no factor"
            f" ({before.unpriced_tokens:,} before, {after.unpriced_tokens:,} after)"
            + (f": {requests:,} requests are left out whole." if requests else ".")
        )
