"""``nvidia-smi --query-gpu=... --format=csv -l``: a row a device and moment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile
from analyzer.readers._gpu_rows import GpuSink, number, read_lines, whole
from analyzer.readers._gpu_samples import SMI, measured
from analyzer.readers._jsonl import Bad, Skip
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._times import zone_note

_UNIT = re.compile(r"\s*\[[^\]]{1,8}\]$")
_VALUE = re.compile(r"([-+]?[\d.]+)\s*(%|MiB|W|MHz|C)?")
_NONE = re.compile(
    r"\[?(?:N/A|Not Supported|Unknown Error|GPU is lost|Insufficient Permissions)\]?"
)
_STAMP = re.compile(r"(\d{4})/(\d\d)/(\d\d) (.*)")
_MARKS = {"index", "uuid", "gpu_uuid", "name", "gpu_name", "timestamp", "pci.bus_id", "gpu_bus_id"}
_TIMELESS = "its rows have no timestamp: ask for it, --query-gpu=timestamp,index,..."


def probe(head: Head) -> Claim:
    """A header made of its fields."""
    names = _names(_first(head))
    known = sum(1 for name in names if name in SMI)
    marked = any(name in _MARKS for name in names)
    if known and (marked or known == len(names)) and any("." in name for name in names):
        return Claim(1, "")
    return Claim(0, "no header of nvidia-smi --query-gpu")


def _first(head: Head) -> str:
    return head.lines[0].decode("utf-8", "replace") if head.lines else ""


def _names(header: str) -> list[str]:
    return [_UNIT.sub("", cell.strip().strip('"')).lower() for cell in header.split(",")]


@dataclass
class _Reading:
    header: str
    names: list[str]
    zone: str | None

    def take(self, line: str, record: int, sink: GpuSink) -> None:
        """One row; the header comes again where files were put together."""
        if line.strip() == self.header:
            raise Skip("header")
        cells = [cell.strip().strip('"') for cell in line.split(",")]
        if len(cells) != len(self.names):
            raise Bad(f"{len(cells)} cells where the header has {len(self.names)}")
        row = dict(zip(self.names, cells, strict=True))
        time_ns = self._time(row.get("timestamp"), sink)
        found: dict[str, Any] = {}
        for name, counter in SMI.items():
            text = row.get(name)
            if not text or _NONE.fullmatch(text):
                continue
            match = _VALUE.fullmatch(text)
            if match is None:
                raise Bad(f"{name!r} is no number")
            value = measured(counter, number(match[1]))
            if value is not None and (counter.rank or counter.column not in found):
                found[counter.column] = value
        called = row.get("name") or row.get("gpu_name")
        clock = {"clock": "wall"} if time_ns is not None else {}
        sink.add(
            "gpu_sample", record, time_ns=time_ns, **clock, device=whole(row.get("index")),
            device_id=row.get("uuid") or row.get("gpu_uuid") or None, device_name=called or None,
            **found,
        )  # fmt: skip

    def _time(self, text: str | None, sink: GpuSink) -> int | None:
        if text is None:
            sink.assumed.add(_TIMELESS)
            return None
        match = _STAMP.fullmatch(text)
        told = f"{match[1]}-{match[2]}-{match[3]} {match[4]}" if match else text
        if note := zone_note(told, self.zone):
            sink.assumed.add(note)
        return sink.needed_time("timestamp", told)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``gpu_sample`` row a row."""
    header = _first(file.head)
    reading = _Reading(header.removeprefix("\ufeff"), _names(header), options.zone)
    return read_lines(file, reading.take, options.zone)


READER = Reader(
    title="nvidia-smi --query-gpu, CSV",
    record_unit="line",
    gives=("gpu_sample",),
    probe=probe,
    read=read,
    docs="https://docs.nvidia.com/deploy/nvidia-smi/index.html; nvidia-smi --help-query-gpu",
    cannot="bandwidth: utilization.memory is the time with any memory traffic; anything between "
    "two samples; the zone of its times; kernels",
    enable="nvidia-smi --query-gpu=timestamp,index,uuid,name,utilization.gpu,utilization.memory,"
    "memory.used,memory.total,power.draw,clocks.sm,temperature.gpu --format=csv -lms 500",
    checked_against="fields of nvidia-smi's own help and published outputs, with and without units",
    facts=(("zone", "times are the machine's own, without a zone: --zone tells it"),),
)
