"""What profiler traces say of devices, for a screen and for the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analyzer.contract.types import Table


@dataclass(frozen=True)
class DrawnStep:
    """One step as bars.

    ``rows``: lane, part (kind of work), start_ns and end_ns from its begin, and full (share of the
    bar at work). ``events``: what was drawn into them; ``sql``: the queries that gave it.
    """

    title: str
    step_ns: int
    rows: tuple[dict[str, Any], ...]
    events: int
    sql: str


@dataclass(frozen=True)
class Devices:
    """Answer of ``analyze gpu``: whether traces can be trusted, then where device time went.

    ``bounds``: what requests saw a token beside the bound of the hardware, by deployment and model,
    where the case holds requests and tells the hardware. ``beside``: the bound of the traced decode
    steps (where annotations tell batch and context), and what the device did while requests were on
    their way, shares of that time. ``drawn`` is for the report only.
    """

    trust: Table
    idle: Table
    classes: Table
    phases: Table
    ranks: Table
    bounds: tuple[dict[str, Any], ...] = ()
    beside: dict[str, Any] = field(default_factory=dict)
    unclassified: tuple[dict[str, Any], ...] = ()
    drawn: tuple[DrawnStep, ...] = ()
