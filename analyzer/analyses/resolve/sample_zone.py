"""Holds the minutes of a server's status lines against those of the requests, zone by zone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

MINUTE_NS = 60_000_000_000
HALF = 30
"""Minutes of which nearly all zones are multiples; finer ones would fit by chance."""
FURTHEST = 14 * 60
"""Minutes: no zone is further from UTC."""
NOTHING, MOST = 0.1, 0.9
"""Share of the requests' time that the log shows as it stands, and in its true zone."""
BETTER = 0.02
"""By so much a zone has to fit better than every other one."""


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Sources whose status lines are off by a zone, and by how much."""
    logs: dict[int, dict[int, float]] = defaultdict(dict)
    for row in told:
        logs[row["source_id"]][row["at_ns"] // MINUTE_NS] = row["work"]
    asked = logs.pop(-1, {})
    for source_id, shown in sorted(logs.items()):
        zone = _zone(asked, shown) if asked else 0
        if zone:
            yield source_id, zone * MINUTE_NS


def _zone(asked: dict[int, float], shown: dict[int, float]) -> int:
    """Minutes that a log is ahead; 0 where it fits as it stands or no zone fits alone."""
    busy = {at for at, work in shown.items() if work > 0}
    if not busy or _fit(asked, busy, 0) > NOTHING:
        return 0
    fits = [
        (_fit(asked, busy, minutes), minutes)
        for minutes in range(-FURTHEST, FURTHEST + 1, HALF)
        if minutes
    ]
    fits.sort(reverse=True)
    (best, minutes), (second, _) = fits[:2]
    return minutes if best >= MOST and best - second >= BETTER else 0


def _fit(asked: dict[int, float], busy: set[int], minutes: int) -> float:
    """How much of one is in the other, both ways: the smaller share.

    A request may run on into the next minute, and a status line look back on the last one.
    """
    near = {at + step for at in busy for step in (-1, 0)}
    seen = sum(work for at, work in asked.items() if at + minutes in near)
    at_work = {at + minutes + step for at in asked for step in (-1, 0, 1)}
    return min(seen / sum(asked.values()), len(busy & at_work) / len(busy))
