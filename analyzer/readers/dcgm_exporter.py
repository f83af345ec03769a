"""Scrapes of NVIDIA's ``dcgm-exporter``: Prometheus text with DCGM fields of each device.

A scrape's time is its samples' own time stamps, else a comment above it that holds one, else the
time in the file's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile
from analyzer.readers._gpu_rows import GpuSink, number, read_lines, whole
from analyzer.readers._gpu_samples import EXPORTER, measured
from analyzer.readers._jsonl import Bad, Skip
from analyzer.readers._prometheus import SERVER_LINE, moment_ns
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import clean, tables_of
from analyzer.readers._times import time_to_ns, zone_note

_LINE = re.compile(
    r"(DCGM_[A-Z0-9_]{1,100})(?:\{(.{0,4000})\})?\s+([-+]?[0-9.eE+-]{1,40}|[-+]?(?:NaN|Inf))"
    r"(?:\s+(\d{10,19}))?\s*"
)
_ANY = re.compile(r"[A-Za-z_:][\w:]*(?:\{.*\})?\s+\S+(?:\s+\d+)?\s*")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_OURS = re.compile(rb"^DCGM_(?:FI|EXP)_\w+(?:\{|\s)", re.MULTILINE)
_DATE = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?\s*(?:Z|UTC|[+-]\d\d:?\d\d)?"
_COMMENT = re.compile(rf"#.*?({_DATE}|\b\d{{10}}(?:\.\d+)?\b|\b\d{{13}}\b)")
_IN_NAME = re.compile(
    r"(?<!\d)(20\d\d)[-_.]?(\d\d)[-_.]?(\d\d)[T_. -]?(\d\d)[-_:.]?(\d\d)[-_:.]?(\d\d)(?!\d)"
)
_FORMAL = ("# HELP ", "# TYPE ", "# UNIT ")
_MOST_POINTS = 10_000
_TIMELESS = (
    "a scrape names no time: put one in a comment above it (# 2026-01-31T12:00:00Z) or in the "
    "file's name"
)
_OTHER, _NOTE = "a metric that no column takes", "comment"


def probe(head: Head) -> Claim:
    """Lines with DCGM fields, and none of a model server."""
    if not _OURS.search(head.data):
        return Claim(0, "no DCGM fields in the text that Prometheus reads")
    if SERVER_LINE.search(head.data):
        return Claim(0.5, "it has DCGM fields beside those of a model server: that one is read")
    return Claim(1, "")


_Key = tuple[str, str, int | None]


@dataclass
class _Reading:
    zone: str | None
    in_name: str | None
    """The time in the file's name."""
    time_ns: int | None = None
    points: dict[_Key, dict[str, Any]] = field(default_factory=dict)
    ranks: dict[tuple[_Key, str], int] = field(default_factory=dict)
    seen: set[tuple[str, str, int | None]] = field(default_factory=set)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def take(self, line: str, record: int, sink: GpuSink) -> None:
        """One line; a series that comes again begins the next scrape."""
        text = line.strip()
        if text.startswith("#"):
            self._comment(text, sink)
        match = _LINE.fullmatch(text)
        if match is None:
            raise Skip(_OTHER) if _ANY.fullmatch(text) else Bad("no line of a scrape")
        counter = EXPORTER.get(match[1])
        if counter is None:
            raise Skip(_OTHER)
        own = moment_ns(match[4]) if match[4] else None
        series = (match[1], match[2] or "", own)
        if series in self.seen or len(self.points) >= _MOST_POINTS:
            self.flush(sink)
        self.seen.add(series)
        labels = dict(_LABEL.findall(match[2] or ""))
        place = labels.get("UUID") or labels.get("uuid") or labels.get("gpu", "")
        key = (f"{place}/{labels.get('GPU_I_ID', '')}", labels.get("Hostname", ""), own)
        point = self.points.setdefault(key, self._point(labels, record, own))
        value = measured(counter, number(match[3]))
        if value is not None and self.ranks.get((key, counter.column), -1) <= counter.rank:
            point[counter.column] = value
            self.ranks[key, counter.column] = counter.rank

    def _point(self, labels: dict[str, str], record: int, own: int | None) -> dict[str, Any]:
        gpu = whole(labels.get("gpu"))
        return {
            "record": record, "own": own, "host": _text(labels.get("Hostname")),
            "device": gpu if gpu is not None and 0 <= gpu < _MOST_POINTS else None,
            "device_id": _text(labels.get("UUID") or labels.get("uuid")),
            "device_name": _text(labels.get("modelName")),
        }  # fmt: skip

    def _comment(self, text: str, sink: GpuSink) -> None:
        found = None if text.startswith(_FORMAL) else _COMMENT.match(text)
        if found:
            told = found[1].strip().replace("UTC", "Z")
            ns = moment_ns(told) if told[:4].isdigit() and told[4:5].isdigit() else None
            if ns is None:
                ns = self._zoned(told, sink)
            if ns is not None:
                self.flush(sink)
                self.time_ns = ns
        raise Skip(_NOTE)

    def _zoned(self, told: str, sink: GpuSink) -> int | None:
        """A date and time, in the zone that is assumed where it names none."""
        ns, note = time_to_ns(told, self.zone), zone_note(told, self.zone)
        if ns is not None and note:
            sink.assumed.add(note)
        return ns

    def flush(self, sink: GpuSink) -> None:
        """Rows of the scrape that is over."""
        for point in self.points.values():
            own = point.pop("own")
            time_ns = self.time_ns if own is None else own
            if time_ns is None and self.in_name is not None:
                time_ns = self._zoned(self.in_name, sink)
            record = point.pop("record")
            clock = {"clock": "wall"} if time_ns is not None else {}
            sink.add("gpu_sample", record, time_ns=time_ns, **clock, **point)
            if time_ns is None:
                sink.assumed.add(_TIMELESS)
        self.points.clear()
        self.ranks.clear()
        self.seen.clear()
        self.time_ns = None

    def last(self) -> Batch:
        """The scrape under way when the file ends."""
        sink = GpuSink(zone=self.zone)
        self.flush(sink)
        return Batch(tables_of(**sink.rows), assumed=tuple(sorted(sink.assumed)))


def _text(value: str | None) -> str | None:
    return clean(value)[:200] if value else None


def _name_time(name: str) -> str | None:
    match = _IN_NAME.search(name)
    if match is None:
        return None
    year, month, day, hour, minute, second = match.groups()
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}"


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``gpu_sample`` row a device and scrape."""
    reading = _Reading(options.zone, _name_time(file.name))
    return read_lines(file, reading.take, options.zone, reading.last)


READER = Reader(
    title="dcgm-exporter scrapes (Prometheus text)",
    record_unit="line",
    gives=("gpu_sample",),
    probe=probe,
    read=read,
    docs="https://docs.nvidia.com/datacenter/dcgm/latest/gpu-telemetry/dcgm-exporter.html",
    cannot="kernels; anything between two scrapes; profiling fields while Nsight holds the "
    "counters, and those the exporter is not told to give",
    enable='while sleep 1; do date -u +"# %FT%TZ"; curl -s HOST:9400/metrics; done > dcgm.txt; '
    "DCGM_FI_PROF_DRAM_ACTIVE and DCGM_FI_PROF_SM_ACTIVE in the exporter's list of counters",
    checked_against="names and units of the exporter's own lists of counters; label sets of "
    "published scrapes",
    facts=(
        ("bandwidth", "DCGM_FI_PROF_DRAM_ACTIVE is the share of cycles that moved data; "
         "MEM_COPY_UTIL is time with any traffic"),
        ("blank", "DCGM's marks for no value become NULL"),
    ),
)  # fmt: skip
