"""Reads JSON Lines object by object; a line that is no JSON object is a problem, not an end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from analyzer.contract.types import Batch, Problem, Resume
from analyzer.readers._fast_ahead import ahead
from analyzer.readers._fast_lines import Fast, in_order
from analyzer.readers._fast_shapes import Shapes, Strange
from analyzer.readers._file import BOM, Head, InputFile, Lines
from analyzer.readers._hints import Unused, no_time
from analyzer.readers._reader import Claim, Options
from analyzer.readers._rows import believed, columns_table, excerpt, tables_of
from analyzer.readers._times import time_to_ns, zone_note

_decode = msgspec.json.Decoder().decode
_decode_exact = msgspec.json.Decoder(float_hook=Decimal).decode
_T = TypeVar("_T")
_NO_MONEY = "an amount of money that is none"


@dataclass
class Sink:
    """Rows of one block, by table, filled by a reader's ``take`` function."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    ignored: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    assumed: set[str] = field(default_factory=set)
    zone: str | None = None
    keys: set[str] = field(default_factory=set)
    """Keys of all records, where somebody asks for them."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """Columns -> the fields of the record that give them, where they are called otherwise."""
    columns: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    tables: dict[str, list[pa.Table]] = field(default_factory=dict)

    def add_columns(self, table: str, record: int, **columns: list[Any]) -> None:
        """Many rows of one record, known to be sound; each call names the same columns."""
        held = self.columns.setdefault(table, {"record": []})
        held["record"] += [record] * len(next(iter(columns.values())))
        for name, values in columns.items():
            held.setdefault(name, []).extend(values)

    def add(self, table: str, record: int, **columns: Any) -> None:  # noqa: ANN401
        """One row; None is stored as NULL, and so is what cannot be, which is a problem."""
        if strange := believed(columns, self.spelled):
            self.problems.append(Problem(record, strange))
        self.rows.setdefault(table, []).append({"record": record, **columns})

    def time(self, record: int, name: str, value: object) -> int | None:
        """A time the record may leave out; a problem where it is given and is none."""
        ns = self._moment(value)
        if ns is None and value is not None:
            self.problems.append(Problem(record, f"{name!r} {no_time(value)}"))
        return ns

    def needed_time(self, name: str, value: object) -> int:
        """A time without which the record says nothing; else :class:`Bad`."""
        ns = self._moment(value)
        if ns is None:
            raise Bad(f"{name!r} {no_time(value)}")
        return ns

    def _moment(self, value: object) -> int | None:
        if note := zone_note(value, self.zone):
            self.assumed.add(note)
        return time_to_ns(value, self.zone)

    def batch(self, records: int, resume: Resume | None = None) -> Batch:
        """What the store gets; a record that is neither ignored nor a problem was used."""
        used = records - self.ignored.total() - len({problem.record for problem in self.problems})
        tables = tables_of(**self.rows) | {
            name: columns_table(name, columns) for name, columns in self.columns.items()
        }
        for name, some in self.tables.items():
            tables[name] = in_order(name, [*some, tables[name]] if name in tables else some)
        return Batch(
            tables, records, used, dict(self.ignored), tuple(self.problems),
            tuple(sorted(self.assumed)), resume,
        )  # fmt: skip


class Skip(Exception):
    """Raised by ``take``: the record is known to carry nothing; reasons are a short list."""


class Bad(ValueError):
    """Raised by ``take``: this record cannot be read; says why and what to do."""


def objects(head: Head, limit: int = 50) -> list[dict[str, Any]]:
    """The first JSON objects of a file, for a probe; lines that are none are passed over."""
    return list(each_object(head, limit))


def each_object(head: Head, limit: int = 50) -> Iterator[dict[str, Any]]:
    """As :func:`objects`, one by one, for a probe that often needs no more than the first.

    Dozens of readers look at a file: a line is made an object once for all of them.
    """
    known: list[Any] = vars(head).setdefault("objects", [])
    for index, line in enumerate(head.lines[:limit]):
        if index == len(known):
            try:
                known.append(_decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                known.append(None)
        if isinstance(value := known[index], dict):
            yield value


def keys_claim(head: Head, needed: set[str], *, absent: frozenset[str] = frozenset()) -> Claim:
    """A claim on JSON Lines whose first objects carry ``needed`` keys and none of ``absent``."""
    some = objects(head)
    if not some:
        return Claim(0, "its first lines are not JSON objects")
    best = max(some, key=lambda one: len(needed & one.keys()))
    missing = needed - best.keys()
    if missing:
        return Claim(
            0.9 * len(needed & best.keys()) / len(needed),
            f"its JSON lines lack {', '.join(sorted(missing))}",
        )
    strange = absent & best.keys()
    if strange:
        return Claim(0.5, f"its JSON lines also have {', '.join(sorted(strange))}")
    return Claim(1, "")


def read_jsonl(
    file: InputFile,
    options: Options,
    take: Callable[[dict[str, Any], int, Sink], None],
    fast: Fast | None = None,
) -> Iterator[Batch]:
    """Calls ``take(object, record, sink)`` for each line and yields a batch a block.

    ``take`` adds rows to the sink, or raises :class:`Skip` or :class:`Bad`. With ``fast`` it only
    sees the lines that are unlike others; its numbers are then exact decimals.
    """
    resume = options.resume
    offset, before = (resume.offset, resume.records) if resume else (0, 0)
    blocks = file.lines(offset=offset, records_before=before)
    if fast is None:
        done: Iterator[_Read] = (_read_block(block, take, zone=options.zone) for block in blocks)
    else:
        shapes = fast.shapes(partial(_rows_of_line, take))
        alike = partial(_read_alike, take=take, fast=fast, shapes=shapes, zone=options.zone)
        done = ahead(alike, blocks)
    unused = Unused(fast.known) if fast and fast.known else None
    for block, sink, tail in done:
        last = block.last_record
        # A last line without its newline is read again once the file has grown.
        resume = Resume(block.end, last) if tail is None else Resume(tail, last - 1, (last,))
        if unused:
            unused.take(sink.keys - unused.known)
        yield sink.batch(block.count, resume)
    if unused and (notes := unused.notes()):
        yield Batch(assumed=notes, resume=resume)


_Read = tuple[Lines, Sink, int | None]
"""A block, what it gave, and where its last line starts if that must be read again."""


def _read_alike(
    block: Lines, take: Callable[[dict[str, Any], int, Sink], None], fast: Fast, shapes: Shapes,
    zone: str | None,
) -> _Read:  # fmt: skip
    keys: set[str] = set()
    tables, strange = fast.read(block, shapes, keys)
    read: _Read = (block, Sink(), None)
    if strange:
        read = _read_block(block, take, strange, exact=True, zone=zone)
    # Put in order here, where other threads store and read meanwhile.
    sink = read[1]
    sink.keys |= keys
    for name, rows in tables_of(**sink.rows).items():
        tables.setdefault(name, []).append(rows)
    sink.rows, sink.tables = {}, {name: [in_order(name, some)] for name, some in tables.items()}
    return read


def _rows_of_line(
    take: Callable[[dict[str, Any], int, Sink], None], line: str
) -> dict[str, list[dict[str, Any]]] | None:
    _, sink, _ = _read_block(Lines(line.encode(), 1, 0, unterminated=False), take, exact=True)
    return None if sink.problems or sink.ignored or sink.assumed or sink.columns else sink.rows


def _read_block(
    block: Lines,
    take: Callable[[dict[str, Any], int, Sink], None],
    some: Sequence[Strange] | None = None,
    *,
    exact: bool = False,
    zone: str | None = None,
) -> _Read:
    sink = Sink(zone=zone)
    tail: int | None = None
    for index, line in enumerate(block.lines) if some is None else some:
        text, record = line.strip(), block.first_record + index
        told = len(sink.problems)
        try:
            if not text:
                sink.ignored["blank line"] += 1
                continue
            value = object_of(text, exact=exact)
            if exact:
                sink.keys.update(value)
            take(value, record, sink)
            tail = block.offset if block.unterminated else None
        except Skip as skip:
            sink.ignored[str(skip)] += 1
        except Bad as bad:
            cut = block.unterminated
            tail = block.offset if cut else None
            reason = f"cut off: the file ends inside it ({bad})" if cut else str(bad)
            sink.problems.append(Problem(record, reason, excerpt(text), block.starts[index]))
        for at in range(told, len(sink.problems)):
            one = sink.problems[at]
            if not one.excerpt:  # only here the line itself is known
                sink.problems[at] = replace(
                    one, excerpt=excerpt(text), byte_offset=block.starts[index]
                )
    return block, sink, tail


def converted(value: Any, kind: type[_T]) -> _T:  # noqa: ANN401 - foreign JSON
    """The value as one of our native types, or :class:`Bad`, which does not quote it."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        reason = re.sub(r"(['\"]).*\1", "…", str(error), flags=re.DOTALL)
        raise Bad(f"not a {kind.__name__}: {reason}") from None


def floats(value: dict[str, Any]) -> dict[str, Any]:
    """The object with its decimals as floats, for types that know none."""
    return {name: float(one) if isinstance(one, Decimal) else one for name, one in value.items()}


def usd(value: str | float | None) -> Decimal | None:
    """Money as DECIMAL(18,9); raises :class:`Bad` where it is no amount."""
    if value is None:
        return None
    try:
        amount = Decimal(str(value))
        exact = amount.quantize(Decimal("1e-9"))
    except InvalidOperation:
        raise Bad(_NO_MONEY) from None
    if not amount.is_finite() or abs(exact) >= Decimal("1e9"):
        raise Bad(_NO_MONEY)
    return exact


def object_of(text: bytes, *, exact: bool = False) -> dict[str, Any]:
    """The JSON object of one line, or :class:`Bad`; ``exact`` keeps all digits of its numbers."""
    try:
        value = (_decode_exact if exact else _decode)(text.removeprefix(BOM))
    except msgspec.DecodeError as error:
        raise Bad(f"not valid JSON: {error}") from None
    except UnicodeDecodeError:
        raise Bad("not valid UTF-8") from None
    except RecursionError:
        raise Bad("JSON nested too deeply") from None
    except ArithmeticError:
        raise Bad("not valid JSON: a number beyond all bounds") from None
    if not isinstance(value, dict):
        raise Bad("a JSON value, but no object")
    return value
