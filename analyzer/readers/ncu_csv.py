"""CSV of Nsight Compute: kernels launched again one by one, with their hardware counters.

``--page raw`` has a row a kernel and its units in the row below the header, other pages a row a
metric. Numbers are written as the locale has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile
from analyzer.readers._gpu_rows import (
    UNITS_NS,
    Columns,
    GpuSink,
    number,
    product,
    read_lines,
    whole,
)
from analyzer.readers._jsonl import Bad, Skip
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import tables_of

_NEEDED = {"id", "kernel name"}
_LONG = {"metric name", "metric unit", "metric value"}
_TALK = re.compile(r"^(?:==(?:PROF|WARNING|ERROR|CONNECTED|DISCONNECTED)==)")
_CELL = re.compile(r'"([^"]*)"')
_SIZES = {"byte": 1, "kbyte": 10**3, "mbyte": 10**6, "gbyte": 10**9, "tbyte": 10**12}
_DURATION = ("gpu__time_duration.sum", "Duration")
_BYTES = ("dram__bytes.sum",)
_PARTS = ("dram__bytes_read.sum", "dram__bytes_write.sum")
_DRAM = ("dram__throughput.avg.pct_of_peak_sustained_elapsed", "DRAM Throughput")
_SM = ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "Compute (SM) Throughput")
_WANTED = frozenset((*_DURATION, *_BYTES, *_PARTS, *_DRAM, *_SM))
_AMBIGUOUS = (
    "a number such as 117.344 that may be a fraction or thousands: print the report again with "
    "--print-units base and LC_ALL=C"
)
_UNITS_ROW, _OTHER = "units of the columns", "a metric that no column takes"


def probe(head: Head) -> Claim:
    """Its header, at the start or after ==PROF== lines."""
    return Claim(1, "") if _header(head) else Claim(0, "no header of an Nsight Compute CSV")


def _header(head: Head) -> Columns | None:
    for line in head.lines[:200]:
        text = line.decode("utf-8", "replace")
        if text.startswith('"ID"') and '"Kernel Name"' in text:
            return Columns.of(text)
    return None


def marks(texts: list[str]) -> tuple[str, str] | None:
    """(mark of thousands, mark of fractions) that these numbers prove; None where none does."""
    for text in texts:
        if text.count(",") > 1 or re.fullmatch(r"\d{1,3}(?:,\d{3})+\.\d+", text):
            return ",", "."
        if text.count(".") > 1 or re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+", text):
            return ".", ","
    for text in texts:
        single = re.fullmatch(r"\d+([.,])(\d+)", text)
        if single and (
            len(single[2]) != 3 or len(text.partition(single[1])[0]) > 3 or text[0] == "0"
        ):
            return (",", ".") if single[1] == "." else (".", ",")
    return None


@dataclass
class _Kernel:
    record: int
    told: dict[str, str]
    values: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass
class _Reading:
    style: tuple[str, str] | None
    columns: Columns | None = None
    units: dict[str, str] | None = None
    open: _Kernel | None = None

    def take(self, line: str, record: int, sink: GpuSink) -> None:
        """One line."""
        text = line.strip().removeprefix("\ufeff")
        if _TALK.match(text):
            raise Skip("what ncu says while it runs")
        if text.startswith('"ID"') and '"Kernel Name"' in text:
            self.flush(sink)
            self.columns, self.units = Columns.of(text), None
            raise Skip("header")
        if self.columns is None:
            raise (
                Skip("output of the program")
                if not text.startswith('"')
                else Bad("a row before the header")
            )
        row = self.columns.row(text)
        if set(self.columns.names) >= _LONG:
            self._metric(row, record, sink)
        elif self.units is None and "id" not in row:
            self.units = row
            raise Skip(_UNITS_ROW)
        else:
            self._wide(row, record, sink)

    def _metric(self, row: dict[str, str], record: int, sink: GpuSink) -> None:
        if "id" not in row:
            raise Bad("a metric without the number of its kernel")
        if self.open is None or self.open.told.get("id") != row["id"]:
            self.flush(sink)
            self.open = _Kernel(record, row)
        name = row.get("metric name", "")
        if name not in _WANTED:
            raise Skip(_OTHER)
        self.open.values[name] = row.get("metric value", ""), row.get("metric unit", "")

    def _wide(self, row: dict[str, str], record: int, sink: GpuSink) -> None:
        units = self.units or {}
        kernel = _Kernel(record, row)
        kernel.values = {
            name: (row[name.lower()], units.get(name.lower(), ""))
            for name in _WANTED if name.lower() in row
        }  # fmt: skip
        self._row(kernel, sink)

    def flush(self, sink: GpuSink) -> None:
        """The kernel whose metrics came row by row."""
        kernel, self.open = self.open, None
        if kernel is not None and kernel.values:
            self._row(kernel, sink)

    def _row(self, kernel: _Kernel, sink: GpuSink) -> None:
        size = self._first(kernel, _BYTES, _SIZES)
        parts = [self._first(kernel, (one,), _SIZES) for one in _PARTS]
        if size is None and all(part is not None for part in parts):
            size = sum((part for part in parts if part is not None), Decimal(0))
        dur = self._first(kernel, _DURATION, UNITS_NS)
        told = kernel.told
        columns: dict[str, Any] = {
            "name": told.get("kernel name"), "measured": "replay", "calls": 1,
            "device": whole(told.get("device")), "total_ns": None if dur is None else round(dur),
            "dram_bytes": None if size is None else float(size),
            "dram_busy_ratio": self._share(kernel, _DRAM),
            "sm_busy_ratio": self._share(kernel, _SM),
            "grid_blocks": _volume(told.get("grid size")),
            "block_threads": _volume(told.get("block size")),
        }  # fmt: skip
        sink.add("gpu_kernel_total", kernel.record, **columns)

    def _first(
        self, kernel: _Kernel, names: tuple[str, ...], units: dict[str, int]
    ) -> Decimal | None:
        for name in names:
            text, unit = kernel.values.get(name, ("", ""))
            factor = units.get(unit.lower())
            if text and factor is None:
                raise Bad(f"{name!r} in a unit that is not known: use --print-units base")
            if text and factor is not None:
                return self._number(text) * factor
        return None

    def _share(self, kernel: _Kernel, names: tuple[str, ...]) -> float | None:
        text, unit = next(
            (kernel.values[name] for name in names if name in kernel.values), ("", "")
        )
        if not text or unit != "%":
            return None
        # More than all of it is what replays in several passes come to.
        return float(min(Decimal(1), self._number(text) / 100))

    def _number(self, text: str) -> Decimal:
        plain = text
        if re.search(r"[.,]", text):
            if self.style is None:
                raise Bad(_AMBIGUOUS)
            thousands, fraction = self.style
            plain = text.replace(thousands, "").replace(fraction, ".")
        found = number(plain)
        if found is None or found < 0:
            raise Bad("a metric without a number")
        return found

    def last(self) -> Batch:
        """The kernel under way when the file ends."""
        sink = GpuSink()
        try:
            self.flush(sink)
        except Bad as bad:
            return Batch(assumed=(f"its last kernel was left out: {bad}",))
        return Batch(tables_of(**sink.rows))


def _volume(text: str | None) -> int | None:
    """Three axes, as ``(128, 1, 1)``."""
    parts = [whole(one.strip()) for one in (text or "").strip("() ").split(",")]
    return product(*parts) if len(parts) == 3 else None


def _style(head: Head, columns: Columns | None) -> tuple[str, str] | None:
    """How this file writes numbers, by those in its first 64 KiB."""
    texts: list[str] = []
    for line in head.lines:
        cells = _CELL.findall(line.decode("utf-8", "replace"))
        if columns is not None and len(cells) == len(columns.names):
            rows = dict(zip(columns.names, cells, strict=True))
            long = "metric value" in rows
            values = [rows["metric value"]] if long else [v for k, v in rows.items() if "__" in k]
            texts += [value for value in values if re.fullmatch(r"[\d.,]+", value)]
    return marks(texts)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``gpu_kernel_total`` row a kernel that was measured."""
    reading = _Reading(_style(file.head, _header(file.head)))
    return read_lines(file, reading.take, options.zone, reading.last)


READER = Reader(
    title="Nsight Compute, CSV",
    record_unit="line",
    gives=("gpu_kernel_total",),
    probe=probe,
    read=read,
    docs="https://docs.nvidia.com/nsight-compute/NsightComputeCli/index.html",
    cannot="time of a step: each kernel is launched again alone, with locked clocks and cleared "
    "caches; when it ran; numbers whose marks are ambiguous",
    enable="LC_ALL=C ncu --csv --page raw --print-units base --metrics gpu__time_duration.sum,"
    "dram__bytes.sum,dram__throughput.avg.pct_of_peak_sustained_elapsed CMD > kernels.csv",
    checked_against="headers and rows that people published, of both shapes and three locales",
    facts=(("numbers", "the marks of thousands and fractions are decided once for a file"),),
    undated=True,
)
