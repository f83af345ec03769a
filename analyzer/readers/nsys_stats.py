"""Tables that ``nsys stats -f csv`` prints: several may follow each other, with words between.

``cuda_gpu_trace`` (``gputrace``) has an event a row, ``cuda_gpu_kern_sum`` (``gpukernsum``) totals
a kernel, ``nvtx_gpu_proj_trace`` NVTX ranges as they show on the device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from analyzer.contract.types import Batch
from analyzer.readers._csv_rows import cells_in
from analyzer.readers._file import Head, InputFile
from analyzer.readers._gpu_rows import (
    RELATIVE,
    UNITS_NS,
    Columns,
    Extent,
    GpuSink,
    product,
    read_lines,
    scaled,
    trace_batch,
    whole,
)  # fmt: skip
from analyzer.readers._jsonl import Bad, Skip
from analyzer.readers._kineto_facts import rank_of
from analyzer.readers._reader import Claim, Options, Reader

_TRACE = re.compile(r"^\"?Start \((\w+)\)\"?,\"?Duration \(\w+\)\"?,.*\bDevice\b.*,\"?Name\"?$")
_SUMS = re.compile(r"^\"?Time ?\(%\)\"?,\"?Total Time \((\w+)\)\"?,\"?Instances\"?,.*,\"?Name\"?$")
_RANGES = re.compile(
    r"^\"?Name\"?,\"?Projected Start \((\w+)\)\"?,\"?Projected Duration \(\w+\)\"?,"
)
_OTHER = re.compile(r"^\"?(?:Time ?\(%\)|Start \(\w+\)|Total \(\w+\)|Range|Count)\"?,.*[,(]")
_WORDS = re.compile(
    r"^\s*(?:NOTICE|Processing|It is assumed|Generat|Exporting|SKIPPED|WARN|Using|\*\*|[=\-]{3})|"
    r"(?:does not contain|could not be loaded|Existing SQLite export)"
)
_DEVICE = re.compile(r"(.*\S)?\s*\((\d{1,6})\)")
_COPY = re.compile(r"^\[CUDA (memcpy|memset|Unified Memory memcpy)")
_OTHER_TABLE = "a row of another table of nsys stats"
_HEADER, _TALK = "header", "what nsys says between its tables"


def probe(head: Head) -> Claim:
    """One of its headers, at the start or after its own words."""
    for line in head.lines[:200]:
        text = line.decode("utf-8", "replace")
        if _TRACE.match(text) or _SUMS.match(text) or _RANGES.match(text):
            return Claim(1, "")
    return Claim(0, "no header of cuda_gpu_trace, cuda_gpu_kern_sum or nvtx_gpu_proj_trace")


@dataclass
class _Reading:
    rank: int | None
    extent: Extent = field(default_factory=Extent)
    table: str = ""
    unit: int = 1
    columns: Columns = field(default_factory=lambda: Columns(()))
    devices: set[str] = field(default_factory=set)

    def take(self, line: str, record: int, sink: GpuSink) -> None:
        """One line of whichever table is under way."""
        for name, pattern in (("trace", _TRACE), ("sums", _SUMS), ("ranges", _RANGES)):
            if match := pattern.match(line.removeprefix("\ufeff").strip()):
                self.table, self.unit = name, UNITS_NS.get(match[1], 0)
                self.columns = Columns.of(line)
                if not self.unit:
                    self.table = ""
                    raise Bad(
                        "a header with a unit of time that is none: run it with --timeunit ns"
                    )
                raise Skip(_HEADER)
        if _WORDS.search(line) and not self._fits(line):
            raise Skip(_TALK)
        if _OTHER.match(line) and not line[:1].isdigit():
            self.table = "other"
            raise Skip(_HEADER)
        if self.table in ("", "other"):
            raise Skip(_OTHER_TABLE) if self.table else Bad("a line outside of any table")
        row = self.columns.row(line)
        cells = {name.partition(" (")[0]: cell for name, cell in row.items()}
        {"trace": self._event, "sums": self._sum, "ranges": self._range}[self.table](
            cells, record, sink
        )

    def _fits(self, line: str) -> bool:
        """A row of the table under way: ranges begin with names that may be any words."""
        return self.table == "ranges" and len(cells_in(line) or ()) == len(self.columns.names)

    def _moment(self, text: str | None) -> int | None:
        return scaled(text, self.unit)

    def _event(self, row: dict[str, str], record: int, sink: GpuSink) -> None:
        begin, dur = self._moment(row.get("start")), self._moment(row.get("duration"))
        name, told = row.get("name"), row.get("device")
        device = _DEVICE.fullmatch(told or "")
        if device and device[1]:
            self.devices.add(device[1])
        copy = _COPY.match(name or "")
        kind = "kernel" if copy is None else "memset" if copy[1] == "memset" else "memcpy"
        sink.event(
            record, self.extent, kind, begin, None if begin is None or dur is None else begin + dur,
            rank=self.rank, name=name, device=int(device[2]) if device else whole(told),
            stream=whole(row.get("strm")), correlation=whole(row.get("corrid")),
            grid_blocks=product(*(whole(row.get(f"grd{axis}")) for axis in "xyz")),
            block_threads=product(*(whole(row.get(f"blk{axis}")) for axis in "xyz")),
        )  # fmt: skip

    def _sum(self, row: dict[str, str], record: int, sink: GpuSink) -> None:
        total, calls = self._moment(row.get("total time")), whole(row.get("instances"))
        if total is None or calls is None or "name" not in row:
            raise Bad("totals without a time, a number of launches or a name")
        sink.add(
            "gpu_kernel_total", record, name=row["name"], measured="run", calls=calls,
            total_ns=total, min_ns=self._moment(row.get("min") or row.get("minimum")),
            max_ns=self._moment(row.get("max") or row.get("maximum")),
            grid_blocks=_volume(row.get("gridxyz")), block_threads=_volume(row.get("blockxyz")),
        )  # fmt: skip

    def _range(self, row: dict[str, str], record: int, sink: GpuSink) -> None:
        begin = self._moment(row.get("projected start"))
        dur = self._moment(row.get("projected duration"))
        sink.event(
            record, self.extent, "gpu_annotation", begin,
            None if begin is None or dur is None else begin + dur,
            rank=self.rank, name=(row.get("name") or "").lstrip(":") or None,
            pid=whole(row.get("pid")), tid=whole(row.get("tid")),
        )  # fmt: skip

    def last(self, source: str | None) -> Batch:
        """The trace as a whole."""
        name = next(iter(self.devices)) if len(self.devices) == 1 else None
        row = self.extent.row(
            rank=self.rank, rank_source=source, vendor="nvidia", profiler="nsys", device_name=name,
            resolution_ns=None,
        )  # fmt: skip
        return trace_batch(row, RELATIVE)


def _volume(text: str | None) -> int | None:
    """Three axes in one cell, as ``  128    1    1``."""
    parts = [whole(one) for one in re.split(r"[\s,x()]+", text or "") if one]
    return product(*parts) if len(parts) == 3 else None


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """``gpu_event`` rows of traces, ``gpu_kernel_total`` rows of sums."""
    rank = rank_of({}, file.name)
    reading = _Reading(rank.number)
    return read_lines(file, reading.take, options.zone, lambda: reading.last(rank.source))


READER = Reader(
    title="nsys stats, CSV (cuda_gpu_trace, cuda_gpu_kern_sum, nvtx_gpu_proj_trace)",
    record_unit="line",
    gives=("gpu_event", "gpu_kernel_total", "gpu_trace"),
    probe=probe,
    read=read,
    docs="https://docs.nvidia.com/nsight-systems/UserGuide/index.html (nsys stats, report scripts)",
    cannot="wall time: it counts from the session's begin; launches and host threads; bytes of "
    "copies, which it rounds; kernels of CUDA graphs recorded as a whole; when the kernels of a "
    "table of sums ran",
    enable="nsys stats -f csv --timeunit ns -r cuda_gpu_trace run.sqlite > trace.csv; the SQLite "
    "export itself tells more",
    checked_against="headers and rows that people published, of versions 2021 to 2025",
    facts=(("units", "each header names its unit; --timeunit changes it"),),
    undated=True,
)
