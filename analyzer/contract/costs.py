"""The answer of ``analyze cost``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from decimal import Decimal

    from analyzer.contract.types import Table


@dataclass(frozen=True)
class Costs:
    """What was used and what it costs; what changed, and where bills disagree, where asked.

    ``total`` counts what the logs track with its usage. ``bridge`` needs two windows, and adds up
    to ``window_usd`` less ``baseline_usd``; ``reconciliation`` and ``reconciled`` need a bill.
    ``by`` names the groups of ``rows``, of which ``groups`` exist; ``notes`` say what the sums
    leave out and rest on.
    """

    by: tuple[str, ...]
    rows: Table
    groups: int
    total: dict[str, Any]
    waste: Table
    notes: tuple[str, ...] = ()
    bridge: Table | None = None
    baseline_usd: Decimal | None = None
    window_usd: Decimal | None = None
    windows: tuple[tuple[int, int], tuple[int, int]] | None = None
    by_day: bool = False
    """The bridge and its sums are those of a day, for its windows differ in length."""
    reconciliation: dict[str, Any] | None = None
    reconciled: Table | None = None
    self_host: Table | None = None
    """One row: the API beside GPUs of one's own, where asked."""
