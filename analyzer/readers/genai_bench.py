"""genai-bench's result of one run: numbers of each request, without times of day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._errors import error_class
from analyzer.readers._file import Head, InputFile
from analyzer.readers._json_stream import Item
from analyzer.readers._jsonl import Sink
from analyzer.readers._loadgen import (
    ONE_PIECE,
    Requests,
    counted,
    document,
    duration_ns,
    number,
    object_item,
    summary,
)
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import int_or_none, text_or_none

_LIST = ("individual_request_metrics",)
_RESULT = "read the JSON of each run, which has individual_request_metrics"
_SECONDS = "no throughput proves the unit of its times: read as seconds"


def probe(head: Head) -> Claim:
    """An object with ``aggregated_metrics`` and ``individual_request_metrics``."""
    text = document(head)
    if text.startswith("{") and '"individual_request_metrics"' in text:
        return Claim(1, "")
    if '"aggregated_metrics"' in text and '"mean_output_throughput_tokens_per_s"' in text:
        return summary("the aggregate of a genai-bench run", _RESULT)
    return Claim(0, "it has no individual_request_metrics")


class _Run:
    """What stands beside the requests."""

    def __init__(self) -> None:
        self.model: str | None = None

    def see(self, item: Item) -> None:
        """A value that is no request."""
        value = item.value
        if isinstance(value, dict):
            self.model = text_or_none(value.get("model")) or self.model

    def take(self, item: Item, record: int, sink: Sink) -> None:
        """The row of one request."""
        value = object_item(item)
        unit_ns = _unit_ns(value)
        if unit_ns is None:
            unit_ns = 1e9
            if value.get("e2e_latency"):
                sink.assumed.add(_SECONDS)
        ttft = duration_ns(value.get("ttft"), unit_ns, "ttft") or None
        e2e = duration_ns(value.get("e2e_latency"), unit_ns, "e2e_latency") or None
        streamed = None
        if ttft is not None and ttft == e2e:
            # Bodies that came at once are given the end as the time of their first token.
            sink.assumed.add(ONE_PIECE)
            ttft, streamed = None, False
        code = int_or_none(value.get("error_code"))
        row: dict[str, Any] = {}
        if code is not None:
            message = value.get("error_message")
            named = error_class(message) if isinstance(message, str) else None
            known = 400 <= code < 600
            row = {
                "status": code if known else None,
                "error": f"http {code}" if known else named or "error",
            }
            e2e = None
        sink.add(
            "request",
            record,
            vantage="client",
            model=self.model,
            clock="monotonic",
            timing="stated",
            ttft_ns=ttft,
            e2e_ns=e2e,
            streamed=streamed,
            **_tokens(value),
            **row,
        )


def _tokens(value: dict[str, Any]) -> dict[str, Any]:
    made = int_or_none(value.get("num_output_tokens"))
    reasoning = int_or_none(value.get("num_reasoning_tokens"))
    usage = {
        "prompt_tokens": value.get("num_input_tokens"),
        "completion_tokens": made,
        # 0 stands for "not told" as well.
        "completion_tokens_details": {"reasoning_tokens": reasoning or None},
    }
    return counted(usage, "unknown")


def _unit_ns(value: dict[str, Any]) -> float | None:
    """Seconds or, with ``--metrics-time-unit ms``, milliseconds: its throughputs prove it."""
    numbers = [value.get(name) for name in ("num_input_tokens", "input_throughput", "ttft")]
    told = [one for one in map(number, numbers) if one is not None and one > 0]
    if len(told) < len(numbers):
        return None
    tokens, rate, time = told
    ratio = rate * time / tokens
    if 0.9 < ratio < 1.1:
        return 1e9
    return 1e6 if 900 < ratio < 1100 else None


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``request`` row of vantage client a request."""
    run = _Run()
    return Requests([_LIST], run.take, f"no request in it: {_RESULT}", run.see).read(file)


READER = Reader(
    title="genai-bench results (JSON)",
    record_unit="request",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://github.com/sgl-project/genai-bench",
    cannot="when a request began, ids, chunks, cached tokens, queue and prefill",
    enable="genai-bench benchmark; add the server's log for queue and prefill",
    checked_against="the code that writes it (genai-bench 0.0.5); no public file was at hand",
)
