"""Native request records: one line a request or attempt, whatever of it is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from analyzer.contract.native import RequestRecord
from analyzer.contract.types import Batch
from analyzer.readers._fast_kinds import MOMENT, MS, SECONDS, SMALL, TEXT, USD, WORD
from analyzer.readers._fast_lines import Fast
from analyzer.readers._fast_shapes import Shape
from analyzer.readers._fast_usage import FIELDS as USAGE
from analyzer.readers._fast_usage import buckets, plain
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Sink, converted, floats, objects, read_jsonl, usd
from analyzer.readers._parts import add_parts
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._times import DURATIONS, ms_to_ns, seconds_to_ns
from analyzer.readers._told_lists import parts_told
from analyzer.readers._usage import token_buckets

_TELLING = {
    "vantage", "operation_id", "started_at", "ended_at", "scheduled_at", "queue_ms", "prefill_ms",
    "decode_ms", "e2e_ms",
}  # fmt: skip
_SAME = (
    "vantage", "request_id", "response_id", "operation_id", "attempt", "trace_id", "session_id",
    "turn", "parent_session_id", "is_sidechain", "route", "endpoint", "model", "provider",
    "deployment", "streamed", "response_format", "tools_count", "tools_chars", "system_chars",
    "user_chars", "assistant_chars", "reasoning_chars", "tool_result_chars", "images",
    "schema_hash", "payload_hash", "cache_diagnosis", "cache_missed_tokens", "is_compacted",
    "effort", "speed", "status", "error", "finish_reason", "bytes_sent", "service_tier",
)  # fmt: skip
_STAMPS = ("started_at", "ended_at", "scheduled_at")
_DURATIONS = ("queue", "load", "prefill", "decode", "ttft", "e2e")
_SPELLED = {f"{name}_ns": f"'{name}_ms'" for name in _DURATIONS} | {
    "hold_ns": "'started_at' less 'scheduled_at'", "start_ns": "'started_at'",
    "max_output_tokens": "'max_tokens'", "retry_after_ns": "'retry_after_s'",
}  # fmt: skip


def probe(head: Head) -> Claim:
    """JSON lines with ``request_id`` and at least one field of ours that no vendor uses."""
    some = objects(head)
    if not some:
        return Claim(0, "its first lines are not JSON objects")
    best = max(some, key=lambda one: len(_TELLING & one.keys()))
    if "event" in best and "ts" in best:
        return Claim(0.3, "its lines are events, not whole requests")
    if "request_id" not in best:
        return Claim(0.3 if _TELLING & best.keys() else 0, "its JSON lines lack request_id")
    if not _TELLING & best.keys():
        return Claim(0.5, f"its JSON lines have none of {', '.join(sorted(_TELLING))}")
    return Claim(1, "")


def _take(value: dict[str, Any], record: int, sink: Sink) -> None:
    one = converted(floats(value), RequestRecord)
    sink.spelled = _SPELLED
    cost = usd(value.get("cost_usd"))
    start, end, scheduled = (sink.time(record, name, value.get(name)) for name in _STAMPS)
    row = {name: getattr(one, name) for name in _SAME}
    row |= {f"{name}_ns": ms_to_ns(value.get(f"{name}_ms")) for name in _DURATIONS}
    stated = any(row[f"{name}_ns"] is not None for name in _DURATIONS)
    if row["e2e_ns"] is None and start is not None and end is not None and end >= start:
        row["e2e_ns"] = end - start
    if scheduled is not None and start is not None and scheduled <= start:
        row["hold_ns"] = start - scheduled
    row |= token_buckets(one.usage)
    sink.add(
        "request",
        record,
        **row,
        start_ns=start,
        clock="wall" if start is not None else None,
        timing="stated" if stated else "stamps",
        retry_after_ns=seconds_to_ns(value.get("retry_after_s")),
        max_output_tokens=one.max_tokens,
        reported_cost_usd=cost,
    )
    add_parts(sink, record, parts_told(value.get("prompt_parts")))
    for name, tag in (one.tags or {}).items():
        sink.add("request_tag", record, name=name, value=tag)


def _spans(shape: Shape) -> dict[str, pl.Expr]:
    """What follows from the stamps: e2e where it is not stated, and the client's wait."""
    start, end, scheduled = (shape.column(name, pl.Int64) for name in _STAMPS)
    e2e = pl.coalesce(shape.column("e2e_ms", pl.Int64), pl.when(end >= start).then(end - start))
    return {"e2e_ns": e2e, "hold_ns": pl.when(scheduled <= start).then(start - scheduled)}


def _sound(shape: Shape) -> pl.Expr:
    spans = (span.fill_null(0) <= DURATIONS.last for span in _spans(shape).values())
    return pl.all_horizontal(*spans) & plain(shape)


def _tables(shape: Shape, values: pl.DataFrame) -> dict[str, pl.DataFrame]:
    names = shape.names
    columns = {name: shape.column(name, pl.String) for name in _SAME if name in names}
    columns |= {"vantage": shape.column("vantage", pl.String).fill_null("client")}
    columns |= {f"{name}_ns": pl.col(f"{name}_ms") for name in _DURATIONS if f"{name}_ms" in names}
    stated = any(f"{name}_ms" in names for name in _DURATIONS)
    columns |= _spans(shape) | buckets(shape)
    columns |= {
        "start_ns": shape.column("started_at", pl.Int64),
        "clock": pl.lit("wall" if "started_at" in names else None, pl.String),
        "timing": pl.lit("stated" if stated else "stamps"),
    }
    columns |= {
        ours: pl.col(theirs)
        for ours, theirs in (
            ("retry_after_ns", "retry_after_s"), ("max_output_tokens", "max_tokens"),
            ("reported_cost_usd", "cost_usd"),
        )
        if theirs in names
    }  # fmt: skip
    tags = [
        values.select("record", name=pl.lit(name.removeprefix("tags.")), value=pl.col(name))
        for name in shape.captured
        if name.startswith("tags.")
    ]
    tables = {"request": values.select("record", **columns)}
    if tags:
        tables["request_tag"] = pl.concat(tags).sort("record", maintain_order=True)
    return tables


_WORDS = {"vantage", "is_sidechain", "streamed", "is_compacted"}
_COUNTS = {
    "attempt", "turn", "tools_count", "tools_chars", "system_chars", "user_chars",
    "assistant_chars", "reasoning_chars", "tool_result_chars", "images", "cache_missed_tokens",
    "status", "bytes_sent",
}  # fmt: skip
_FIELDS = (
    {name: TEXT for name in _SAME if name not in _WORDS | _COUNTS}
    | dict.fromkeys(_WORDS, WORD)
    | dict.fromkeys(_COUNTS | {"max_tokens"}, SMALL)
    | dict.fromkeys(_STAMPS, MOMENT)
    | {f"{name}_ms": MS for name in _DURATIONS}
    | {"retry_after_s": SECONDS, "cost_usd": USD, "tags.*": TEXT}
    | dict(USAGE)
)
_FAST = Fast(_FIELDS, _tables, _sound, frozenset(RequestRecord.__struct_fields__))


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row a line."""
    return read_jsonl(file, options, _take, _FAST)


READER = Reader(
    title="Native request records (JSON Lines)",
    record_unit="line",
    gives=("request", "prompt_part", "request_tag"),
    probe=probe,
    read=read,
    docs="schemas/native/request-record.schema.json",
    cannot="what a record leaves out; chunk times",
    enable="add the fields, or write stream events for chunk times",
    checked_against="generated records",
)
