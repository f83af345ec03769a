"""The outermost parents of threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """One row a thread that has a parent."""
    parents = {one["session_id"]: one["parent_session_id"] for one in told}
    known: dict[str, str] = {}
    for session in parents:
        met: set[str] = set()
        at = session
        while at in parents and at not in known and at not in met:
            met.add(at)
            at = parents[at]
        root = known.get(at, at)
        known.update(dict.fromkeys(met, root))
        yield session, root
