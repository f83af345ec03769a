"""Response bodies as people keep them: JSON Lines, a captured event stream, or one document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import pyarrow as pa

from analyzer.contract.types import Batch, Problem, Resume
from analyzer.readers._document import each_value, read_all
from analyzer.readers._file import BOM, Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip, object_of
from analyzer.readers._reader import Options
from analyzer.readers._rows import excerpt

_FRAMING = "event-stream framing"
_FIELDS = (b"event:", b"id:", b"retry:", b":", b"data: [DONE]", b"data:[DONE]")


class Taker(Protocol):
    """Makes rows of bodies. What it carries from body to body must survive JSON."""

    def take(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        """Adds rows to the sink, or raises :class:`Skip` or :class:`Bad`."""

    def memory(self) -> Any:  # noqa: ANN401 - the reader's own
        """What the next body needs to know, as a copy."""

    def open_records(self) -> tuple[int, ...]:
        """Records whose rows may still change."""

    def rest(self) -> Mapping[str, pa.Table]:
        """Rows of what is still open at the end of the file."""


def first_bodies(head: Head, limit: int = 50) -> list[dict[str, Any]]:
    """The first bodies of a file, for a probe; what is none is passed over."""
    if is_document(head):
        values = (value for _, _, value in each_value(_as_text(head.data)))
        some = [value for _, value in zip(range(limit), values, strict=False)]
        inner = [one for value in some for one in (value if isinstance(value, list) else [value])]
        return [one for one in inner if isinstance(one, dict)]
    found = []
    lines = [line for line in head.lines[:limit] if not line.startswith(_FIELDS)]
    for line in lines:
        try:
            found.append(object_of(_unframed(line)))
        except Bad:
            continue
    # A recording of calls, in YAML or in a book, also has lines that are bodies.
    return found if 2 * len(found) >= len(lines) else []


def is_document(head: Head) -> bool:
    """Whether the file is no line format: its first line is no whole object."""
    first = head.lines[0] if head.lines else b""
    return first.startswith(b"[") or first == b"{"


def read_bodies(file: InputFile, options: Options, taker: Taker) -> Iterator[Batch]:
    """A batch a block of lines, or the batches of one document."""
    if options.resume is None and is_document(file.head):
        yield from _read_document(file, taker)
        return
    resume = options.resume
    offset, before = (resume.offset, resume.records) if resume else (0, 0)
    end = resume
    for block in file.lines(offset=offset, records_before=before):
        sink, memory, unsettled = Sink(), taker.memory(), taker.open_records()
        for record, (line, place) in enumerate(
            zip(block.lines, block.starts, strict=True), block.first_record
        ):
            _take_line(line, record, place, taker, sink, cut=block.unterminated)
        yield sink.batch(len(block.lines))
        last = block.last_record
        if not block.unterminated:
            end = Resume(block.end, last, taker.open_records(), taker.memory())
        elif sink.ignored:  # nobody can tell what this line becomes: the file is read anew
            end = None
        else:
            end = Resume(block.offset, last - 1, (*unsettled, last), memory)
    yield Batch(taker.rest(), resume=end)


def _take_line(
    line: bytes, record: int, place: int, taker: Taker, sink: Sink, *, cut: bool
) -> None:
    text = line.strip()
    if not text:
        sink.ignored["blank line"] += 1
        return
    if text.startswith(_FIELDS):
        sink.ignored[_FRAMING] += 1
        return
    try:
        taker.take(object_of(_unframed(text)), record, sink)
    except Skip as skip:
        sink.ignored[str(skip)] += 1
    except Bad as bad:
        reason = f"cut off: the file ends inside it ({bad})" if cut else str(bad)
        sink.problems.append(Problem(record, reason, excerpt(text), place))


def _read_document(file: InputFile, taker: Taker) -> Iterator[Batch]:
    try:
        text = _as_text(read_all(file))
    except ValueError as error:
        reason = f"{error}: give it as JSON Lines, such as jq -c makes"
        yield Batch(records=1, problems=(Problem(1, reason),))
        return
    sink, record, end = Sink(), 0, 0
    for value, after in _values(text):
        record, end = record + 1, after
        if not isinstance(value, dict):
            sink.problems.append(Problem(record, "a JSON value, but no object"))
            continue
        try:
            taker.take(value, record, sink)
        except Skip as skip:
            sink.ignored[str(skip)] += 1
        except Bad as bad:
            sink.problems.append(Problem(record, str(bad)))
    if text[end:].strip(" \t\r\n,[]"):
        record += 1
        reason = "cut off or not valid JSON from here on; what came before was read"
        sink.problems.append(Problem(record, reason, excerpt(text[end : end + 1000])))
    yield sink.batch(record)
    yield Batch(taker.rest())


def _values(text: str) -> Iterator[tuple[Any, int]]:
    """Bodies that follow one another, whole or as entries of one array."""
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] == "[":
        start += 1
    for _, end, value in each_value(text, start, " \t\r\n,"):
        yield value, end


def _unframed(line: bytes) -> bytes:
    return line[5:].strip() if line.startswith(b"data:") else line


def _as_text(data: bytes) -> str:
    return data.removeprefix(BOM).decode("utf-8", "replace")
