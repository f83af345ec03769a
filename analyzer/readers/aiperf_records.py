"""AIPerf's ``profile_export.jsonl``: one line a request, each metric with its unit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._aiperf import DOCS, claim, identity, outcome
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, read_jsonl
from analyzer.readers._loadgen import (
    ONE_PIECE,
    UNITS_NS,
    add_chunks,
    counted,
    duration_ns,
    offsets_of,
)
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import first, int_or_none

_DOUBLED = (
    "time_to_first_token equals the first gap: the key stood twice in the record and its last "
    "value is the time to the second token, so TTFT was taken from latency and gaps"
)
_ROUNDING_NS = 10_000
_OWN_COUNT = "tokens without usage are counted by AIPerf's own tokenizer"


def probe(head: Head) -> Claim:
    """JSON lines with ``metadata.request_start_ns`` and ``metrics``."""
    return claim(head, "metrics")


class _Metrics:
    """The metrics of one line; a time is read in the unit that stands beside it."""

    def __init__(self, value: Any) -> None:  # noqa: ANN401 - foreign JSON
        if not isinstance(value, dict):
            raise Bad("'metrics' is missing")
        self._value = value

    def value(self, *tags: str) -> Any:  # noqa: ANN401
        found = (self._value.get(tag) for tag in tags)
        return first(one.get("value") for one in found if isinstance(one, dict))

    def unit_ns(self, *tags: str) -> float:
        found = (self._value.get(tag) for tag in tags)
        unit = first(one.get("unit") for one in found if isinstance(one, dict))
        if not isinstance(unit, str) or unit not in UNITS_NS:
            raise Bad(f"the unit of {tags[0]!r} is none of {', '.join(UNITS_NS)}")
        return UNITS_NS[unit]

    def ns(self, *tags: str) -> int | None:
        value = self.value(*tags)
        return None if value is None else duration_ns(value, self.unit_ns(*tags), tags[0])


def _take(value: dict[str, Any], record: int, sink: Sink) -> None:
    who = identity(value.get("metadata"))
    metrics = _Metrics(value.get("metrics"))
    times, offsets = _times(metrics, sink)
    visible = times["first_content_ns"]
    if visible is None and not metrics.value("reasoning_token_count"):
        visible = 0
    kinds = [
        "reasoning" if visible is None or offset < visible - _ROUNDING_NS else "content"
        for offset in offsets
    ]
    trace = value.get("trace_data")
    sent = trace.get("request_bytes_total") if isinstance(trace, dict) else None
    row = who | times | _tokens(metrics, sink) | {"bytes_sent": int_or_none(sent)}
    if kinds and kinds[0] == "reasoning":
        row["first_reasoning_ns"] = offsets[0]
    if isinstance(trace, dict):
        row["status"] = int_or_none(trace.get("response_status_code"))
    row |= outcome(value)
    sink.add("request", record, **row)
    add_chunks(sink, record, offsets, kinds, [None] * len(offsets))


def _times(metrics: _Metrics, sink: Sink) -> tuple[dict[str, Any], list[int]]:
    ttft, e2e = metrics.ns("time_to_first_token", "ttft"), metrics.ns("request_latency")
    gaps = metrics.value("inter_chunk_latency")
    offsets: list[int] = []
    if ttft is not None and isinstance(gaps, list) and gaps:
        unit_ns = metrics.unit_ns("inter_chunk_latency")
        offsets = offsets_of(ttft, gaps, unit_ns, "inter_chunk_latency")
        doubled = ttft == offsets[1] - ttft and metrics.value("time_to_second_token") is None
        if doubled and e2e is not None and e2e > offsets[-1]:
            sink.assumed.add(_DOUBLED)
            late = e2e - offsets[-1]
            offsets = [offset + late for offset in offsets]
            ttft = offsets[0]
    elif ttft is not None and ttft == e2e and (_output(metrics) or 0) > 1:
        sink.assumed.add(ONE_PIECE)
        ttft = None
    elif ttft is not None:
        offsets = [ttft]
    visible = metrics.ns("time_to_first_output_token") if ttft is not None else None
    return {
        "timing": "stream" if offsets else "stated",
        "ttft_ns": ttft,
        "first_content_ns": max(visible, offsets[0]) if visible is not None and offsets else None,
        # request_latency may end with the usage; the answer ends with its last chunk.
        "e2e_ns": offsets[-1] if len(offsets) > 1 else e2e,
        "dns_ns": metrics.ns("http_req_dns_lookup"),
        "connect_ns": metrics.ns("http_req_connecting"),
        "chunks": len(offsets) or None,
        "streamed": True if offsets else None if e2e is None else False,
    }, offsets


def _output(metrics: _Metrics) -> int | None:
    return int_or_none(metrics.value("usage_completion_tokens", "output_sequence_length"))


def _tokens(metrics: _Metrics, sink: Sink) -> dict[str, Any]:
    told = metrics.value("usage_prompt_tokens", "usage_completion_tokens") is not None
    usage = {
        "prompt_tokens": metrics.value("usage_prompt_tokens", "input_sequence_length"),
        "completion_tokens": _output(metrics),
        "prompt_tokens_details": {
            "cached_tokens": metrics.value("usage_prompt_cache_read_tokens"),
            "cache_write_tokens": metrics.value("usage_prompt_cache_write_tokens"),
        },
        "completion_tokens_details": {
            "reasoning_tokens": metrics.value("usage_reasoning_tokens", "reasoning_token_count")
        },
    }
    buckets = counted(usage, "inclusive" if told else "unknown")
    if buckets and not told:
        sink.assumed.add(_OWN_COUNT)
    return buckets


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage client a line, and its chunks."""
    return read_jsonl(file, options, _take)


READER = Reader(
    title="AIPerf records (profile_export.jsonl)",
    record_unit="line",
    gives=("request", "chunk"),
    probe=probe,
    read=read,
    docs=DOCS,
    cannot="queue and prefill; what a chunk held; response ids; times of requests that failed",
    enable="aiperf profile --streaming --export-level records; --export-http-trace for connect "
    "times; add the engine's own log or spans",
    checked_against="a run of AIPerf 0.13.0 against an engine with known times; runs of two more "
    "versions",
)
