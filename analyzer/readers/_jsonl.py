"""Reads JSON Lines object by object; a line that is no JSON object is a problem, not an end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from analyzer.contract.types import Batch, Problem, Resume
from analyzer.readers._file import Head, InputFile
from analyzer.readers._reader import Claim, Options
from analyzer.readers._rows import excerpt, tables_of

_decode = msgspec.json.Decoder().decode
_BOM = b"\xef\xbb\xbf"


@dataclass
class Sink:
    """Rows of one block, by table, filled by a reader's ``take`` function."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    ignored: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    assumed: set[str] = field(default_factory=set)

    def add(self, table: str, record: int, **columns: Any) -> None:  # noqa: ANN401
        """One row; columns that are None may be given, they are stored as NULL."""
        self.rows.setdefault(table, []).append({"record": record, **columns})


class Skip(Exception):
    """Raised by ``take``: the record is known to carry nothing; reasons are a short list."""


class Bad(ValueError):
    """Raised by ``take``: this record cannot be read; says why and what to do."""


def objects(head: Head, limit: int = 50) -> list[dict[str, Any]]:
    """The first JSON objects of a file, for a probe; lines that are none are passed over."""
    found = []
    for line in head.lines[:limit]:
        try:
            value = _decode(line.removeprefix(_BOM))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


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
    file: InputFile, options: Options, take: Callable[[dict[str, Any], int, Sink], None]
) -> Iterator[Batch]:
    """Calls ``take(object, record, sink)`` for each line and yields a batch a block.

    ``take`` adds rows to the sink, or raises :class:`Skip` or :class:`Bad`.
    """
    resume = options.resume
    offset, before = (resume.offset, resume.records) if resume else (0, 0)
    for block in file.lines(offset=offset, records_before=before):
        sink = Sink()
        used = 0
        place = block.offset
        tail: int | None = None
        for record, line in enumerate(block.lines, block.first_record):
            text = line.strip()
            try:
                if not text:
                    sink.ignored["blank line"] += 1
                    continue
                take(object_of(text), record, sink)
                used += 1
                tail = place if block.unterminated else None
            except Skip as skip:
                sink.ignored[str(skip)] += 1
            except Bad as bad:
                cut = block.unterminated
                tail = place if cut else None
                reason = f"cut off: the file ends inside it ({bad})" if cut else str(bad)
                sink.problems.append(Problem(record, reason, excerpt(text), place))
            finally:
                place += len(line) + 1
        records = len(block.lines)
        # A last line without its newline is read again once the file has grown.
        done = block.first_record - 1 + records - (tail is not None)
        end = tail if tail is not None else place - block.unterminated
        provisional = (block.first_record + records - 1,) if tail is not None else ()
        yield Batch(
            tables_of(**sink.rows),
            records,
            used,
            dict(sink.ignored),
            tuple(sink.problems),
            tuple(sorted(sink.assumed)),
            Resume(end, done, provisional),
        )


def usd(value: str | float | None) -> Decimal | None:
    """Money as DECIMAL(18,9); raises :class:`Bad` where it is no amount."""
    if value is None:
        return None
    try:
        amount = Decimal(str(value))
        exact = amount.quantize(Decimal("1e-9"))
    except InvalidOperation:
        raise Bad(f"{value!r} is no amount of money") from None
    if not amount.is_finite() or abs(exact) >= Decimal("1e9"):
        raise Bad(f"{value!r} is no amount of money")
    return exact


def object_of(text: bytes) -> dict[str, Any]:
    """The JSON object of one line, or :class:`Bad`."""
    try:
        value = _decode(text.removeprefix(_BOM))
    except msgspec.DecodeError as error:
        raise Bad(f"not valid JSON: {error}") from None
    except UnicodeDecodeError:
        raise Bad("not valid UTF-8") from None
    except RecursionError:
        raise Bad("JSON nested too deeply") from None
    if not isinstance(value, dict):
        raise Bad("a JSON value, but no object")
    return value
