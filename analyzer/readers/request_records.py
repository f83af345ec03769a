"""Native request records: one line a request or attempt, whatever of it is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.native import RequestRecord
from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Sink, converted, objects, read_jsonl, usd
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._times import ms_to_ns, seconds_to_ns
from analyzer.readers._usage import token_buckets

_TELLING = {
    "vantage", "operation_id", "started_at", "ended_at", "scheduled_at", "queue_ms", "prefill_ms",
    "decode_ms", "e2e_ms",
}  # fmt: skip
_SAME = (
    "vantage", "request_id", "response_id", "operation_id", "attempt", "trace_id", "session_id",
    "turn", "parent_session_id", "is_sidechain", "route", "endpoint", "model", "provider",
    "deployment", "streamed", "response_format", "tools_count", "tools_chars", "system_chars",
    "schema_hash", "payload_hash", "status", "error", "finish_reason", "bytes_sent", "service_tier",
)  # fmt: skip
_DURATIONS = ("queue", "load", "prefill", "decode", "ttft", "e2e")


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
    one = converted(value, RequestRecord)
    cost = usd(one.cost_usd)
    start, end, scheduled = (
        sink.time(record, name, getattr(one, name))
        for name in ("started_at", "ended_at", "scheduled_at")
    )
    row = {name: getattr(one, name) for name in _SAME}
    row |= {f"{name}_ns": ms_to_ns(getattr(one, f"{name}_ms")) for name in _DURATIONS}
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
        retry_after_ns=seconds_to_ns(one.retry_after_s),
        max_output_tokens=one.max_tokens,
        reported_cost_usd=cost,
    )
    for name, tag in (one.tags or {}).items():
        sink.add("request_tag", record, name=name, value=tag)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row a line."""
    return read_jsonl(file, options, _take)


READER = Reader(
    title="Native request records (JSON Lines)",
    record_unit="line",
    gives=("request", "request_tag"),
    probe=probe,
    read=read,
    docs="schemas/native/request-record.schema.json",
    cannot="what a record leaves out; chunk times",
    enable="add the fields, or write stream events for chunk times",
    checked_against="generated records",
)
