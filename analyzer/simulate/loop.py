"""The loop of events: what happens next, on the one true clock."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

NEVER = 1 << 62


class Loop:
    """Calls in order of their time; those of the same time in the order they were asked for."""

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Callable[..., None], Any]] = []
        self._count = 0

    def at(self, time_ns: int, call: Callable[..., None], what: Any = None) -> None:  # noqa: ANN401
        """Call ``call(time_ns, what)`` then."""
        self._count += 1
        heappush(self._due, (time_ns, self._count, call, what))

    @property
    def next_ns(self) -> int:
        """When the next call is due."""
        return self._due[0][0] if self._due else NEVER

    def run(self) -> int:
        """Until nothing is left; the time of the last call."""
        due, now = self._due, 0
        while due:
            now, _, call, what = heappop(due)
            call(now, what)
        return now
