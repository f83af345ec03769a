"""A conversation that is told line by line: how long its prompt has become, by who said what.

Nothing is hashed: a transcript appends, so that what was said before does not change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from analyzer.readers._part_blocks import content_pieces, message_pieces
from analyzer.readers._parts import Piece

_SUM_OF = {
    "system": "system_chars", "user": "user_chars", "assistant": "assistant_chars",
    "tool_call": "assistant_chars", "reasoning": "reasoning_chars",
    "tool_result": "tool_result_chars",
}  # fmt: skip
_ALWAYS = ("user_chars", "assistant_chars", "reasoning_chars", "tool_result_chars", "images")
_ANSWER = ("assistant_chars", "reasoning_chars")
Sums = dict[str, int]


class Thread:
    """What was said so far, which is the prompt of the next request."""

    def __init__(self) -> None:
        """Nothing was said."""
        self._sums: Sums = {}

    def columns(self) -> dict[str, int]:
        """The make-up of the next request's prompt; nothing where nothing was told."""
        return dict.fromkeys(_ALWAYS, 0) | self._sums if self._sums else {}

    def message(self, message: Any) -> None:  # noqa: ANN401 - foreign JSON
        """One message, or item of OpenAI's responses API, was said."""
        self.add(_plain(message) or sums_of(message_pieces(message)))

    def content(self, kind: str, content: Any) -> None:  # noqa: ANN401
        """A text or blocks of this kind were said."""
        self.add(sums_of(content_pieces(kind, content)))

    def add(self, sums: Sums) -> None:
        """Characters were added."""
        for name, chars in sums.items():
            self._sums[name] = self._sums.get(name, 0) + chars

    def take_back(self, sums: Sums) -> None:
        """Characters that were added are no part of the conversation any more."""
        for name, chars in sums.items():
            self._sums[name] = max(0, self._sums.get(name, 0) - chars)

    def forget(self) -> None:
        """The history was summed up: only what is said from here on counts, and the system."""
        self._sums = {name: one for name, one in self._sums.items() if name == "system_chars"}


class AnsweredThread(Thread):
    """A conversation whose requests are told after their answers: these are no part of them."""

    def __init__(self) -> None:
        """Nothing was said."""
        super().__init__()
        self._answer: Sums = {}
        self._after: Sums = {}

    def add(self, sums: Sums) -> None:
        """An answer waits for its request to be told, and so does what follows it."""
        if any(name in _ANSWER for name in sums):
            if self._after:  # the answer before was never told as a request
                self.told()
            _into(self._answer, sums)
        elif self._answer:
            _into(self._after, sums)
        else:
            super().add(sums)

    def told(self) -> dict[str, int]:
        """Columns of a request whose answer was the last one."""
        columns = self.columns()
        super().add(self._answer)
        super().add(self._after)
        self._answer, self._after = {}, {}
        return columns

    def forget(self) -> None:
        """The history was summed up."""
        super().forget()
        self._answer, self._after = {}, {}


def _plain(message: Any) -> Sums | None:  # noqa: ANN401 - foreign JSON
    """The same for the items that are by far the most, without looking into each field."""
    if not isinstance(message, dict):
        return None
    kind, role = message.get("type"), message.get("role")
    if kind == "function_call":
        name, given = message.get("name"), message.get("arguments")
        if type(name) is str and type(given) is str:
            return {"assistant_chars": len(name) + len(given)}
    elif kind == "function_call_output":
        if type(output := message.get("output")) is str:
            return {"tool_result_chars": len(output)}
    elif kind == "message" and role in ("user", "assistant"):
        content, total = message.get("content"), 0
        for block in content if type(content) is list else (None,):
            if type(block) is not dict or block.get("type") not in ("input_text", "output_text"):
                return None
            if type(said := block.get("text")) is not str:
                return None
            total += len(said)
        return {f"{role}_chars": total}
    return None


def _into(held: Sums, sums: Sums) -> None:
    for name, chars in sums.items():
        held[name] = held.get(name, 0) + chars


def sums_of(pieces: Iterable[Piece]) -> Sums:
    """Characters of pieces under the names of their columns."""
    sums: Sums = {}
    for kind, _, chars, _ in pieces:
        if kind == "image":
            sums["images"] = sums.get("images", 0) + 1
        elif (name := _SUM_OF.get(kind)) is not None:
            sums[name] = sums.get(name, 0) + (chars or 0)
    return sums
