"""Records of a proxy in front of an OpenAI-compatible server: one line a call, in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._errors import error_class
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, keys_claim, read_jsonl
from analyzer.readers._part_bodies import prompt_in, settings_in
from analyzer.readers._parts import write_prompt
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import first, int_or_none, text_or_none
from analyzer.readers._times import NO_TIME, ms_to_ns, time_to_ns
from analyzer.readers._usage import token_buckets

_NEEDED = {"ts", "response_id", "endpoint", "latency_ms", "prompt_tokens", "completion_tokens"}
_OURS = frozenset({"vantage", "operation_id", "started_at", "queue_ms", "e2e_ms", "event"})


def probe(head: Head) -> Claim:
    """JSON lines with flat token counts, ``response_id`` and ``latency_ms``."""
    return keys_claim(head, _NEEDED, absent=_OURS)


def _take(value: dict[str, Any], record: int, sink: Sink) -> None:
    start = first(time_to_ns(value.get(name)) for name in ("ts", "ts_epoch"))
    if start is None:
        raise Bad(f"'ts' {NO_TIME}")
    streamed = value.get("streamed")
    error = text_or_none(value.get("error"))
    sink.add(
        "request",
        record,
        vantage="client",
        request_id=text_or_none(value.get("request_id")),
        response_id=text_or_none(value.get("response_id")),
        endpoint=text_or_none(value.get("endpoint")),
        model=text_or_none(value.get("model")),
        start_ns=start,
        clock="wall",
        timing="stated",
        ttft_ns=ms_to_ns(value.get("ttft_ms")),
        e2e_ns=ms_to_ns(value.get("latency_ms")),
        **token_buckets(value),
        streamed=streamed if isinstance(streamed, bool) else None,
        status=int_or_none(value.get("status")),
        error=error_class(error) if error else None,
        **settings_in(value.get("input")),
        **write_prompt(sink, record, prompt_in(value.get("input"))),
    )


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage client a line."""
    return read_jsonl(file, options, _take)


READER = Reader(
    title="OpenAI-compatible recording proxy (JSON Lines)",
    record_unit="line",
    gives=("request", "prompt_part"),
    probe=probe,
    read=read,
    docs="https://github.com/anud18/qwen36-vllm-aiperf-benchmark",
    cannot="queue, prefill and decode: a proxy sees only their sum; chunk times; cached tokens",
    enable="add the engine's spans: they join by response_id",
    checked_against="two records of such a proxy (2026-06), joined with the engine's spans",
)
