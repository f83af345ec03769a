"""Numbers the ranks of profiler traces, and says which were captured together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

_TOLD = (
    "world_size", "profiler", "is_wall", "start_ns", "dur_ns", "ended", "stacks", "dropped_records",
    "stopped_early", "overhead_ns",
)  # fmt: skip


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a rank, in the order told."""
    captures = _captures(told)
    for number, (one, capture) in enumerate(zip(told, captures, strict=True), 1):
        head = (number, one["source_id"], one["path"], one["rank"], one["place"], capture)
        yield (*head, *(one[name] for name in _TOLD))


def _captures(told: list[dict[str, Any]]) -> list[int]:
    """Each rank once: all together; else folder by folder; else in order of time in a folder."""
    ranks = Counter(one["rank"] for one in told if one["rank"] is not None)
    together = all(count == 1 for count in ranks.values())
    seen: Counter[tuple[str, int | None]] = Counter()
    keys: list[tuple[Any, ...]] = [()] * len(told)
    for at in sorted(range(len(told)), key=lambda i: (_begin(told[i]), told[i]["path"] or "")):
        one = told[at]
        folder = "" if together else (one["path"] or "").rpartition("/")[0]
        seen[folder, one["rank"]] += 1
        # Without a rank nothing says that two traces belong together.
        alone = at if one["rank"] is None else -1
        keys[at] = (folder, alone, seen[folder, one["rank"]] if alone < 0 else 0)
    numbers = {key: number for number, key in enumerate(sorted(set(keys)), 1)}
    return [numbers[key] for key in keys]


def _begin(one: dict[str, Any]) -> int:
    return (one["start_ns"] or 0) if one["is_wall"] else 0
