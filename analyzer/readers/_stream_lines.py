"""Lines of native stream events to columns: alike lines at once, all others one by one."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec
import polars as pl

from analyzer.contract import native
from analyzer.contract.tables import CHUNK_KINDS
from analyzer.contract.types import Problem
from analyzer.readers._fast_kinds import MOMENT, NAME, SMALL, WORD
from analyzer.readers._fast_lines import outer
from analyzer.readers._fast_shapes import INDEX, LINE, Shape, Shapes, Strange
from analyzer.readers._file import Lines
from analyzer.readers._hints import no_time
from analyzer.readers._rows import COUNTS, excerpt, int_or_none, text_or_none
from analyzer.readers._times import time_to_ns, zone_note

EVENTS = ("send", "headers", "chunk", "emit", "done", "error", "tick")
MANY = ("chunk", "emit", "tick")
"""Events that have no more fields than the columns."""
COLUMNS = {
    "record": pl.Int64,
    "ts_ns": pl.Int64,
    "request_id": pl.String,
    "event": pl.String,
    "kind": pl.String,
    "chars": pl.Int64,
    "tokens": pl.Int64,
    "attempt": pl.Int64,
    "index": pl.Int64,
    "client": pl.String,
}
KNOWN = frozenset(
    name
    for event in (
        native.Send, native.Headers, native.Chunk, native.Emit, native.Done, native.Error,
        native.Tick,
    )
    for name in ("event", *event.__struct_fields__)
)  # fmt: skip
KNOWN_OF_MANY = frozenset(COLUMNS) | {"ts", *native.Send.__struct_fields__}
"""What is told of the request is harmless on a chunk; a usage there would be missed."""
# One chunk is far shorter than what is counted elsewhere, so that a block's sum fits int64.
_BOUNDS: dict[str, Container[int]] = {
    "chars": range(2**32), "tokens": range(2**32), "attempt": COUNTS, "index": COUNTS,
}  # fmt: skip
_FIELDS = {
    "ts": MOMENT, "request_id": NAME, "event": WORD, "kind": WORD, "client": NAME,
} | dict.fromkeys(_BOUNDS, SMALL)  # fmt: skip

_decode = msgspec.json.Decoder(float_hook=Decimal).decode


@dataclass
class Parsed:
    """Events of one block in line order, and the lines that are none.

    ``objects``: the whole object of each event that may have rare fields (send, done, ...).
    """

    events: pl.DataFrame
    objects: dict[int, dict[str, Any]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    blank: int = 0
    assumed: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    """Keys that are no field of their event."""

    def problem(self, record: int, reason: str, block: Lines) -> None:
        """A line that cannot be read."""
        index = record - block.first_record
        self.problems.append(
            Problem(record, reason, excerpt(block.lines[index]), block.starts[index])
        )


def shapes() -> Shapes:
    """The shapes of one log's events, none learned yet."""
    return Shapes(_FIELDS, _trusted)


def _trusted(shape: Shape, line: str) -> bool:
    """Events of many lines only: the others have fields that no column holds."""
    if shape.constants.get("event") not in MANY or "ts" not in shape.captured:
        return False
    row = _row(line.encode())
    told = _events(shape, shape.read(pl.DataFrame({INDEX: [0], LINE: [line]})), 0)
    return isinstance(row, tuple) and {"record": 0, **row[0]} == told.row(0, named=True)


def parse_lines(block: Lines, known: Shapes, zone: str | None = None) -> Parsed:
    """Columns of all good lines; a bad line costs itself, never its block."""
    parsed = Parsed(pl.DataFrame(schema=COLUMNS))
    found, strange = known.split(block)
    frames = [_events(shape, values, block.first_record) for shape, values in found]
    for shape, _ in found:
        parsed.unknown |= outer(shape) - KNOWN_OF_MANY
    if strange:
        frames.append(_one_by_one(strange, block, parsed, zone))
    if frames:
        parsed.events = pl.concat(frames)
    if len(frames) > 1:
        parsed.events = parsed.events.sort("record")
    return parsed


def _events(shape: Shape, values: pl.DataFrame, first_record: int) -> pl.DataFrame:
    told = {name: shape.column(name, dtype) for name, dtype in COLUMNS.items() if name in _FIELDS}
    if shape.constants["event"] != "chunk":
        told["kind"] = pl.lit(None, pl.String)
    record = pl.col(INDEX).cast(pl.Int64) + first_record
    return values.select(record=record, ts_ns=pl.col("ts"), **told).select(list(COLUMNS))


def _one_by_one(
    lines: Sequence[Strange], block: Lines, parsed: Parsed, zone: str | None
) -> pl.DataFrame:
    rows = []
    for index, line in lines:
        record = block.first_record + index
        if not line.strip():
            parsed.blank += 1
            continue
        row = _row(line, zone)
        if isinstance(row, str):
            parsed.problem(record, row, block)
            continue
        told, value = row
        if note := zone_note(value.get("ts"), zone):
            parsed.assumed.add(note)
        rows.append({"record": record, **told})
        if told["event"] in MANY:
            parsed.unknown |= value.keys() - KNOWN_OF_MANY
        else:
            parsed.unknown |= value.keys() - KNOWN
            parsed.objects[record] = value
    return pl.DataFrame(rows, schema=COLUMNS)


def _object(line: bytes) -> dict[str, Any] | str:
    """The object of one line, or what is wrong with it."""
    try:
        value = _decode(line)
    except RecursionError:
        return "JSON nested too deeply"
    except (msgspec.DecodeError, ValueError, ArithmeticError) as error:
        try:  # Python writes NaN, which Arrow lets pass
            value = json.loads(line.decode(), parse_float=Decimal)
        except (ValueError, ArithmeticError, RecursionError):
            quoting = isinstance(error, ArithmeticError)
            return f"not valid JSON: {'a number beyond all bounds' if quoting else error}"
    return value if isinstance(value, dict) else "a JSON value, but no object"


def _row(line: bytes, zone: str | None = None) -> tuple[dict[str, Any], dict[str, Any]] | str:
    """One event and the whole object that tells it, or what is wrong with it."""
    value = _object(line)
    if isinstance(value, str):
        return value
    event, request_id = value.get("event"), text_or_none(value.get("request_id"))
    if event not in EVENTS:
        return f"'event' is none of {', '.join(EVENTS)}"
    if request_id is None and event != "tick":
        return f"a {event} event without 'request_id'"
    ts_ns = time_to_ns(value.get("ts"), zone)
    if ts_ns is None:
        return f"'ts' {no_time(value.get('ts'))}"
    kind = value.get("kind") if event == "chunk" else None
    if kind is not None and kind not in CHUNK_KINDS:
        return f"'kind' is none of {', '.join(CHUNK_KINDS)}"
    counts: dict[str, int | None] = {}
    for name, possible in _BOUNDS.items():
        count = counts[name] = int_or_none(value.get(name))
        if count is None and value.get(name) is not None:
            return f"{name!r} is no whole number"
        if count is not None and count not in possible:
            return f"{name!r} is beyond any request"
    told = {"ts_ns": ts_ns, "request_id": request_id, "event": event, "kind": kind}
    return told | counts | {"client": text_or_none(value.get("client"))}, value
