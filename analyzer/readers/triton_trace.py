"""Triton's own trace (``mode=triton``): loose records of a request, joined by their id.

Steps of an ensemble are traces of their own that name their parent: they are one request, and its
queue is the time during which a step of it waited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._file import Head, InputFile
from analyzer.readers._items import Item, items_of, local_id
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._milestones import Milestones
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import int_or_none, text_or_none

_TELLING = re.compile(
    rb'"timestamps"\s*:\s*\[\s*\{\s*"(?:name"\s*:\s*"[A-Za-z_ ]+"\s*,\s*"ns|ns)"\s*:'
)
# When the request came in. Before GRPC_WAITREAD_END the server only waits for somebody to ask.
_ARRIVED = ("HTTP_RECV_START", "GRPC_WAITREAD_END", "REQUEST_START")
_GONE = ("HTTP_SEND_END", "GRPC_SEND_END", "REQUEST_END")


@dataclass
class _Trace:
    """Everything the file says of one id."""

    first: Item
    parent: int | None = None
    request_id: str | None = None
    model: str | None = None
    stamps: dict[str, int] = field(default_factory=dict)

    def stamp(self, name: str, ns: int) -> None:
        """A stamp that is told twice: the earliest start and the latest end count."""
        known = self.stamps.get(name, ns)
        self.stamps[name] = max(known, ns) if name.endswith("END") else min(known, ns)


def probe(head: Head) -> Claim:
    """An array whose objects have an ``id`` and named ``timestamps`` in ns."""
    if not head.data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"[", b"{")):
        return Claim(0, "it is no JSON array")
    if not _TELLING.search(head.data):
        return Claim(0, "it has no timestamps with name and ns")
    if not re.search(rb'"(?:REQUEST_START|QUEUE_START|queue start|request start)"', head.data):
        return Claim(0.6, "its timestamps are not those of Triton requests")
    return Claim(1, "")


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``request`` row of vantage engine a trace, in the order of their first records."""
    traces: dict[int, _Trace] = {}
    sink, records = Sink(), 0
    for item in items_of(file):
        records += 1
        if isinstance(item, Problem):
            sink.problems.append(item)
            continue
        try:
            _take(item, traces, sink)
        except Bad as bad:
            sink.problems.append(Problem(item.record, str(bad)))
    doubted = {problem.record for problem in sink.problems}
    for root, ids in _steps_of(traces).items():
        _row(file, root, [traces[one] for one in ids], sink, doubted)
    yield sink.batch(records)


def _take(item: Item, traces: dict[int, _Trace], sink: Sink) -> None:
    value = item.value
    number = int_or_none(value.get("id"))
    if number is None:
        raise Bad("a record without an 'id'")
    stamps = value.get("timestamps")
    if stamps is None and "model_name" not in value:
        if "tensor" not in value and "activity" not in value:
            raise Bad("neither timestamps, nor a model, nor a tensor")
        sink.ignored["tensor of a request"] += 1
        return
    trace = traces.setdefault(number, _Trace(Item(item.record, {}, item.text)))
    trace.parent = int_or_none(value.get("parent_id")) or trace.parent
    trace.request_id = text_or_none(value.get("request_id")) or trace.request_id
    trace.model = text_or_none(value.get("model_name")) or trace.model
    for stamp in stamps if isinstance(stamps, list) else ():
        name = text_or_none(stamp.get("name")) if isinstance(stamp, dict) else None
        ns = int_or_none(stamp.get("ns")) if isinstance(stamp, dict) else None
        if name is None or ns is None or ns < 0:
            raise Bad("a timestamp without a name, or whose ns is no whole number")
        if ns:
            trace.stamp(name.upper().replace(" ", "_"), ns)


def _steps_of(traces: dict[int, _Trace]) -> dict[int, list[int]]:
    """Root -> the ids that belong to it, itself first where it is there."""
    steps: dict[int, list[int]] = {}
    for number in traces:
        root, seen = number, {number}
        while (trace := traces.get(root)) and trace.parent is not None:
            if trace.parent in seen or trace.parent not in traces:
                break
            root = trace.parent
            seen.add(root)
        steps.setdefault(root, []).append(number)
    for root, ids in steps.items():
        ids.sort(key=lambda one: one != root)
    return steps


def _row(file: InputFile, root: int, traces: list[_Trace], sink: Sink, doubted: set[int]) -> None:
    trace = traces[0]
    record = trace.first.record
    stamps: dict[str, Any] = dict(trace.stamps)
    own = Milestones(stamps)
    e2e = own.between("e2e", own.first(*_ARRIVED), own.first(*_GONE))
    inside = own.span("request", "REQUEST_START", "REQUEST_END")
    sink.add(
        "request",
        record,
        vantage="engine",
        request_id=trace.request_id or local_id(file, trace.first, root),
        model=trace.model,
        clock="monotonic",
        timing="stamps",
        queue_ns=_queued(traces, own),
        frontend_ns=own.between("front end", inside, e2e),
        e2e_ns=e2e,
    )
    if (doubt := own.doubt()) and record not in doubted:
        sink.problems.append(Problem(record, doubt))


def _queued(traces: list[_Trace], own: Milestones) -> int | None:
    """How long a step of it waited; waits at the same time count once."""
    waits = []
    for trace in traces:
        begin, end = trace.stamps.get("QUEUE_START"), trace.stamps.get("COMPUTE_START")
        if begin is not None and own.between("queue", begin, end) is not None:
            waits.append((begin, end or begin))
    if not waits:
        return None
    total, until = 0, 0
    for begin, end in sorted(waits):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


READER = Reader(
    title="Triton server trace (JSON, mode=triton)",
    record_unit="record",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/user_guide/trace.html",
    cannot="when a request ran (a clock without a date); prefill, decode and TTFT: behind a "
    "TensorRT-LLM or vLLM backend its compute span only covers handing the request over; tokens; "
    "requests that were not sampled",
    enable="--trace-config level=TIMESTAMPS --trace-config rate=1 --trace-config mode=triton; for "
    "the phases of an LLM the backend's own metrics",
    checked_against="the example of its trace documentation",
)
