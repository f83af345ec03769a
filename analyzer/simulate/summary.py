"""The segments and the cost of a run, added up as its requests end."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from analyzer.simulate.money import Billing, cost_usd, is_billed
from analyzer.simulate.outcome import Base

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyzer.simulate.outcome import RequestOutcome

SEGMENTS = ("queue", "prefill", "decode", "network")
DURATIONS = (*SEGMENTS, "frontend", "hold", "ttft", "tpot", "e2e")
"""Metrics with a mean and a percentile; the first four are the segments."""


@dataclass(frozen=True)
class Spread:
    """One duration over all requests that have it, in ns."""

    mean_ns: int
    p95_ns: int


def spread(values: Sequence[int]) -> Spread | None:
    """Mean and 95th percentile (nearest rank); None for no value."""
    if not values:
        return None
    ranked = sorted(values)
    return Spread(round(sum(ranked) / len(ranked)), ranked[len(ranked) * 95 // 100])


class Summary(Base):
    """Takes outcomes and keeps eight bytes a request and metric."""

    def __init__(self, billing: Billing | None = None) -> None:
        self._billing = billing
        self._values = {name: array("q") for name in DURATIONS}
        self.requests = self.failed = 0
        self.prompt_tokens = self.cached_tokens = self.output_tokens = 0
        self.preemptions = 0
        self.cost_usd = Decimal(0)
        self.unpriced = 0
        self._first_ns: int | None = None
        self._last_ns = 0

    def request(self, outcome: RequestOutcome) -> None:
        """Add one attempt; those that failed count, and are in no duration but the money."""
        one = outcome
        self.requests += one.attempt == 1
        if self._first_ns is None or one.scheduled_ns < self._first_ns:
            self._first_ns = one.scheduled_ns
        self._last_ns = max(self._last_ns, one.done_ns or 0, one.engine_out_ns or 0)
        self._money(one)
        self.preemptions += one.preemptions
        if one.error is not None:
            self.failed += 1
            return
        self.prompt_tokens += one.prompt_tokens
        self.cached_tokens += one.cached_tokens
        self.output_tokens += one.output_tokens
        for name in DURATIONS:
            value = self._tpot(one) if name == "tpot" else getattr(one, f"{name}_ns")
            if value is not None:
                self._values[name].append(value)

    @staticmethod
    def _tpot(one: RequestOutcome) -> int | None:
        """The engine's, so that a hop that holds chunks back does not change it."""
        if one.decode_ns is None or one.output_tokens < 2:
            return None
        return one.decode_ns // (one.output_tokens - 1)

    def _money(self, one: RequestOutcome) -> None:
        if self._billing is None or not self._billing.prices or not is_billed(one):
            return
        cost = cost_usd(one, self._billing)
        if cost is None:
            self.unpriced += 1
        else:
            self.cost_usd += cost

    @property
    def span_ns(self) -> int:
        """From the first request to the last end."""
        return 0 if self._first_ns is None else self._last_ns - self._first_ns

    def spread(self, name: str) -> Spread | None:
        """One duration."""
        return spread(self._values[name])
