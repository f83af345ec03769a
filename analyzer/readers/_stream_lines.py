"""Lines of native stream events to columns, in Arrow; bad lines are set aside one by one."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.json as pj

from analyzer.contract.tables import CHUNK_KINDS
from analyzer.contract.types import Problem
from analyzer.readers._file import Lines
from analyzer.readers._rows import COUNTS, excerpt, int_or_none, text_or_none
from analyzer.readers._times import NO_TIME, TIMES, time_to_ns

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
_FIELDS: list[tuple[str, pa.DataType]] = [
    ("request_id", pa.string()),
    ("event", pa.string()),
    ("kind", pa.string()),
    ("chars", pa.int64()),
    ("tokens", pa.int64()),
    ("attempt", pa.int64()),
    ("index", pa.int64()),
    ("client", pa.string()),
]
# Scale 9 makes the unscaled integer the nanoseconds: no float ever touches a time stamp.
_UNIX = pa.schema([("ts", pa.decimal128(28, 9)), *_FIELDS])
_RFC3339 = pa.schema([("ts", pa.string()), *_FIELDS])
# One chunk is far shorter than what is counted elsewhere, so that a block's sum fits int64.
_BOUNDS = {
    "ts_ns": TIMES, "chars": range(2**32), "tokens": range(2**32), "attempt": COUNTS,
    "index": COUNTS,
}  # fmt: skip
_FEW_LINES = 64
_SHORT_LINE, _DEEPEST = 400, 200

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

    def problem(self, record: int, reason: str, block: Lines) -> None:
        """A line that cannot be read."""
        index = record - block.first_record
        self.problems.append(
            Problem(record, reason, excerpt(block.lines[index]), block.starts[index])
        )


def parse_lines(block: Lines) -> Parsed:
    """Columns of all good lines; a bad line costs a few splits, never its block."""
    parsed = Parsed(pl.DataFrame(schema=COLUMNS))
    numbered = range(block.first_record, block.first_record + len(block.lines))
    lines, records = block.lines, list(numbered)
    if not all(lines) or any(line.isspace() for line in lines if len(line) < 4):
        kept = [(r, line) for r, line in zip(records, lines, strict=True) if line.strip()]
        parsed.blank = len(lines) - len(kept)
        records, lines = [r for r, _ in kept], [line for _, line in kept]
    frames: list[pl.DataFrame] = []
    _split(lines, records, block, parsed, frames)
    if frames:
        parsed.events = pl.concat(frames)
    _decode_objects(block, parsed)
    return parsed


def _decode_objects(block: Lines, parsed: Parsed) -> None:
    few = parsed.events.filter(~pl.col("event").is_in(MANY))["record"]
    for record in few:
        value = _object(block.lines[record - block.first_record])
        if isinstance(value, str):  # Arrow passes over what a field we do not know holds
            parsed.problem(record, value, block)
        else:
            parsed.objects[record] = value
    if len(parsed.objects) < len(few):
        bad = [problem.record for problem in parsed.problems]
        parsed.events = parsed.events.filter(~pl.col("record").is_in(bad))


def _split(
    lines: list[bytes],
    records: list[int],
    block: Lines,
    parsed: Parsed,
    frames: list[pl.DataFrame],
) -> None:
    if not lines:
        return
    frame = _arrow(lines, records)
    if frame is not None:
        frames.append(frame)
    elif len(lines) <= _FEW_LINES:
        frames.append(_one_by_one(lines, records, block, parsed))
    else:
        middle = len(lines) // 2
        _split(lines[:middle], records[:middle], block, parsed, frames)
        _split(lines[middle:], records[middle:], block, parsed, frames)


def _arrow(lines: list[bytes], records: list[int]) -> pl.DataFrame | None:
    """All lines at once, or None if any of them is not a good event."""
    if not all(map(_safe_for_arrow, lines)):
        return None
    data = b"\n".join(lines)
    try:
        data.decode()  # Arrow takes any bytes for text, and Polars dies of them
    except UnicodeDecodeError:
        return None
    for schema in (_UNIX, _RFC3339):
        try:
            table = pj.read_json(
                pa.BufferReader(data),
                read_options=pj.ReadOptions(block_size=max(1 << 20, max(map(len, lines)) + 1)),
                parse_options=pj.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior="ignore"
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError):
            continue
        if table.num_rows != len(lines):
            return None
        return _checked(table, records)
    return None


def _safe_for_arrow(line: bytes) -> bool:
    """Whether Arrow survives it: a bare ``null`` and very deep nesting end the whole process."""
    if not line.startswith(b"{"):
        return False
    return len(line) <= _SHORT_LINE or line.count(b"{") + line.count(b"[") <= _DEEPEST


def _checked(table: pa.Table, records: list[int]) -> pl.DataFrame | None:
    frame = pl.DataFrame(pl.from_arrow(table))
    stamp = pl.col("ts")
    if frame.schema["ts"] == pl.String:
        # Without an offset a text is in UTC, which RFC 3339 does not allow; the slow path decides.
        ns = stamp.str.to_datetime("%+", time_unit="ns", strict=False, time_zone="UTC")
        ts_ns = ns.dt.epoch("ns")
    else:
        ts_ns = stamp.to_physical().cast(pl.Int64, strict=False)
    frame = frame.with_columns(
        ts_ns=ts_ns,
        record=pl.Series(records, dtype=pl.Int64),
        kind=pl.when(pl.col("event") == "chunk").then("kind"),
    )
    good = (
        frame.select(
            (
                pl.col("ts_ns").is_not_null()
                & pl.col("event").is_in(EVENTS)
                & (pl.col("request_id").is_not_null() | (pl.col("event") == "tick"))
                & pl.col("kind").is_in(CHUNK_KINDS, nulls_equal=False).fill_null(value=True)
            ).all()
            & pl.all_horizontal(
                pl.col(name).is_between(bound[0], bound[-1]).all()
                for name, bound in _BOUNDS.items()
            )
        )
    ).item()
    return frame.select(list(COLUMNS)) if good else None


def _one_by_one(
    lines: list[bytes], records: list[int], block: Lines, parsed: Parsed
) -> pl.DataFrame:
    rows = []
    for line, record in zip(lines, records, strict=True):
        row = _row(line)
        if isinstance(row, str):
            parsed.problem(record, row, block)
        else:
            rows.append({"record": record, **row})
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


def _row(line: bytes) -> dict[str, Any] | str:
    """One event, or what is wrong with it."""
    value = _object(line)
    if isinstance(value, str):
        return value
    event, request_id = value.get("event"), text_or_none(value.get("request_id"))
    if event not in EVENTS:
        return f"'event' is none of {', '.join(EVENTS)}"
    if request_id is None and event != "tick":
        return f"a {event} event without 'request_id'"
    ts_ns = time_to_ns(value.get("ts"))
    if ts_ns is None:
        return f"'ts' {NO_TIME}"
    kind = value.get("kind") if event == "chunk" else None
    if kind is not None and kind not in CHUNK_KINDS:
        return f"'kind' is none of {', '.join(CHUNK_KINDS)}"
    counts = {}
    for name in ("chars", "tokens", "attempt", "index"):
        counts[name] = int_or_none(value.get(name))
        if counts[name] is None and value.get(name) is not None:
            return f"{name!r} is no whole number"
        if counts[name] is not None and counts[name] not in _BOUNDS[name]:
            return f"{name!r} is beyond any request"
    told = {"ts_ns": ts_ns, "request_id": request_id, "event": event, "kind": kind}
    return told | counts | {"client": text_or_none(value.get("client"))}
