"""What changed between two windows of the bill, factor by factor."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.bridging.money import dollars
from analyzer.bridging.told import Told, told
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
    yield found.sentence
    before, after = found.windows
    if not before.requests or not after.requests:
        which = "baseline" if not before.requests else "window"
        yield f"The {which} holds no priced request."
    days = [float(one.days) for one in found.windows]
    if per == "day":
        yield "Dollars and calls are those of a day."
    elif before.days != after.days and all(days):
        each = [dollars(one.usd / one.days) for one in found.windows]
        yield (
            f"The windows are compared as they are: {days[0]:.3g} and {days[1]:.3g} days. A day "
            f"cost {each[0]} in the first and {each[1]} in the second."
        )
    requests = before.unpriced_requests + after.unpriced_requests
    tokens = before.unpriced_tokens + after.unpriced_tokens
    if tokens:
        yield (
            f"{tokens:,} tokens have no known price and are in no factor"
            f" ({before.unpriced_tokens:,} before, {after.unpriced_tokens:,} after)"
            + (f": {requests:,} requests are left out whole." if requests else ".")
        )
