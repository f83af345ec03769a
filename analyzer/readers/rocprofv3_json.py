"""AMD's ``rocprofv3 --output-format json``: one document a process, all records in one.

Records name kernels, devices and calls by numbers, and the tables of those stand before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._file import BOM, Head, InputFile
from analyzer.readers._gpu_rows import (
    RELATIVE,
    Extent,
    GpuSink,
    call_kind,
    product,
    trace_batch,
)
from analyzer.readers._json_stream import Item, each_item
from analyzer.readers._jsonl import Bad, Skip
from analyzer.readers._kineto_facts import rank_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rocm_words import OTHERS, groups
from analyzer.readers._rows import clean, excerpt, int_or_none

_ROOT = "rocprofiler-sdk-tool"
_KEY = re.compile(rb'"rocprofiler-sdk-tool"\s*:')
_CALLS = ("hip_api", "hsa_api", "rccl_api")
_RECORDS = ("kernel_dispatch", "memory_copy", "marker_api", *_CALLS, *OTHERS)
_LISTS = frozenset(
    {(_ROOT,), *((_ROOT, "*", one) for one in ("agents", "kernel_symbols"))}
    | {(_ROOT, "*", "strings", one) for one in ("buffer_records", "marker_api")}
    | {(_ROOT, "*", "buffer_records", one) for one in _RECORDS}
)
_GPU = 2
_MOST_NAME = 8_000
_BATCH = 20_000
_OTHER = "records of memory, counters and samples, which no table takes"
_FACTS = "descriptions of devices, kernels and strings"


def probe(head: Head) -> Claim:
    """The key under which all of it stands."""
    if head.data.removeprefix(BOM).lstrip()[:1] == b"{" and _KEY.search(head.data[:4096]):
        return Claim(1, "")
    return Claim(0, "no JSON document of rocprofv3")


@dataclass
class _Process:
    """What numbers mean, in one process of the document."""

    rank: int | None
    pid: int | None = None
    kernels: dict[int, str] = field(default_factory=dict)
    devices: dict[int, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    products: set[str] = field(default_factory=set)
    operations: dict[int, list[Any]] = field(default_factory=dict)
    marks: dict[int, str] = field(default_factory=dict)
    extent: Extent = field(default_factory=Extent)

    def fact(self, path: tuple[str | int, ...], value: Any) -> None:  # noqa: ANN401
        """One description."""
        where = [one for one in path[2:] if isinstance(one, str)]
        if where == ["metadata"] and isinstance(value, dict):
            self.pid = int_or_none(value.get("pid"))
        elif where == ["agents"] and isinstance(value, dict):
            self._agent(value)
        elif where == ["kernel_symbols"] and isinstance(value, dict):
            key, name = int_or_none(value.get("kernel_id")), _name(value)
            if key is not None and name:
                self.kernels[key] = name
        elif where == ["strings", "buffer_records"] and isinstance(value, dict):
            operations = value.get("operations")
            # The number of a kind is its place in this list.
            self.operations[int(path[-1])] = operations if isinstance(operations, list) else []
        elif where == ["strings", "marker_api"] and isinstance(value, dict):
            key, text = int_or_none(value.get("key")), value.get("value")
            if key is not None and isinstance(text, str):
                self.marks[key] = clean(text)[:500]

    def _agent(self, value: dict[str, Any]) -> None:
        handle = _handle(value.get("id"))
        if handle is None or value.get("type") != _GPU:
            return
        place = int_or_none(value.get("logical_node_type_id"))
        self.devices[handle] = len(self.devices) if place is None else place
        told = value.get("product_name")
        if isinstance(told, str) and told:
            self.products.add(clean(told))

    def record(self, kind: str, value: Any, number: int, sink: GpuSink) -> None:  # noqa: ANN401
        """One record of a buffer."""
        if kind in OTHERS:
            raise Skip(_OTHER)
        if not isinstance(value, dict):
            raise Bad("a record that is no object")
        begin, end = (
            int_or_none(value.get("start_timestamp")),
            int_or_none(value.get("end_timestamp")),
        )
        if begin is None or end is None:
            raise Bad("a record without its times")
        correlation = value.get("correlation_id")
        told: dict[str, Any] = {
            "rank": self.rank,
            "correlation": int_or_none(correlation.get("internal"))
            if isinstance(correlation, dict)
            else None,
        }
        if kind == "kernel_dispatch":
            kind, more = "kernel", self._kernel(value)
        elif kind == "memory_copy":
            kind, more = "memcpy", self._copy(value)
        else:
            kind, more = self._call(kind, value, end - begin)
        sink.event(number, self.extent, kind, begin, end, **told, **more)

    def _kernel(self, value: dict[str, Any]) -> dict[str, Any]:
        info = value.get("dispatch_info")
        told = info if isinstance(info, dict) else {}
        blocks, items = _axes(told.get("workgroup_size")), _axes(told.get("grid_size"))
        return {
            "name": self.kernels.get(int_or_none(told.get("kernel_id")) or -1),
            "device": self.devices.get(_handle(told.get("agent_id")) or -1),
            "stream": _stream(value, told), "grid_blocks": groups(items, blocks),
            "block_threads": product(*blocks),
        }  # fmt: skip

    def _copy(self, value: dict[str, Any]) -> dict[str, Any]:
        ends = [_handle(value.get(one)) for one in ("dst_agent_id", "src_agent_id")]
        known = [self.devices[one] for one in ends if one in self.devices]
        size = int_or_none(value.get("bytes"))
        return {
            "name": self._operation(value), "device": known[0] if known else None,
            "stream": _handle(value.get("stream_id")),
            "bytes": None if size is None or size < 0 else size,
        }  # fmt: skip

    def _call(self, kind: str, value: dict[str, Any], dur: int) -> tuple[str, dict[str, Any]]:
        told = {"pid": self.pid, "tid": int_or_none(value.get("thread_id"))}
        if kind != "marker_api":
            name = self._operation(value)
            return call_kind(name, dur), told | {"name": name}
        correlation = value.get("correlation_id")
        key = int_or_none(correlation.get("internal")) if isinstance(correlation, dict) else None
        if dur == 0:
            raise Skip("a mark without a length")
        return "annotation", told | {"name": self.marks.get(-1 if key is None else key)}

    def _operation(self, value: dict[str, Any]) -> str | None:
        kind, place = int_or_none(value.get("kind")), int_or_none(value.get("operation"))
        names = self.operations.get(-1 if kind is None else kind, [])
        name = names[place] if place is not None and 0 <= place < len(names) else None
        return clean(name)[:500] if isinstance(name, str) else None


def _name(value: dict[str, Any]) -> str | None:
    names = (
        value.get(key) for key in ("formatted_kernel_name", "demangled_kernel_name", "kernel_name")
    )
    # Where there is no kernel, its name is printed as 0.
    return next(
        (clean(n)[:_MOST_NAME] for n in names if isinstance(n, str) and n not in ("", "0")), None
    )


def _handle(value: Any) -> int | None:  # noqa: ANN401
    found = value.get("handle") if isinstance(value, dict) else value
    number = int_or_none(found)
    return number if number is not None and 0 <= number < 2**53 else None


def _stream(value: dict[str, Any], told: dict[str, Any]) -> int | None:
    stream = _handle(value.get("stream_id"))
    return _handle(told.get("queue_id")) if stream is None else stream


def _axes(value: Any) -> list[int | None]:  # noqa: ANN401
    told = value if isinstance(value, dict) else {}
    return [int_or_none(told.get(axis)) for axis in "xyz"]


@dataclass
class _Reading:
    rank: int | None
    processes: dict[int, _Process] = field(default_factory=dict)

    def take(self, item: Item, number: int, sink: GpuSink) -> None:
        """One value of the document."""
        path = item.path
        place = path[1] if len(path) > 1 and isinstance(path[1], int) else 0
        process = self.processes.setdefault(place, _Process(self._rank(place)))
        if len(path) == 5 and path[2] == "buffer_records":
            process.record(str(path[3]), item.value, number, sink)
            return
        process.fact(path, item.value)
        raise Skip(_FACTS)

    def _rank(self, place: int) -> int | None:
        return self.rank if place == 0 else place

    def last(self, source: str | None) -> Iterator[Batch]:
        """A row for each process that did something."""
        for place, process in self.processes.items():
            name = next(iter(process.products)) if len(process.products) == 1 else None
            row = process.extent.row(
                rank=process.rank, rank_source=source if place == 0 else "process", vendor="amd",
                profiler="rocprofv3", device_name=name, devices=len(process.devices) or None,
            )  # fmt: skip
            yield trace_batch(row, RELATIVE)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """``gpu_event`` rows of every buffer, and ``gpu_trace``."""
    rank = rank_of({}, file.name)
    reading, sink, done, number = _Reading(rank.number), GpuSink(zone=options.zone), 0, 0
    if not file.head.data.strip():
        yield Batch()
        return
    for number, item in enumerate(each_item(file, _LISTS), 1):
        told = len(sink.problems)
        try:
            if item.broken:
                sink.problems.append(Problem(number, item.broken))
            else:
                reading.take(item, number, sink)
        except Skip as skip:
            sink.ignored[str(skip)] += 1
        except Bad as bad:
            sink.problems.append(Problem(number, str(bad)))
        for at in range(told, len(sink.problems)):
            shown = excerpt(item.value) if isinstance(item.value, str) else ""
            sink.problems[at] = Problem(number, sink.problems[at].reason, shown, item.offset)
        if number - done >= _BATCH:
            yield sink.batch(number - done)
            sink, done = GpuSink(zone=options.zone), number
    yield sink.batch(number - done)
    yield from reading.last(rank.source)


READER = Reader(
    title="rocprofv3, JSON",
    record_unit="value",
    gives=("gpu_event", "gpu_trace"),
    probe=probe,
    read=read,
    docs="https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/how-to/using-rocprofv3.html",
    cannot="wall time: it counts from the machine's start; calls under 100 us that launch, copy "
    "and await nothing; counters, allocations and samples; the command line, which is never read",
    enable="rocprofv3 --kernel-trace --memory-copy-trace --hip-runtime-trace --marker-trace "
    "--output-format json -- CMD",
    checked_against="a trace of an MI350X with 43,915 kernels; copies, calls and marks after AMD's "
    "source",
    undated=True,
)
