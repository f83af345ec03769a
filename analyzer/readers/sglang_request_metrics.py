"""SGLang's request exporter: one JSON line a finished request, all of its ``meta_info``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from analyzer.contract.types import Batch, Problem
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Sink, keys_claim, read_jsonl
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._sglang_requests import Asked, meta_columns

_asked = msgspec.json.Decoder(Asked).decode


def probe(head: Head) -> Claim:
    """JSON lines with the request as text and its latency."""
    return keys_claim(head, {"request_parameters", "e2e_latency", "id"})


def _take(value: dict[str, Any], record: int, sink: Sink) -> None:
    columns, strange = meta_columns(value, _parameters(value.get("request_parameters")))
    sink.add("request", record, **columns)
    if strange:
        sink.problems.append(Problem(record, strange))


def _parameters(text: Any) -> Asked | None:  # noqa: ANN401 - foreign JSON
    """JSON inside JSON; what cannot be read of it is not told."""
    if not isinstance(text, str):
        return None
    try:
        return _asked(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage engine a line."""
    return read_jsonl(file, options, _take)


READER = Reader(
    title="SGLang request exporter (JSON Lines)",
    record_unit="line",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://docs.sglang.ai/advanced_features/observability.html",
    cannot="network; the model's name; chunk times; without --enable-metrics: queue, prefill, "
    "decode and when it began; retractions",
    enable="--export-metrics-to-file --enable-metrics (since 0.5.6; prefill and decode exact since "
    "0.5.12, time to first token since 0.5.23)",
    checked_against="the exporter's source of 0.5.6 to 0.5.23; no file of a real server",
)
