"""Threads of calls, and the conversations they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_SIDE = "/side"


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a request; ``told`` is in order of time.

    The first to continue a request goes on with its thread; a second is a fork: a thread of its own
    in the same session.
    """
    parents = {
        one["session_id"]: one["parent_session_id"] for one in told if one["parent_session_id"]
    }
    outermost: dict[str, str] = {}
    stitched: dict[int, tuple[str, str]] = {}
    continued: set[int] = set()
    named: set[str] = set(parents)
    for one in told:
        session, side = one["session_id"], bool(one["is_sidechain"])
        if session is not None:
            thread = session + _SIDE if side and session not in parents else session
            root = outermost.get(session)
            if root is None:
                root = outermost[session] = _root(session, parents)
            yield one["request_key"], thread, root, side, "told"
            continue
        key, before_key = one["request_key"], one["before_key"]
        before = stitched.get(before_key)
        if before is not None and before_key not in continued:
            continued.add(before_key)
            thread, root = before
        else:
            thread = _unused(one["id"], key, named)
            root = before[1] if before else thread
        stitched[key] = (thread, root)
        yield key, thread, root, side, one["known"] if before else "alone"


def _unused(name: str, request_key: int, named: set[str]) -> str:
    """Ids come again in real runs; threads do not."""
    thread = name if name not in named else f"{name}#{request_key}"
    named.add(thread)
    return thread


def _root(session: str, parents: dict[str, str]) -> str:
    """The outermost parent; parents that go round in a circle end where it closes."""
    met = {session}
    while (above := parents.get(session)) is not None and above not in met:
        met.add(above)
        session = above
    return session
