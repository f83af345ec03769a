"""Reads CSV and JSON Lines block by block into columns of cells, with the number of each row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa
from pyarrow import csv as arrow_csv

from analyzer.contract.types import Problem, Resume
from analyzer.readers._file import InputFile, Lines
from analyzer.readers._jsonl import Bad, object_of
from analyzer.readers._mapping import Plan
from analyzer.readers._mapping_cells import NESTED
from analyzer.readers._mapping_head import Shape, cells_of
from analyzer.readers._rows import clean, excerpt

BLOCK_BYTES = 2 * 1024 * 1024
_MOST_JOINED = 1_000
_QUOTE = b'"'
Line = tuple[int, int, bytes]
"""Number, offset and bytes of one line."""


@dataclass
class Chunk:
    """Rows of one block: ``record`` and one column of cells for each name of theirs."""

    frame: pl.DataFrame
    records: int
    problems: list[Problem] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    resume: Resume | None = None
    place: Callable[[int], tuple[str, int | None]] = lambda _: ("", None)
    """Excerpt and offset of a row."""


def text_chunks(
    file: InputFile, shape: Shape, plan: Plan, resume: Resume | None
) -> Iterator[Chunk]:
    """Every line is in one chunk, as a row, an ignored line or a problem."""
    offset, before = (resume.offset, resume.records) if resume else (0, 0)
    waiting: list[Line] = []  # lines of a quoted cell that is still open
    headed = shape.kind == "jsonl" or plan.file.header is not None or resume is not None
    for block in file.lines(BLOCK_BYTES, offset, before):
        lines = [*waiting, *zip(_numbers(block), block.starts, block.lines, strict=True)]
        chunk = Chunk(pl.DataFrame(), len(lines))
        lines = [line for line in lines if line[2].strip()]
        chunk.ignored["blank line"] = chunk.records - len(lines)
        end: Resume | None = Resume(block.end, block.last_record)
        if not headed and lines:
            headed = True
            lines.pop(0)
            chunk.ignored["header line"] += 1
            if block.unterminated and not lines:
                end = None  # its last name may go on
        waiting = []
        if shape.kind == "jsonl":
            chunk.frame = _objects(lines, plan, chunk)
        else:
            waiting = _table(lines, shape, plan, chunk, last=block.unterminated)
        chunk.records -= len(waiting)
        chunk.place = _finder(lines)
        if block.unterminated:
            _tell_cut(chunk, block.last_record)
        chunk.resume = _until(end, block, lines, waiting)
        yield chunk
    if waiting:
        chunk = Chunk(pl.DataFrame(), len(waiting))
        _table(waiting, shape, plan, chunk, last=True)
        chunk.place = _finder(waiting)
        yield chunk


def _tell_cut(chunk: Chunk, record: int) -> None:
    """A last line that is no row and has no newline is most likely one that was cut off."""
    if chunk.problems and chunk.problems[-1].record == record:
        last = chunk.problems.pop()
        reason = f"cut off: the file ends inside it ({last.reason})"
        chunk.problems.append(Problem(record, reason, last.excerpt, last.byte_offset))


def _numbers(block: Lines) -> range:
    return range(block.first_record, block.last_record + 1)


def _until(
    end: Resume | None, block: Lines, lines: Sequence[Line], waiting: Sequence[Line]
) -> Resume | None:
    """Where reading goes on: a last line without its newline, or an open quote, is read again."""
    if waiting:
        return None
    if end is None or not block.unterminated or not lines or lines[-1][0] != block.last_record:
        return end
    record, offset, _ = lines[-1]
    return Resume(offset, record - 1, (record,))


def _finder(lines: Sequence[Line]) -> Callable[[int], tuple[str, int | None]]:
    """Excerpt and offset of a row; the index is made when the first is asked for."""
    index: dict[int, Line] = {}

    def find(record: int) -> tuple[str, int | None]:
        if not index:
            index.update((line[0], line) for line in lines)
        _, offset, text = index[record]
        return excerpt(text), offset

    return find


# -- JSON Lines ---------------------------------------------------------------------------------


def _objects(lines: Sequence[Line], plan: Plan, chunk: Chunk) -> pl.DataFrame:
    records: list[int] = []
    values: list[dict[str, Any]] = []
    for record, offset, line in lines:
        try:
            value = _object(line.strip())
        except Bad as bad:
            chunk.problems.append(Problem(record, str(bad), excerpt(line), offset))
            continue
        records.append(record)
        values.append(value)
    lists = {one.theirs for one in plan.targets if one.kind == "list"}
    columns = {
        name: cells([at(value, name) for value in values], whole=name in lists)
        for name in plan.theirs
    }
    return pl.DataFrame({"record": pl.Series(records, dtype=pl.Int64)} | columns)


def _object(line: bytes) -> dict[str, Any]:
    """An object; unlike msgspec the slow way takes NaN, Infinity and half a surrogate pair."""
    try:
        return object_of(line)
    except Bad as bad:
        if not any(mark in line for mark in (b"NaN", b"Infinity", b"\\ud", b"\\uD")):
            raise
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise bad from None
        if not isinstance(value, dict):
            raise bad from None
        return value


def at(value: dict[str, Any], name: str) -> Any:  # noqa: ANN401 - foreign JSON
    """The value of a key, or of keys with dots between; None where there is none."""
    if name in value:
        return value[name]
    inner: Any = value
    for part in name.split("."):
        if not isinstance(inner, dict):
            return None
        inner = inner.get(part)
    return inner


def cells(values: list[Any], *, whole: bool = False) -> pl.Series:
    """JSON values as a column of integers, booleans or text (or ``whole``, as they are)."""
    if whole:
        return pl.Series(values, dtype=pl.Object)
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {int} and all(value is None or abs(value) < 2**62 for value in values):
        return pl.Series(values, dtype=pl.Int64)
    if kinds == {bool}:
        return pl.Series(values, dtype=pl.Boolean)
    return pl.Series([_cell(value) for value in values], dtype=pl.String)


def _cell(value: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    if value is None:
        return None
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= 2**64:
        return "1e30"  # whatever it is, it is beyond everything; its digits may be thousands
    return NESTED if isinstance(value, (list, dict)) else str(value)


# -- CSV ----------------------------------------------------------------------------------------


def _table(lines: list[Line], shape: Shape, plan: Plan, chunk: Chunk, *, last: bool) -> list[Line]:
    """Fill the chunk; gives back the lines of a quoted cell that the block leaves open."""
    frame = _at_once(lines, shape, plan)
    waiting: list[Line] = []
    if frame is None:
        rows, waiting = _row_by_row(lines, shape, chunk, last=last)
        places = [shape.names.index(name) if name in shape.names else -1 for name in plan.theirs]
        columns = {
            name: pl.Series([row[i] if i >= 0 else None for _, row in rows], dtype=pl.String)
            for name, i in zip(plan.theirs, places, strict=True)
        }
        frame = pl.DataFrame(
            {"record": pl.Series([record for record, _ in rows], dtype=pl.Int64)} | columns
        )
    chunk.frame = frame
    return waiting


def _at_once(lines: Sequence[Line], shape: Shape, plan: Plan) -> pl.DataFrame | None:
    """All rows by one parser, each with its number before it; None where one is not plain."""
    if not lines:
        return None
    mark = shape.delimiter.encode()
    text = b"\n".join([b"%d%s%s" % (record, mark, line.rstrip(b"\r")) for record, _, line in lines])
    names = ["record", *(f"c{i}" for i in range(len(shape.names)))]
    wanted = {f"c{shape.names.index(n)}": n for n in plan.theirs if n in shape.names}
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(text),
            read_options=arrow_csv.ReadOptions(
                column_names=names, use_threads=False, block_size=len(text) + 1
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=shape.delimiter),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=["record", *wanted], strings_can_be_null=False,
                column_types={"record": pa.int64(), **dict.fromkeys(wanted, pa.string())},
            ),
        )  # fmt: skip
    except (pa.ArrowException, OverflowError):
        return None
    frame = pl.DataFrame(pl.from_arrow(table)).rename(wanted)
    if frame["record"].to_list() != [record for record, _, _ in lines]:
        return None
    absent = [pl.lit(None, pl.String).alias(n) for n in plan.theirs if n not in frame.columns]
    return frame.with_columns(absent)


def _row_by_row(
    lines: list[Line], shape: Shape, chunk: Chunk, *, last: bool
) -> tuple[list[tuple[int, tuple[str, ...]]], list[Line]]:
    """Rows with their numbers, and the lines that a quote leaves open."""
    rows: list[tuple[int, tuple[str, ...]]] = []
    i = 0
    while i < len(lines):
        record, offset, text = lines[i]
        used = 1
        if text.count(_QUOTE) % 2:
            used = _closed_after(lines, i)
            if not used and not last and _may_wait(lines[i:]):
                return rows, lines[i:]
            if not used:
                chunk.problems.append(_open_quote(record, offset, text))
                i += 1
                continue
            text = b"\n".join(line for _, _, line in lines[i : i + used])
        try:
            rows.append((record, _row(text, shape)))
            i += used
        except Bad as bad:  # only the first line of several: a stray quote must not cost the others
            chunk.problems.append(Problem(record, str(bad), excerpt(lines[i][2]), offset))
            i += 1
    return rows, []


def _may_wait(lines: Sequence[Line]) -> bool:
    return len(lines) < _MOST_JOINED and sum(len(line) for _, _, line in lines) < BLOCK_BYTES


def _closed_after(lines: Sequence[Line], first: int) -> int:
    """Lines until a quoted cell is closed; 0 where it is not in reach."""
    for used, (_, _, text) in enumerate(lines[first + 1 : first + _MOST_JOINED], 2):
        if text.count(_QUOTE) % 2:
            return used
    return 0


def _row(text: bytes, shape: Shape) -> tuple[str, ...]:
    try:
        text.decode()
    except UnicodeDecodeError:
        raise Bad("not valid UTF-8") from None
    cells = cells_of(text, shape.delimiter, strict=b"\n" in text)
    if not cells:
        raise Bad("not valid CSV, or a cell is longer than 128 KiB")
    if len(cells) != len(shape.names):
        raise Bad(f"{len(cells)} cells where the header has {len(shape.names)}")
    return cells


def _open_quote(record: int, offset: int, line: bytes) -> Problem:
    return Problem(record, "a quote is opened and never closed", excerpt(line), offset)
