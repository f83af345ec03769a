"""vLLM's own stamps of each request, written out one request a line by a benchmark harness."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, keys_claim, read_jsonl
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import text_or_none
from analyzer.readers._times import seconds_to_ns
from analyzer.readers._usage import token_buckets

_STAMPS = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")


def probe(head: Head) -> Claim:
    """JSON lines with the four stamps and a ``request_id``."""
    return keys_claim(head, {"request_id", "input_toks", "output_toks", *_STAMPS})


def _take(value: dict[str, Any], record: int, sink: Sink) -> None:
    request_id = text_or_none(value.get("request_id"))
    if request_id is None:
        raise Bad("'request_id' is missing")
    queued, scheduled, first_token, last_token = (_stamp(value.get(name)) for name in _STAMPS)
    usage = {
        "prompt_tokens": value.get("input_toks"),
        "completion_tokens": value.get("output_toks"),
    }
    start = seconds_to_ns(value.get("arrival_time"))
    # arrival_time is on the wall clock, the stamps are not: no duration may mix them.
    durations = {
        "queue_ns": _between(queued, scheduled),
        "prefill_ns": _between(scheduled, first_token),
        "decode_ns": _between(first_token, last_token),
        "ttft_ns": _between(queued, first_token),
        "e2e_ns": _between(queued, last_token),
    }
    backwards = any(one is not None and one < 0 for one in durations.values())
    sink.add(
        "request",
        record,
        vantage="engine",
        request_id=request_id,
        model=text_or_none(value.get("model")),
        start_ns=start,
        clock="wall" if start is not None else "monotonic",
        timing="stamps",
        **({} if backwards else durations),
        **token_buckets(usage),
    )
    if backwards:
        raise Bad("its stamps run backwards: its durations were not read")


def _stamp(value: Any) -> int | None:  # noqa: ANN401 - foreign JSON
    """A milestone the request never reached is left at 0."""
    ns = seconds_to_ns(value) if isinstance(value, (int, float)) else None
    return ns or None


def _between(earlier: int | None, later: int | None) -> int | None:
    return later - earlier if earlier is not None and later is not None else None


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage engine a line."""
    return read_jsonl(file, options, _take)


READER = Reader(
    title="vLLM request stamps of a benchmark run (JSON Lines)",
    record_unit="line",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://github.com/casys-kaist/LLMServingSim",
    cannot="front end and network: durations begin when the engine core queues the request, and "
    "the arrival is on another clock; cached tokens; preemptions",
    enable="add the client's log",
    checked_against="three runs of vLLM 0.19.0 (900 requests): TTFT, TPOT and latency equal the "
    "summaries that came with them",
)
