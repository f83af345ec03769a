"""Threads of requests, from who continues whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[int, int, int, str]]:
    """One row a request; ``told`` is in order of time."""
    placed: dict[int, tuple[int, int]] = {}
    continued: set[int] = set()
    for one in told:
        key, before_key = one["request_key"], one["before_key"]
        before = placed.get(before_key)
        if before is None:
            thread, session, known = key, key, "alone"
        else:
            thread, session, known = before[0], before[1], one["known"]
            if before_key in continued:
                thread = key
            continued.add(before_key)
        placed[key] = (thread, session)
        yield key, thread, session, known
