"""CSV files of AMD's ``rocprofv3``: kernels, copies, calls, markers, statistics, counters.

Headers changed from release to release and when CSV is made from a database: columns are found by
their names in small letters. All times are nanoseconds since the machine started.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile
from analyzer.readers._gpu_rows import (
    RELATIVE,
    Columns,
    Extent,
    GpuSink,
    call_kind,
    number,
    product,
    read_lines,
    trace_batch,
    whole,
)  # fmt: skip
from analyzer.readers._jsonl import Bad, Skip
from analyzer.readers._kineto_facts import rank_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rocm_words import groups

_KINDS = {
    "kernel": {
        "kernel_name",
        "dispatch_id",
        "start_timestamp",
        "end_timestamp",
        "workgroup_size_x",
    },
    "copy": {"direction", "source_agent_id", "destination_agent_id", "start_timestamp"},
    "call": {"domain", "function", "process_id", "thread_id", "start_timestamp", "end_timestamp"},
    "sums": {"name", "calls", "totaldurationns", "percentage"},
    "counter": {"kernel_name", "counter_name", "counter_value", "dispatch_id"},
}
_AGENT = re.compile(r"(?:agent\s*)?(\d{1,9})", re.IGNORECASE)
_BYTES = {"FETCH_SIZE": 1024, "WRITE_SIZE": 1024, "FETCH_SIZE_SUM": 1024, "WRITE_SIZE_SUM": 1024}
"""Derived counters of traffic to device memory; their unit is the kibibyte."""
_OTHER_COUNTER = "a counter that no table takes"
_INSTANT = "a mark without a length"


def probe(head: Head) -> Claim:
    """One of its headers."""
    kind = _kind(Columns.of(_first(head)))
    return Claim(1, "") if kind else Claim(0, "no header of a file of rocprofv3")


def _first(head: Head) -> str:
    return head.lines[0].decode("utf-8", "replace") if head.lines else ""


def _kind(columns: Columns) -> str:
    return next((kind for kind, needed in _KINDS.items() if needed <= set(columns.names)), "")


@dataclass
class _Reading:
    rank: int | None
    header: str
    columns: Columns
    kind: str
    extent: Extent = field(default_factory=Extent)

    def take(self, line: str, record: int, sink: GpuSink) -> None:
        """One row of the file's only table."""
        if not self.kind:
            raise Bad("no table of rocprofv3: its header lacks the columns of one")
        if line.strip().removeprefix("\ufeff") == self.header:
            raise Skip("header")
        row = self.columns.row(line)
        takes = {
            "kernel": self._kernel, "copy": self._copy, "call": self._call, "sums": self._sums,
            "counter": self._counter,
        }  # fmt: skip
        takes[self.kind](row, record, sink)

    def _kernel(self, row: dict[str, str], record: int, sink: GpuSink) -> None:
        blocks = [whole(row.get(f"workgroup_size_{axis}")) for axis in "xyz"]
        items = [whole(row.get(f"grid_size_{axis}")) for axis in "xyz"]
        sink.event(
            record, self.extent, "kernel", whole(row.get("start_timestamp")),
            whole(row.get("end_timestamp")), rank=self.rank, name=row.get("kernel_name"),
            device=_agent(row.get("agent_id")),
            stream=whole(row.get("stream_id") or row.get("queue_id")),
            correlation=whole(row.get("correlation_id")) or None, grid_blocks=groups(items, blocks),
            block_threads=product(*blocks),
        )  # fmt: skip

    def _copy(self, row: dict[str, str], record: int, sink: GpuSink) -> None:
        way = row.get("direction") or ""
        # The host has no device work of its own: the end that is a device did the copy.
        ends = ("source_agent_id", "destination_agent_id")
        own = ends[0] if way.upper().endswith("TO_HOST") else ends[1]
        name = way if way.startswith("MEMORY_COPY") or not way else f"MEMORY_COPY_{way}"
        sink.event(
            record, self.extent, "memcpy", whole(row.get("start_timestamp")),
            whole(row.get("end_timestamp")), rank=self.rank, name=name or None,
            device=_agent(row.get(own)), stream=whole(row.get("stream_id")),
            correlation=whole(row.get("correlation_id")) or None,
        )  # fmt: skip

    def _call(self, row: dict[str, str], record: int, sink: GpuSink) -> None:
        begin, end = whole(row.get("start_timestamp")), whole(row.get("end_timestamp"))
        name = row.get("function")
        if begin is None or end is None:
            raise Bad("a call without its times")
        if row.get("domain", "").upper().startswith("MARKER"):
            if begin == end:
                raise Skip(_INSTANT)
            kind = "annotation"
        else:
            kind = call_kind(name, end - begin)
        sink.event(
            record, self.extent, kind, begin, end, rank=self.rank, name=name,
            correlation=whole(row.get("correlation_id")) or None, pid=whole(row.get("process_id")),
            tid=whole(row.get("thread_id")),
        )  # fmt: skip

    def _sums(self, row: dict[str, str], record: int, sink: GpuSink) -> None:
        total, calls = whole(row.get("totaldurationns")), whole(row.get("calls"))
        if total is None or calls is None or "name" not in row:
            raise Bad("totals without a time, a number of launches or a name")
        sink.add(
            "gpu_kernel_total", record, name=row["name"], measured="run", calls=calls,
            total_ns=total, min_ns=whole(row.get("minns")), max_ns=whole(row.get("maxns")),
        )  # fmt: skip

    def _counter(self, row: dict[str, str], record: int, sink: GpuSink) -> None:
        size = _BYTES.get(row.get("counter_name", "").upper())
        if size is None:
            raise Skip(_OTHER_COUNTER)
        value = number(row.get("counter_value"))
        if value is None or value < 0:
            raise Bad("a counter without a value")
        sink.add(
            "gpu_kernel_total", record, name=row.get("kernel_name"), measured="run", calls=1,
            device=_agent(row.get("agent_id")), dram_bytes=float(value * size),
            block_threads=whole(row.get("workgroup_size")),
        )  # fmt: skip

    def last(self, source: str | None) -> Batch:
        """The file as a trace."""
        row = self.extent.row(
            rank=self.rank, rank_source=source, vendor="amd", profiler="rocprofv3"
        )
        return trace_batch(row, RELATIVE)


def _agent(text: str | None) -> int | None:
    match = _AGENT.fullmatch((text or "").strip())
    return int(match[1]) if match else None


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """``gpu_event`` rows, or ``gpu_kernel_total`` rows of statistics and counters."""
    rank, header = rank_of({}, file.name), _first(file.head)
    columns = Columns.of(header)
    reading = _Reading(rank.number, header, columns, _kind(columns))
    return read_lines(file, reading.take, options.zone, lambda: reading.last(rank.source))


READER = Reader(
    title="rocprofv3, CSV (kernel_trace, memory_copy_trace, hip_api_trace, marker_api_trace, ...)",
    record_unit="line",
    gives=("gpu_event", "gpu_kernel_total", "gpu_trace"),
    probe=probe,
    read=read,
    docs="https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/how-to/using-rocprofv3.html",
    cannot="wall time: it counts from the machine's start; bytes of copies; which call launched a "
    "kernel, for calls stand in another file; calls under 100 us that launch, copy and await "
    "nothing; counters other than FETCH_SIZE and WRITE_SIZE",
    enable="rocprofv3 --kernel-trace --memory-copy-trace --hip-runtime-trace --marker-trace "
    "--output-format csv -- CMD; --output-format json has all in one file",
    checked_against="the examples of AMD's documentation (2024) and headers of later releases",
    facts=(
        ("devices", "numbers of agents, in which processors count too"),
        ("grids", "are told in work-items and are turned into work-groups"),
    ),
    undated=True,
)
