"""Rows of an export, however it was saved.

One object a line; a list; a page of an API (``{"data": [...]}``), several of them one a line; one
object alone; or CSV, whose cells may hold JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from analyzer.contract.types import Batch, Problem
from analyzer.readers._csv_rows import Cells, cells_in, csv_rows, mark_of
from analyzer.readers._file import BOM, Head, InputFile
from analyzer.readers._json_stream import each_item, is_entry
from analyzer.readers._jsonl import Bad, Sink, Skip, object_of, objects, read_jsonl
from analyzer.readers._reader import Options
from analyzer.readers._rows import excerpt

PAGES = ("data", "observations")
"""Keys under which an API or a download puts its rows."""
LISTS = frozenset({(), *((name,) for name in PAGES)})

_DOWNLOAD = "trace"
_BATCH_RECORDS = 5_000
_SHOWN = 20
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"|[{}\[\]:,]', re.DOTALL)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
_MOST_NUMBER = 40
_MOST_HEADER = 32_000
_HEADER = "header"
Take = Callable[[dict[str, Any], int, Sink], None]


@dataclass(frozen=True)
class Begin:
    """What the first 64 KiB show: whole rows, the keys of those that they cut, and how it lies."""

    kind: str = ""
    """lines, pages, document, csv or empty."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    cut: list[set[str]] = field(default_factory=list)
    """Keys of each object that the head leaves open, from the outermost on."""

    def shapes(self) -> Iterator[set[str]]:
        """Keys of each row that is whole, then of those that are cut."""
        yield from (set(row) for row in self.rows)
        yield from self.cut


def begin_of(head: Head, needles: tuple[bytes, ...] = ()) -> Begin:
    """The first rows of an export; nothing where one of the ``needles`` is not in the head."""
    if not all(needle in head.data for needle in needles):
        return Begin()
    data = head.data.removeprefix(BOM).lstrip()
    if not data:
        return Begin()
    if data[:1] not in (b"{", b"["):
        return _table(head)
    if data[:1] == b"{" and head.lines and _object(head.lines[0]) is not None:
        some = objects(head, _SHOWN)
        found = [row for one in some for row in _rows_in(one)]
        paged = any(_page(one) is not None for one in some)
        return Begin("pages" if paged else "lines", found[:_SHOWN])
    rows: list[dict[str, Any]] = []
    root: dict[str, Any] = {}
    for item in each_item(_Bytes(data), LISTS):  # type: ignore[arg-type]
        if is_entry(item.path, LISTS):
            rows += [item.value] if isinstance(item.value, dict) else []
        elif not item.broken:
            _put(root, item.path, item.value)
        if len(rows) >= _SHOWN:
            break
    cut = [] if head.whole else _open_keys(data)
    # An object that is longer than the head and no page: its line, or the first of many.
    alone = data[:1] == b"{" and len(head.lines) == 1 and not head.whole and bool(cut)
    kind = "lines" if alone and not cut[0] & {*PAGES, _DOWNLOAD} else "document"
    return Begin(kind, [*rows, *_rows_in(root)], cut)


class _Bytes:
    """The head in the place of a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def blocks(self, _size: int) -> Iterator[bytes]:
        yield self._data


def _put(root: dict[str, Any], path: tuple[str | int, ...], value: Any) -> None:  # noqa: ANN401
    """A value on the way to the rows: of the document itself, or of its one row."""
    if len(path) == 1:
        root[str(path[0])] = value
    elif len(path) == 2:
        inner = root.setdefault(str(path[0]), {})
        if isinstance(inner, dict):
            inner[str(path[1])] = value


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        return object_of(line)
    except Bad:
        return None


def _page(value: dict[str, Any]) -> list[Any] | None:
    """The rows of a page; None where the object is a row itself."""
    for name in PAGES:
        if isinstance(value.get(name), list):
            rows: list[Any] = value[name]
            return rows
    return None


def _rows_in(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a page, the one row in ``{"data": {...}}``, or the object itself."""
    page = _page(value)
    if page is not None:
        return [row for row in page if isinstance(row, dict)]
    inner = value.get("data")
    if isinstance(inner, dict) and len(value) <= 2:
        return [inner]
    return [value] if value else []


def _open_keys(data: bytes) -> list[set[str]]:
    """Keys of the objects that are open where the data ends."""
    stack: list[set[str]] = []
    last = ""
    for match in _TOKEN.finditer(data):
        mark = match[0][:1]
        if mark in b"{[":
            stack.append(set())
        elif mark in b"}]" and stack:
            stack.pop()
        elif mark == b'"':
            last = match[1].decode("utf-8", "replace")
        elif mark == b":" and stack:
            stack[-1].add(last)
    return [keys for keys in stack if keys]


def _table(head: Head) -> Begin:
    if not head.lines or len(head.lines[0]) > _MOST_HEADER:
        return Begin()
    names = _names(head.lines[0])
    if len(names) < 3:
        return Begin()
    return Begin("csv", [dict.fromkeys(names)])


def _names(line: bytes) -> tuple[str, ...]:
    text = line.removeprefix(BOM).decode("utf-8", "replace").strip()
    cells = cells_in(text, mark_of(text)) or ()
    return tuple(cell.strip() for cell in cells)


def read_rows(
    file: InputFile,
    options: Options,
    take: Take,
    kind: str | None = None,
    *,
    exact: bool = False,
    fewest: int | None = None,
) -> Iterator[Batch]:
    """Calls ``take(row, record, sink)`` for each row; a batch every few thousand.

    Only one object a line can be read on once the file has grown, and not with ``exact``, which
    keeps all digits of decimals. A row of a table with at least ``fewest`` cells may lack the last.
    """
    kind = kind or begin_of(file.head).kind
    if kind == "lines" and not exact:
        yield from read_jsonl(
            file, options, lambda value, n, sink: _take_line(value, n, sink, take)
        )
        return
    sink, done, record = Sink(zone=options.zone), 0, 0
    for record, one in enumerate(each_row(file, kind, exact=exact, fewest=fewest), 1):
        if isinstance(one, Problem):
            sink.problems.append(Problem(record, one.reason, one.excerpt, one.byte_offset))
        elif one.value is None:
            sink.ignored[_HEADER] += 1
        else:
            take_row(one, record, sink, take)
        if record - done >= _BATCH_RECORDS:
            yield sink.batch(record - done)
            sink, done = Sink(zone=options.zone), record
    yield sink.batch(record - done)


def _take_line(value: dict[str, Any], record: int, sink: Sink, take: Take) -> None:
    inner = value.get("data")
    take(inner if isinstance(inner, dict) and len(value) <= 2 else value, record, sink)


@dataclass(frozen=True, slots=True)
class Row:
    """One row and where it lies; the header of a table has no value."""

    value: dict[str, Any] | None
    offset: int | None = None


def take_row(row: Row, record: int, sink: Sink, take: Take) -> None:
    """One row by its reader, with the place of what is wrong with it."""
    told = len(sink.problems)
    try:
        take(row.value or {}, record, sink)
    except Skip as skip:
        sink.ignored[str(skip)] += 1
    except Bad as bad:
        sink.problems.append(Problem(record, str(bad)))
    for at in range(told, len(sink.problems)):
        reason = sink.problems[at].reason
        sink.problems[at] = Problem(record, reason, excerpt(_text(row.value)), row.offset)


def _text(value: Any) -> str:  # noqa: ANN401 - foreign JSON
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, OverflowError):
        return ""


def each_row(
    file: InputFile, kind: str, *, exact: bool = False, fewest: int | None = None
) -> Iterator[Row | Problem]:
    """Every row in the order of the file; a problem stands for a record of its own."""
    if kind == "csv":
        return _csv(file, fewest)
    if kind in ("lines", "pages"):
        return _lines(file, exact=exact)
    return _document(file, exact=exact)


def _lines(file: InputFile, *, exact: bool) -> Iterator[Row | Problem]:
    for block in file.lines():
        for start, line in zip(block.starts, block.lines, strict=True):
            if not line.strip():
                continue
            try:
                value = object_of(line.strip(), exact=exact)
            except Bad as bad:
                yield Problem(0, str(bad), excerpt(line.strip()), start)
                continue
            page = _page(value)
            for row in _rows_in(value) if page is None else page:
                if isinstance(row, dict):
                    yield Row(row, start)
                else:
                    yield Problem(0, "a JSON value, but no object", "", start)


def _document(file: InputFile, *, exact: bool) -> Iterator[Row | Problem]:
    root: dict[str, Any] = {}
    rows, broken = 0, None
    for item in each_item(file, LISTS, exact=exact):
        if item.broken:
            broken = Problem(0, item.broken, excerpt(item.value), item.offset)
        elif not is_entry(item.path, LISTS):
            if not rows:
                _put(root, item.path, item.value)
        elif isinstance(item.value, dict):
            rows += 1
            yield Row(item.value, item.offset)
        else:
            rows += 1
            yield Problem(0, "a JSON value, but no object", "", item.offset)
    if not rows and broken is None and root and not root.keys() & set(PAGES) - {"data"}:
        yield from (Row(row, 0) for row in _rows_in(root))
    if broken is not None:
        yield broken


def _csv(file: InputFile, fewest: int | None) -> Iterator[Row | Problem]:
    first = file.head.lines[0] if file.head.lines else b""
    names = _names(first)
    mark = mark_of(first.decode("utf-8", "replace"))
    for number, row in enumerate(csv_rows(file, mark, len(names))):
        short = _short(row, mark, fewest) if row.broken and number else ()
        if short and len(short) < len(names):
            yield Row({n: c for n, c in zip(names, short, strict=False) if c}, row.offset)
        elif row.broken:
            yield Problem(0, row.broken, excerpt(row.text), row.offset)
        elif number == 0:
            yield Row(None, row.offset)
        else:
            yield Row({n: c for n, c in zip(names, row.cells, strict=True) if c}, row.offset)


def _short(row: Cells, mark: str, fewest: int | None) -> tuple[str, ...]:
    """The cells of a row that lacks some at its end, where enough are left."""
    if fewest is None:
        return ()
    cells = cells_in(row.text.decode("utf-8", "replace"), mark) or ()
    return cells if len(cells) >= fewest else ()


# -- values of cells ------------------------------------------------------------------------------


def nested(value: Any) -> Any:  # noqa: ANN401 - foreign JSON
    """A value that may be JSON in a text: the object or list it is; None where it is neither."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
    return value if isinstance(value, (dict, list)) else None


def mapping(value: Any) -> dict[str, Any]:  # noqa: ANN401
    """The same where only an object will do; empty where it is none."""
    found = nested(value)
    return found if isinstance(found, dict) else {}


def number(value: Any) -> int | float | None:  # noqa: ANN401
    """A number, or the text of one as cells have it."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str) and len(value) <= _MOST_NUMBER and _NUMBER.fullmatch(value.strip()):
        text = value.strip()
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    return None


def count(value: Any) -> int | None:  # noqa: ANN401
    """A whole number that is none below 0; cells of tables may write it as 12.0."""
    found = number(value)
    if isinstance(found, float) and found.is_integer() and abs(found) < 2**63:
        found = int(found)
    return found if isinstance(found, int) and found >= 0 else None


def truth(value: Any) -> bool | None:  # noqa: ANN401
    """True or false, as JSON, Python or a table writes it."""
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False}
    return words.get(value.strip().lower()) if isinstance(value, str) else None
