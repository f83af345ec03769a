"""GuideLLM's ``benchmarks.json``, from 0.2 on: stamps of each request, first and last token."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._errors import error_class
from analyzer.readers._file import Head, InputFile
from analyzer.readers._json_stream import Item
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._loadgen import (
    Requests,
    add_engine,
    asked,
    counted,
    document,
    object_item,
    summary,
)
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import first, int_or_none, text_or_none
from analyzer.readers._times import DURATIONS, time_to_ns

_GROUPS = ("successful", "incomplete", "errored")
_LISTS = [("benchmarks", "*", "requests", group) for group in _GROUPS]
_SCHEDULED = ("constant", "poisson", "trace")
"""Strategies that plan a moment for each request; the others start as soon as they can."""
_KEEP = (
    "write the whole report as JSON (guidellm benchmark run --outputs json), without a sample size "
    "and without stripping its requests"
)
_ASAP = (
    "the strategy has no schedule (synchronous, concurrent, throughput): how long a request waited "
    "for GuideLLM is not told"
)
_NO_STREAM = "the backend was told not to stream: times to first token are left out"


def probe(head: Head) -> Claim:
    """A JSON document whose benchmarks are of GuideLLM."""
    text = document(head)
    if not text and (b"generative_benchmark" in head.data or b"guidellm_version" in head.data):
        return Claim(0.9, f"it is a GuideLLM report, but not as JSON: {_KEEP}")
    known = '"guidellm_version"' in text or '"generative_benchmark"' in text
    if text.startswith("{") and known and '"benchmarks"' in text:
        return Claim(1, "")
    if known:
        return summary("a part of a GuideLLM report", _KEEP)
    return Claim(0, "it has no benchmarks of GuideLLM")


@dataclasses.dataclass
class _Run:
    """What a benchmark says before its requests, and how many it ran."""

    model: str | None = None
    strategy: str | None = None
    streams: bool | None = None
    ran: int = 0
    listed: int = 0


class _Report:
    """Collects the runs of one file."""

    def __init__(self) -> None:
        self.runs: dict[int, _Run] = {}
        self.common = _Run()

    def run(self, path: tuple[str | int, ...]) -> _Run:
        """The benchmark a value belongs to, or what holds for all of them."""
        if len(path) > 1 and path[0] == "benchmarks" and isinstance(path[1], int):
            return self.runs.setdefault(path[1], _Run())
        return self.common

    def see(self, item: Item) -> None:
        """A value that is no request."""
        value, run = item.value, self.run(item.path)
        if not isinstance(value, dict):
            return
        backend = first(_dict(one).get("backend") for one in (value, value.get("spec")))
        names = (_dict(backend).get("model"), value.get("backend_model"), value.get("model"))
        run.model = first((run.model, *map(text_or_none, names)))
        strategy = _dict(value.get("strategy")).get("type_")
        run.strategy = first((run.strategy, text_or_none(strategy)))
        stream = _dict(backend).get("stream")
        run.streams = stream if isinstance(stream, bool) else run.streams
        made = item.path[-1:] == ("request_totals",)
        for one in (value.get("requests_made"), value.get("request_totals"), made and value):
            run.ran = max(run.ran, int_or_none(_dict(one).get("total")) or 0)

    def finish(self, sink: Sink) -> list[str]:
        """What is missing: a reason for each benchmark that lists no request."""
        reasons = []
        for run in self.runs.values():
            if run.ran and not run.listed:
                ran = f"{run.ran} request" + ("s" if run.ran != 1 else "")
                reasons.append(f"a summary without requests: it ran {ran} and lists none; {_KEEP}")
            elif run.listed < run.ran:
                sink.assumed.add(
                    f"a benchmark lists {run.listed} of its {run.ran} requests; the others were "
                    "sampled out or stripped"
                )
        return reasons

    def take(self, item: Item, record: int, sink: Sink) -> None:
        """Rows of one request."""
        value, run = object_item(item), self.run(item.path)
        run.listed += 1
        run.streams = first((run.streams, self.common.streams))
        run.model = first((run.model, self.common.model))
        old = "scheduler_info" in value
        row = {"vantage": "client", "clock": "wall", "timing": "stamps", "model": run.model}
        row |= (_old if old else _new)(value, run, sink)
        row |= _ended(str(item.path[3]), value)
        if row.get("error") is not None:
            row["e2e_ns"] = None
        sink.add("request", record, **row)
        add_engine(sink, record, row, value.get("response_metrics"))


def _dict(value: Any) -> dict[str, Any]:  # noqa: ANN401 - foreign JSON
    return value if isinstance(value, dict) else {}


def _ended(group: str, value: dict[str, Any]) -> dict[str, Any]:
    if group == "successful":
        return {}
    if group == "incomplete":
        return {"error": "cancelled"}
    text = first((value.get("error"), _dict(value.get("info")).get("error")))
    named = error_class(text) if isinstance(text, str) else None
    status = int(named[5:]) if named is not None and named.startswith("http ") else None
    return {"error": named or "error", "status": status}


class _Stamps:
    """Stamps of one request, Unix seconds; what was never reached is unset or -1."""

    def __init__(self, *holders: Any) -> None:  # noqa: ANN401 - foreign JSON
        self._holders = [_dict(holder) for holder in holders]

    def at(self, *names: str) -> int | None:
        for name in names:
            for holder in self._holders:
                value = holder.get(name)
                if value is None or value == -1:
                    continue
                if (ns := time_to_ns(value)) is None:
                    raise Bad(f"{name!r} is no time")
                return ns
        return None


def _between(start: int | None, end: int | None, what: str) -> int | None:
    if start is None or end is None:
        return None
    if end - start not in DURATIONS:
        raise Bad(f"its stamps run backwards: {what}")
    return end - start


def _old(value: dict[str, Any], run: _Run, sink: Sink) -> dict[str, Any]:
    """A request of GuideLLM 0.2 and 0.3, which always stream."""
    stamps = _Stamps(value, value.get("scheduler_info"))
    start = stamps.at("start_time", "request_start")
    if start is None:
        raise Bad("it never began: 'start_time' is missing")
    first_token = stamps.at("first_token_time")
    last = stamps.at("last_token_time", "end_time")
    usage = {
        "prompt_tokens": value.get("prompt_tokens"),
        "completion_tokens": value.get("output_tokens"),
    }
    return {
        "request_id": text_or_none(value.get("request_id")),
        "start_ns": start,
        "hold_ns": _hold(stamps.at("targeted_start_time"), start, run, sink),
        "ttft_ns": _between(start, first_token, "first token"),
        "e2e_ns": _between(start, last, "end"),
        "streamed": True if first_token is not None else None,
        **counted(usage),
    }


def _new(value: dict[str, Any], run: _Run, sink: Sink) -> dict[str, Any]:
    """A request of GuideLLM 0.4 or later."""
    info = _dict(value.get("info"))
    timings = _dict(info.get("timings"))
    stamps = _Stamps(timings)
    start = stamps.at("request_start", "resolve_start")
    if start is None:
        raise Bad("it never began: 'request_start' is missing")
    token = stamps.at("first_token_iteration")
    if run.streams is False and token is not None:
        sink.assumed.add(_NO_STREAM)
        token = None
    last = stamps.at("last_token_iteration") if token is not None else None
    end = first((last, stamps.at("request_end", "resolve_end")))
    ttft = _between(start, token, "first token")
    visible = _between(start, stamps.at("first_output_token_iteration"), "first output token")
    reasoned = ttft is not None and visible is not None and ttft < visible
    planned, blocked = stamps.at("targeted_start"), stamps.at("predecessor_completed")
    if planned is not None and blocked is not None:
        planned = max(planned, blocked)
    body = asked(value.get("request_args"))
    turn = int_or_none(info.get("turn_index"))
    session = text_or_none(info.get("conversation_id"))
    return {
        **body,
        "model": first((body.get("model"), run.model)),
        "request_id": text_or_none(value.get("request_id")),
        "response_id": text_or_none(value.get("response_id")),
        "session_id": session,
        "turn": turn + 1 if turn is not None and session is not None else None,
        "start_ns": start,
        "hold_ns": _hold(planned, start, run, sink),
        "ttft_ns": ttft,
        "first_reasoning_ns": ttft if reasoned else None,
        "first_content_ns": visible if ttft is not None else None,
        "e2e_ns": _between(start, end, "end"),
        "chunks": int_or_none(timings.get("token_iterations")) or None
        if ttft is not None
        else None,
        "streamed": True if ttft is not None else first((body.get("streamed"), run.streams)),
        **_tokens(value),
    }


def _tokens(value: dict[str, Any]) -> dict[str, Any]:
    given, made = _dict(value.get("input_metrics")), _dict(value.get("output_metrics"))
    usage = {
        # output_tokens falls back on the number of events, so only the metrics are believed.
        "prompt_tokens": first((given.get("total_tokens"), given.get("text_tokens"))),
        "completion_tokens": first((made.get("total_tokens"), made.get("text_tokens"))),
        "prompt_tokens_details": {"cached_tokens": given.get("cached_tokens")},
    }
    return counted(usage)


def _hold(planned: int | None, start: int, run: _Run, sink: Sink) -> int | None:
    if run.strategy not in _SCHEDULED:
        if run.strategy is not None:
            sink.assumed.add(_ASAP)
        return None
    hold = start - planned if planned is not None else None
    return hold if hold is not None and hold in DURATIONS else None


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``request`` row of vantage client a request that is listed."""
    report = _Report()
    nothing = f"no request in it: {_KEEP}"
    return Requests(_LISTS, report.take, nothing, report.see, report.finish).read(file)


READER = Reader(
    title="GuideLLM reports (benchmarks.json)",
    record_unit="request",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://github.com/vllm-project/guidellm",
    cannot="chunk times (only first and last token); requests that were sampled out; queue and "
    "prefill, unless the server sends vLLM's metrics with its answer",
    enable="guidellm benchmark run --outputs json, no sample size; 0.8 or later against vllm serve "
    "--enable-per-request-metrics",
    checked_against="the sources of GuideLLM 0.2, 0.3, 0.4, 0.6 and 0.8; one request of a public "
    "0.2 report; a public 0.8 report without requests",
)
