"""The text of a chrome trace, cut into whole events without parsing them.

A trace is an object with one long array of events and short facts before and behind it, in any
order. Three writers lay it out in three ways; the bytes between two events are learned from the
first of them.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analyzer.readers._fast_ahead import ahead_of
from analyzer.readers._file import BOM, InputFile

ARRAY = re.compile(rb'"traceEvents"\s{0,64}:\s{0,64}\[')
BARE = re.compile(rb"\s{0,4096}\[\s{0,4096}\{")
_BORDER = re.compile(rb"\s{0,64}\}\s{0,64},\s{0,64}\{")
_END = re.compile(rb"(?:\}\s{0,64}|\A\s{0,64})\](?=\s{0,64}(?:,\s{0,64}\"|\}|\Z))")
_SPACE = re.compile(rb"[\s,]*")
_KEY = re.compile(r'[\s,{]*"([^"\\]{1,200})"\s*:\s*')
LEARN_BYTES = 256 * 1024
"""Enough of a file to know its layout."""
_BLOCK_BYTES = 1024 * 1024
"""What is unpacked, hashed and looked through while it is in the processor's cache."""
_HOLD_BYTES = 1024 * 1024
"""What follows the events is shorter than this, so the end of the array is seen in one piece."""
_MOST_BYTES = 64 * 1024 * 1024
"""No event, and no head, is longer."""
_scan = json.JSONDecoder(strict=False).raw_decode


@dataclass(frozen=True)
class Border:
    """The bytes between two events, from the blanks before a brace to the next brace."""

    text: bytes
    close: int
    """Bytes of it that still belong to the event before."""


@dataclass(frozen=True)
class Chunk:
    """Whole events as they lie there, from the first brace to the last."""

    data: bytes
    border: Border | None
    offset: int
    broken: bool = False
    """It does not end where an event ends."""


class Text:
    """One trace. ``facts`` is known up to the array at first, and whole after :meth:`chunks`."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self.facts: dict[str, Any] = {}
        self.found = False
        """The array of events was found."""
        self.closed = False
        """It ends as it should."""
        self.begin = b""
        """The first events."""
        self._blocks = ahead_of(file.blocks(_BLOCK_BYTES))
        self._rest = bytearray()
        self._offset = 0
        self._head()

    def _head(self) -> None:
        for block in self._blocks:
            self._rest += block
            if self._rest.startswith(BOM):
                del self._rest[: len(BOM)]
                self._offset = len(BOM)
            match = ARRAY.search(self._rest)
            bare = BARE.match(self._rest)
            if match or bare:
                self.found = True
                end = match.end() if match and not bare else bare.end() - 1  # type: ignore[union-attr]
                self.facts = pairs(bytes(self._rest[: match.start()])) if match and not bare else {}
                self._drop(end)
                break
            if len(self._rest) > _MOST_BYTES:
                return
        while len(self._rest) < LEARN_BYTES and (block := next(self._blocks, b"")):
            self._rest += block
        self.begin = bytes(self._rest[:LEARN_BYTES])

    def close(self) -> None:
        """Read no further."""
        self._blocks.close()

    def _drop(self, end: int) -> None:
        space = _SPACE.match(self._rest, end)
        end = space.end() if space else end
        del self._rest[:end]
        self._offset += end

    def chunks(self) -> Iterator[Chunk]:
        """All events, about a megabyte at a time."""
        if not self.found:
            return
        border, rest = _learned(self.begin), bytes(self._rest)
        self._rest = bytearray()
        held: deque[bytes] = deque()
        for one in self._blocks:
            held.append(one)
            if sum(map(len, held)) - len(held[0]) < _HOLD_BYTES:
                continue
            block = held.popleft()
            border = border or _learned((rest + block)[-LEARN_BYTES:])
            cut = -1 if border is None else block.rfind(border.text)
            if border is None or cut < 0:
                rest += block
                if len(rest) > _MOST_BYTES:
                    yield Chunk(rest[:1024], None, self._offset, broken=True)
                    self._offset += len(rest)
                    rest = b""
                continue
            data = b"".join((rest, memoryview(block)[: cut + border.close]))
            yield Chunk(data, border, self._offset)
            rest = block[cut + len(border.text) - 1 :]
            self._offset += len(data) + len(border.text) - 1 - border.close
        rest = b"".join((rest, *held))
        yield from self._last(rest, border)

    def _last(self, rest: bytes, border: Border | None) -> Iterator[Chunk]:
        """The events before the end of the array, and the facts behind it."""
        end = _END.search(rest, max(0, rest.rfind(b'"ph"')))
        if end is not None:
            self.closed = True
            tail = rest[end.end() :]
            self.facts |= pairs(tail)
            rest = rest[: end.start() + end[0].startswith(b"}")]
        rest = rest.rstrip(b" \t\r\n,\0")
        if rest:
            yield Chunk(rest, border, self._offset, broken=not rest.endswith(b"}"))


def _learned(text: bytes) -> Border | None:
    """The commonest border of two objects."""
    found = Counter(match[0] for match in _BORDER.finditer(text))
    if not found:
        return None
    ((border, _),) = found.most_common(1)
    return Border(border, border.index(b"}") + 1)


def pairs(text: bytes) -> dict[str, Any]:
    """Keys and values of an object, as far as they are whole."""
    decoded = text.decode("utf-8", "replace")
    found: dict[str, Any] = {}
    at = 0
    while (key := _KEY.match(decoded, at)) is not None:
        try:
            found[key[1]], at = _scan(decoded, key.end())
        except (ValueError, RecursionError):
            break
    return found


def tail_facts(file: InputFile) -> dict[str, Any]:
    """Facts behind the events, read ahead: the rows need them, and some writers put them last."""
    if file.packing == "plain":
        with file.open_raw() as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _HOLD_BYTES))
            rest = stream.read()
    else:
        rest = b""
        for block in file.blocks(_BLOCK_BYTES):
            rest = (rest + block)[-_HOLD_BYTES:]
        file.cut, file.position = None, 0
    end = _END.search(rest, max(0, rest.rfind(b'"ph"')))
    return pairs(rest[end.end() :]) if end else {}
