"""A log file whose lines stand in the order of their times, though their requests end in another.

Real servers write a line when something ends. Outcomes come when an attempt is over for everybody,
which may be later. Lines wait until nothing earlier is to be expected, and no longer.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HORIZON_NS = 120_000_000_000
"""How long a line waits for earlier ones; memory is bounded by what happens in that time."""


class OrderedLines:
    """Lines of one file by time; those of the same time in the order they came."""

    def __init__(self, path: Path, *, horizon_ns: int = HORIZON_NS) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w", encoding="utf-8", newline="\n")
        self._horizon_ns = horizon_ns
        self._waiting: list[tuple[int, int, str]] = []
        self._count = 0
        self._newest = 0

    def add(self, time_ns: int, line: str) -> None:
        """Take a line that was written at ``time_ns``."""
        self._count += 1
        heapq.heappush(self._waiting, (time_ns, self._count, line))
        if time_ns > self._newest:
            self._newest = time_ns
            self._flush(time_ns - self._horizon_ns)

    def _flush(self, until_ns: int) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] < until_ns:
            self._file.write(heapq.heappop(waiting)[2] + "\n")

    def close(self) -> None:
        """Write what waits."""
        self._file.writelines(line + "\n" for _, _, line in sorted(self._waiting))
        self._waiting.clear()
        self._file.close()
