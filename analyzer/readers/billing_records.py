"""Native billing records: the calls a provider billed, one a line; an id is optional."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from analyzer.contract.native import BillingRecord
from analyzer.contract.types import Batch
from analyzer.readers._fast_kinds import MOMENT, SMALL, TEXT, USD
from analyzer.readers._fast_lines import Fast
from analyzer.readers._fast_shapes import Shape
from analyzer.readers._fast_usage import FIELDS as USAGE
from analyzer.readers._fast_usage import buckets, plain
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Sink, converted, floats, keys_claim, read_jsonl, usd
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._times import DURATIONS
from analyzer.readers._usage import token_buckets

_SAME = (
    "request_id", "response_id", "attempt", "model", "provider", "status", "service_tier",
)  # fmt: skip


def probe(head: Head) -> Claim:
    """JSON lines with ``accepted_at`` and ``usage``."""
    return keys_claim(head, {"accepted_at", "usage"})


def _take(value: dict[str, Any], record: int, sink: Sink) -> None:
    one = converted(floats(value), BillingRecord)
    start = sink.needed_time("accepted_at", value.get("accepted_at"))
    end, cost = (
        sink.time(record, "finished_at", value.get("finished_at")),
        usd(value.get("cost_usd")),
    )
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


def _e2e(shape: Shape) -> pl.Expr:
    start, end = (shape.column(name, pl.Int64) for name in _STAMPS)
    return pl.when(end >= start).then(end - start)


def _sound(shape: Shape) -> pl.Expr:
    return (_e2e(shape).fill_null(0) <= DURATIONS.last) & plain(shape)


def _tables(shape: Shape, values: pl.DataFrame) -> dict[str, pl.DataFrame]:
    columns = {name: pl.col(name) for name in _SAME if name in shape.names}
    columns |= buckets(shape) | {
        "vantage": pl.lit("provider"), "start_ns": pl.col("accepted_at"), "clock": pl.lit("wall"),
        "timing": pl.lit("stamps"), "e2e_ns": _e2e(shape), "usage_final": pl.lit(value=True),
    }  # fmt: skip
    if "cost_usd" in shape.names:
        columns["reported_cost_usd"] = pl.col("cost_usd")
    return {"request": values.select("record", **columns)}


_STAMPS = ("accepted_at", "finished_at")
_FIELDS = (
    dict.fromkeys(_SAME, TEXT)
    | dict.fromkeys(("attempt", "status"), SMALL)
    | dict.fromkeys(_STAMPS, MOMENT)
    | {"cost_usd": USD}
    | dict(USAGE)
)
_FAST = Fast(_FIELDS, _tables, _sound, frozenset(BillingRecord.__struct_fields__))


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage provider a line."""
    return read_jsonl(file, options, _take, _FAST)


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
