"""Screens of ``dcgmi dmon`` and ``nvidia-smi dmon``: a line a device and moment, in columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile
from analyzer.readers._gpu_rows import GpuSink, number, read_lines, whole
from analyzer.readers._gpu_samples import DMON, SMI_DMON, Counter, measured
from analyzer.readers._jsonl import Bad, Skip
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._times import time_to_ns, zone_note

_DCGM = re.compile(r"#\s*Entity\b(.*)")
_SMI = re.compile(r"#\s*((?:Date\s+)?(?:Time\s+)?gpu\b.*)", re.IGNORECASE)
_UNITS = re.compile(r"(?:#\s*(?:YYYY|HH:|Idx)|\s*ID\b).*", re.IGNORECASE)
_ROW = re.compile(r"\s*GPU(?:-I|-CI)?\s+(\d{1,5})\s+(.*)")
_TIMELESS = (
    "its lines have no times, so they tell how busy a device was, not when: nvidia-smi dmon -o DT "
    "writes them"
)
_HEADER, _OTHER = "header", "a line of an entity that is no device"


def probe(head: Head) -> Claim:
    """The header of either."""
    for line in head.lines[:20]:
        text = line.decode("utf-8", "replace")
        dcgm, smi = _DCGM.match(text), _SMI.match(text)
        if dcgm and set(dcgm[1].split()) & set(DMON):
            return Claim(1, "")
        if smi and len(set(smi[1].lower().split()) & set(SMI_DMON)) > 1:
            return Claim(1, "")
    return Claim(0, "no header of dcgmi dmon or nvidia-smi dmon")


@dataclass
class _Reading:
    zone: str | None
    columns: list[str] = field(default_factory=list)
    known: dict[str, Counter] = field(default_factory=dict)

    def take(self, line: str, record: int, sink: GpuSink) -> None:
        """One line; headers come again and again."""
        if match := _DCGM.match(line):
            self.columns, self.known = match[1].split(), DMON
            raise Skip(_HEADER)
        if match := _SMI.match(line):
            self.columns, self.known = match[1].lower().split(), SMI_DMON
            raise Skip(_HEADER)
        if _UNITS.fullmatch(line):
            raise Skip(_HEADER)
        row = self._smi(line) if self.known is SMI_DMON else self._dcgm(line)
        time_ns = None
        if "time" in row:
            told = f"{row.get('date', '')} {row['time']}".strip()
            if re.fullmatch(r"\d{8} .*", told):
                told = f"{told[:4]}-{told[4:6]}-{told[6:]}"
            if note := zone_note(told, self.zone):
                sink.assumed.add(note)
            time_ns = time_to_ns(told, self.zone)
        if time_ns is None:
            sink.assumed.add(_TIMELESS)
        device = whole(row.get("gpu"))
        if device is None or device < 0:
            raise Bad("a line without the number of a device")
        clock = {"clock": "wall"} if time_ns is not None else {}
        sink.add("gpu_sample", record, time_ns=time_ns, **clock, device=device, **self._values(row))

    def _values(self, row: dict[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, counter in self.known.items():
            value = measured(counter, number(row.get(name)))
            if value is not None and (counter.rank or counter.column not in found):
                found[counter.column] = value
        return found

    def _dcgm(self, line: str) -> dict[str, str]:
        if not self.columns:
            raise Bad("a line before any header")
        match = _ROW.fullmatch(line)
        if match is None:
            raise (
                Skip(_OTHER)
                if re.match(r"\s*(?:Switch|Link|CPU|Core)\b", line)
                else Bad("no line of a device")
            )
        return {"gpu": match[1]} | self._cells(match[2].split(), self.columns)

    def _smi(self, line: str) -> dict[str, str]:
        return self._cells(line.split(), self.columns)

    @staticmethod
    def _cells(cells: list[str], columns: list[str]) -> dict[str, str]:
        if len(cells) != len(columns):
            raise Bad(f"{len(cells)} cells where the header has {len(columns)}")
        return dict(zip(columns, cells, strict=True))


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``gpu_sample`` row a line."""
    return read_lines(file, _Reading(options.zone).take, options.zone)


READER = Reader(
    title="dcgmi dmon and nvidia-smi dmon",
    record_unit="line",
    gives=("gpu_sample",),
    probe=probe,
    read=read,
    docs="https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/; nvidia-smi dmon -h",
    cannot="times, unless nvidia-smi is asked for them; kernels; names of devices",
    enable="dcgmi dmon -e 1001,1002,1004,1005,155 -d 100; nvidia-smi dmon -s pucm -o DT",
    checked_against="columns as NVIDIA's documentation and published screens show them",
    facts=(
        ("bandwidth", "DRAMA is the share of cycles that moved data; mem of nvidia-smi is time "
         "with any traffic"),
    ),
)  # fmt: skip
