"""Requests that a source tells in parts, a few records apart: held until the parts have met.

Nothing says that a part was the last one, so what was not added to for long enough is taken to be
complete. At the end of a file the rest is given as it is, and kept in ``resume`` for when the file
has grown.
"""

from __future__ import annotations

from typing import Any

Part = dict[str, Any]
"""JSON-able: it may have to be stored until the file has grown."""


_MOST_PARTS = 1_000


class Pending:
    """Parts by key. The oldest leave when there are more than ``limit`` keys, or ``most`` parts.

    A key with a thousand parts leaves at once: it is no single request's.
    """

    def __init__(
        self,
        limit: int,
        state: Any = None,  # noqa: ANN401 - stored JSON
        most: int | None = None,
    ) -> None:
        self._limit, self._most = limit, most or limit * _MOST_PARTS
        self._open: dict[str, list[Part]] = {key: list(parts) for key, parts in state or ()}
        self._held = sum(map(len, self._open.values()))
        self._done: list[list[Part]] = []

    def add(self, key: str, part: Part) -> None:
        """One more part; its request is the newest then."""
        parts = self._open.pop(key, [])
        parts.append(part)
        self._held += 1
        if len(parts) >= _MOST_PARTS:
            self._leave(parts)
            return
        self._open[key] = parts
        while len(self._open) > self._limit or self._held > self._most:
            self._leave(self._open.pop(next(iter(self._open))))

    def _leave(self, parts: list[Part]) -> None:
        self._done.append(parts)
        self._held -= len(parts)

    def settled(self) -> list[list[Part]]:
        """The requests that left since the last call."""
        done, self._done = self._done, []
        return done

    def rest(self) -> list[list[Part]]:
        """The requests still held, which may change when the file grows."""
        return list(self._open.values())

    def state(self) -> list[tuple[str, list[Part]]]:
        """What a later read goes on from."""
        return list(self._open.items())
