"""Large JSON documents, list item by list item: memory holds one item, never the file."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from analyzer.readers._file import BOM, InputFile

BLOCK_BYTES = 2 * 1024 * 1024
MAX_ITEM_CHARS = 64 * 1024 * 1024
Path = tuple[str | int, ...]

_EXCERPT = 1000
_GOES_ON = len("e+5")
_BLANK = re.compile(r"[ \t\r\n]*")
_scan = json.JSONDecoder().raw_decode


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < 400 else float("inf")


# Python refuses to make a number of over 4300 digits; one of them must not end the document.
_scan_any = json.JSONDecoder(parse_int=_whole).raw_decode
_scan_exact = json.JSONDecoder(parse_int=_whole, parse_float=Decimal).raw_decode


@dataclass(frozen=True, slots=True)
class Item:
    """One value and where it stands. ``broken`` says why the document ends here, if it does.

    ``value`` is then the text around that place, for an excerpt.
    """

    path: Path
    value: Any
    offset: int
    broken: str = ""


class _Broken(ValueError):
    """The document cannot be read on."""


class _Text:
    """A window of the file that moves on; what lies before ``at`` is forgotten."""

    def __init__(self, file: InputFile, *, exact: bool) -> None:
        self._scan, self._scan_any = (_scan_exact,) * 2 if exact else (_scan, _scan_any)
        self._blocks = file.blocks(BLOCK_BYTES)
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._counted = (0, 0)
        self._ended = False
        self.text = ""
        self.at = 0
        self.more()
        if self.text.startswith("\ufeff"):
            self.text = self.text[1:]
            self._counted = (0, len(BOM))

    def offset(self) -> int:
        """Bytes of the file before ``at``; each character is counted once, whoever asks."""
        at, total = self._counted
        self._counted = (self.at, total + _bytes(self.text[at : self.at]))
        return self._counted[1]

    def more(self, least: int = 1) -> bool:
        """At least ``least`` characters more, or False at the end of the file."""
        if self._ended:
            return False
        self._counted = (0, self.offset())
        parts, got = [self.text[self.at :]], 0
        while got < least:
            block = next(self._blocks, None)
            parts.append(self._decode(block or b"", block is None))
            got += len(parts[-1])
            if block is None:
                self._ended = True
                break
        self.text, self.at = "".join(parts), 0
        return got > 0

    def peek(self) -> str:
        """The next character that is no blank; empty at the end."""
        while True:
            blank = _BLANK.match(self.text, self.at)
            self.at = blank.end() if blank else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def value(self) -> Any:  # noqa: ANN401 - foreign JSON
        """The value that begins here, read as far as it takes."""
        while True:
            found, end = self._decoded()
            # A number may go on in the next block, by ".5" or "e+5"; all else tells where it ends.
            sure = isinstance(found, (str, dict, list))
            if end is not None and (sure or end + _GOES_ON <= len(self.text)):
                self.at = end
                return found
            rest = len(self.text) - self.at
            if rest > MAX_ITEM_CHARS:
                raise _Broken(f"one value is larger than {MAX_ITEM_CHARS >> 20} MiB, or damaged")
            if self.more(rest):
                continue
            found, end = self._decoded()
            if end is None:
                raise _Broken("")
            self.at = end
            return found

    def _decoded(self) -> tuple[Any, int | None]:
        """The value and its end; None where it breaks off."""
        try:
            return self._scan(self.text, self.at)
        except json.JSONDecodeError:
            return None, None
        except ValueError:
            return self._with_any_digits()
        except RecursionError:
            raise _Broken("a value nested too deeply") from None

    def _with_any_digits(self) -> tuple[Any, int | None]:
        """The same where a number has more digits than Python converts."""
        try:
            return self._scan_any(self.text, self.at)
        except json.JSONDecodeError:
            return None, None
        except RecursionError:
            raise _Broken("a value nested too deeply") from None

    def expect(self, char: str) -> None:
        """Passes over one character."""
        if self.peek() != char:
            raise _Broken("")
        self.at += 1


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def each_item(
    file: InputFile, lists: Collection[tuple[str, ...]], *, exact: bool = False
) -> Iterator[Item]:
    """The items of the named lists, and every other value on the way to them, in file order.

    A list is named by its path, where ``*`` stands for any place in a list: ``("a", "*", "b")`` are
    the items of ``b`` in each item of ``a``, ``()`` those of a document that is a list itself.
    ``exact`` keeps all digits of decimals.
    """
    ways = {name[:i] for name in lists for i in range(len(name) + 1)}
    text = _Text(file, exact=exact)
    try:
        yield from _walk(text, (), ways)
        reason = "more text follows the document and was not read" if text.peek() else ""
    except _Broken as broken:
        reason = str(broken) or "the document breaks off or is damaged here"
    if reason:
        around = text.text[text.at : text.at + _EXCERPT]
        yield Item((), around, text.offset(), f"{reason}; what came before was read")


def _walk(text: _Text, path: Path, ways: set[tuple[str, ...]]) -> Iterator[Item]:
    begin = text.peek()
    if begin not in ("{", "[") or _pattern(path) not in ways:
        offset = text.offset()
        yield Item(path, text.value(), offset)
        return
    text.at += 1
    end = "}" if begin == "{" else "]"
    index = 0
    while text.peek() != end:
        if index:
            text.expect(",")
            text.peek()
        step: str | int = index
        if begin == "{":
            key = text.value()
            if not isinstance(key, str):
                raise _Broken("")
            text.expect(":")
            step = key
        yield from _walk(text, (*path, step), ways)
        index += 1
    text.at += 1


def _pattern(path: Path) -> tuple[str, ...]:
    return tuple("*" if isinstance(step, int) else step for step in path)


def is_entry(path: Path, lists: Collection[tuple[str, ...]]) -> bool:
    """Whether the path is that of an item of one of the lists."""
    return bool(path) and isinstance(path[-1], int) and _pattern(path[:-1]) in lists
