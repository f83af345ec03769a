"""Native billing records: the calls a provider billed, one a line; an id is optional."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.native import BillingRecord
from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, converted, keys_claim, read_jsonl, usd
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._times import NO_TIME, time_to_ns
from analyzer.readers._usage import token_buckets

_SAME = (
    "request_id", "response_id", "attempt", "model", "provider", "status", "service_tier",
)  # fmt: skip


def probe(head: Head) -> Claim:
    """JSON lines with ``accepted_at`` and ``usage``."""
    return keys_claim(head, {"accepted_at", "usage"})


def _take(value: dict[str, Any], record: int, sink: Sink) -> None:
    one = converted(value, BillingRecord)
    start = time_to_ns(one.accepted_at)
    if start is None:
        raise Bad(f"'accepted_at' {NO_TIME}")
    end, cost = sink.time(record, "finished_at", one.finished_at), usd(one.cost_usd)
    sink.add(
        "request",
        record,
        **{name: getattr(one, name) for name in _SAME},
        **token_buckets(one.usage),
        vantage="provider",
        start_ns=start,
        clock="wall",
        timing="stamps",
        e2e_ns=end - start if end is not None and end >= start else None,
        usage_final=True,
        reported_cost_usd=cost,
    )


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage provider a line."""
    return read_jsonl(file, options, _take)


READER = Reader(
    title="Native billing records (JSON Lines)",
    record_unit="line",
    gives=("request",),
    probe=probe,
    read=read,
    docs="schemas/native/billing-record.schema.json",
    cannot="where the time of a billed call went",
    enable="add the client's or the gateway's log to the case",
    checked_against="generated records",
)
