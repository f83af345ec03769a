"""CSV with a header, row by row: cells may hold line ends and be as long as a prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.readers._file import BOM, InputFile

_CELLS = {
    mark: re.compile(rf'(?:"([^"]*(?:""[^"]*)*)"|([^"{mark}]*))({mark}|\Z)') for mark in ",;\t"
}
_MOST_BYTES = 32 * 1024 * 1024
_QUOTE = b'"'
OPEN_QUOTE = "a quote is opened and never closed"


@dataclass(frozen=True, slots=True)
class Cells:
    """One row; ``broken`` says why it has no cells."""

    cells: tuple[str, ...]
    text: bytes
    offset: int
    broken: str = ""


def mark_of(header: str) -> str:
    """What separates the cells: whichever of comma, semicolon and tab the header has most of."""
    return max(_CELLS, key=header.count)


def cells_in(text: str, mark: str = ",") -> tuple[str, ...] | None:
    """The cells of one row; None where its quotes do not fit."""
    if '"' not in text:
        return tuple(text.split(mark))
    cell, found, at = _CELLS[mark], [], 0
    while True:
        match = cell.match(text, at)
        if match is None:
            return None
        quoted, plain, end = match.groups()
        found.append(plain if quoted is None else quoted.replace('""', '"'))
        if not end:
            return tuple(found)
        at = match.end()


def csv_rows(file: InputFile, mark: str, width: int) -> Iterator[Cells]:
    """Every row of ``width`` cells, the header too; blank lines are passed over.

    Lines that an open quote joins to no such row are read on from the second of them.
    """
    waiting: list[tuple[int, bytes]] = []
    quotes = size = 0
    for offset, line in _lines(file):
        if not waiting and not line.strip():
            continue
        waiting.append((offset, line))
        quotes += line.count(_QUOTE)
        size += len(line)
        if quotes % 2 and size <= _MOST_BYTES:
            continue
        rows, waiting = _settled(waiting, mark, width)
        yield from rows
        quotes = sum(one.count(_QUOTE) for _, one in waiting)
        size = sum(len(one) for _, one in waiting)
    while waiting:
        rows, waiting = _settled(waiting, mark, width, last=True)
        yield from rows


_Waiting = list[tuple[int, bytes]]


def _settled(
    lines: _Waiting, mark: str, width: int, *, last: bool = False
) -> tuple[list[Cells], _Waiting]:
    """Rows of lines that end outside a quote, and those that again wait for its end."""
    found: list[Cells] = []
    while lines:
        odd = sum(line.count(_QUOTE) for _, line in lines) % 2
        joined = None if odd else _joined(lines, mark, width)
        if joined is not None and (not joined.broken or len(lines) == 1):
            return [*found, joined], []
        offset, line = lines[0]
        if line.count(_QUOTE) % 2:
            found.append(Cells((), line, offset, OPEN_QUOTE))
        elif line.strip():
            found.append(_joined(lines[:1], mark, width))
        lines = lines[1:]
        while lines and not lines[0][1].count(_QUOTE) % 2:
            if lines[0][1].strip():
                found.append(_joined(lines[:1], mark, width))
            lines = lines[1:]
        if lines and not last:
            return found, lines
    return found, []


def _lines(file: InputFile) -> Iterator[tuple[int, bytes]]:
    for block in file.lines():
        yield from zip(block.starts, block.lines, strict=True)


def _joined(lines: _Waiting, mark: str, width: int) -> Cells:
    text = b"\n".join(line for _, line in lines).rstrip(b"\r").removeprefix(BOM)
    offset = lines[0][0]
    try:
        cells = cells_in(text.decode(), mark)
    except UnicodeDecodeError:
        return Cells((), text, offset, "not valid UTF-8")
    if cells is None:
        return Cells((), text, offset, "its quotes do not fit: no valid CSV")
    if len(cells) != width:
        return Cells((), text, offset, f"{len(cells)} cells where the header has {width}")
    return Cells(cells, text, offset)
