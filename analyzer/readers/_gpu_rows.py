"""What readers of profilers' text outputs share: lines with a state, any clock, extents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._csv_rows import cells_in
from analyzer.readers._file import InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip
from analyzer.readers._rows import believed, excerpt, tables_of
from analyzer.readers._times import DURATIONS

NO_TIME = "an event without a time, or a duration, that a trace can have"
RELATIVE = (
    "its times count from a moment it does not tell, so it stands beside requests by length only"
)
LONG_NS = 100_000
TELLING = re.compile(r"Launch|Memcpy|Memset|Graph|Synchronize")
"""Calls that are kept however short they are."""
SHORT_CALLS = "calls under 100 us that launch, copy and await nothing"
_DIGITS = re.compile(r"[-+]?\d{1,30}(?:\.\d{0,30})?(?:[eE][-+]?\d{1,3})?")
UNITS_NS = {
    "ns": 1, "nsec": 1, "nsecond": 1, "nanosecond": 1, "us": 1_000, "usec": 1_000,
    "usecond": 1_000, "microsecond": 1_000, "μs": 1_000, "µs": 1_000, "ms": 1_000_000,
    "msec": 1_000_000, "msecond": 1_000_000, "millisecond": 1_000_000, "s": 1_000_000_000,
    "sec": 1_000_000_000, "second": 1_000_000_000, "seconds": 1_000_000_000,
}  # fmt: skip
"""As profilers write units of time."""


@dataclass
class Extent:
    """First and last moment of a trace, and how many events of each kind it has."""

    first: int | None = None
    last: int | None = None
    kinds: Counter[str] = field(default_factory=Counter)

    def take(self, kind: str, start: int, dur: int) -> None:
        """One event."""
        self.first = start if self.first is None else min(self.first, start)
        self.last = start + dur if self.last is None else max(self.last, start + dur)
        self.kinds[kind] += 1

    def row(self, **told: Any) -> dict[str, Any]:  # noqa: ANN401
        """A ``gpu_trace`` row by a clock of its own."""
        dur = None if self.first is None or self.last is None else self.last - self.first
        return {
            "record": 1, "clock": "relative", "resolution_ns": 1, "start_ns": self.first,
            "dur_ns": dur if dur in DURATIONS else None, "ended": True,
            "device_events": sum(self.kinds[k] for k in ("kernel", "memcpy", "memset", "graph")),
            "launches": self.kinds["runtime"] + self.kinds["graph_launch"],
            "graph_launches": self.kinds["graph_launch"],
        } | told  # fmt: skip


class GpuSink(Sink):
    """Rows of profilers: their times are of any clock, so a small number may be a moment."""

    def add(self, table: str, record: int, **columns: Any) -> None:  # noqa: ANN401
        """One row; what cannot be is left out, and is a problem."""
        row = {"clock": "relative", **columns}
        if strange := believed(row):
            self.problems.append(Problem(record, strange))
        if "clock" not in columns:
            del row["clock"]
        self.rows.setdefault(table, []).append({"record": record, **row})

    def event(
        self, record: int, extent: Extent, kind: str, begin: int | None, end: int | None,
        **columns: Any,  # noqa: ANN401
    ) -> None:  # fmt: skip
        """One ``gpu_event`` row from its begin and end."""
        if begin not in DURATIONS or end is None or begin is None or end - begin not in DURATIONS:
            raise Bad(NO_TIME)
        extent.take(kind, begin, end - begin)
        self.add("gpu_event", record, kind=kind, start_ns=begin, dur_ns=end - begin, **columns)


def call_kind(name: str | None, dur: int) -> str:
    """Runtime or graph_launch; :class:`Skip` where it explains nothing."""
    if not name or not TELLING.search(name):
        if dur < LONG_NS:
            raise Skip(SHORT_CALLS)
        return "runtime"
    return "graph_launch" if "GraphLaunch" in name else "runtime"


Take = Callable[[str, int, GpuSink], None]


def read_lines(
    file: InputFile, take: Take, zone: str | None = None, last: Callable[[], Batch] | None = None
) -> Iterator[Batch]:
    """Calls ``take(line, record, sink)`` for each line; ``last`` gives what all of them come to."""
    for block in file.lines():
        sink = GpuSink(zone=zone)
        for index, line in enumerate(block.lines):
            record, told = block.first_record + index, len(sink.problems)
            try:
                if line.strip():
                    take(line.decode().rstrip("\r"), record, sink)
                else:
                    sink.ignored["blank line"] += 1
            except Skip as skip:
                sink.ignored[str(skip)] += 1
            except UnicodeDecodeError:
                sink.problems.append(Problem(record, "not valid UTF-8"))
            except Bad as bad:
                sink.problems.append(Problem(record, str(bad)))
            for at in range(told, len(sink.problems)):
                one = sink.problems[at]
                sink.problems[at] = Problem(record, one.reason, excerpt(line), block.starts[index])
        yield sink.batch(block.count)
    if last is not None:
        yield last()


def trace_batch(row: Mapping[str, Any], *notes: str) -> Batch:
    """The ``gpu_trace`` row of a source, where there was anything in it."""
    rows = tables_of(gpu_trace=[row]) if row.get("start_ns") is not None else {}
    return Batch(rows, assumed=tuple(note for note in notes if note and rows))


@dataclass
class Columns:
    """The header of a table: names in small letters, and where each stands."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, line: str) -> Columns:
        """From the header's line."""
        cells = cells_in(line.removeprefix("\ufeff").strip()) or ()
        return cls(tuple(cell.strip().lower() for cell in cells))

    def row(self, line: str) -> dict[str, str]:
        """The cells of a line by their column; :class:`Bad` where they do not fit."""
        cells = cells_in(line)
        if cells is None:
            raise Bad("its quotes do not fit: no valid CSV")
        if len(cells) != len(self.names):
            raise Bad(f"{len(cells)} cells where the header has {len(self.names)}")
        return {
            name: cell.strip() for name, cell in zip(self.names, cells, strict=True) if cell.strip()
        }


def number(text: str | None) -> Decimal | None:
    """A number exactly as it is written; None where it is none."""
    if text is None or not _DIGITS.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def whole(text: str | None) -> int | None:
    """A whole number; None where it is none."""
    found = number(text)
    if found is None or abs(found) >= 2**63 or found != found.to_integral_value():
        return None
    return int(found)


def scaled(text: str | None, factor: int) -> int | None:
    """A number times ``factor``, rounded to a whole one."""
    found = number(text)
    if found is None or abs(found) >= 2**63:
        return None
    product = (found * factor).to_integral_value()
    return int(product) if abs(product) < 2**63 else None


def product(*parts: int | None) -> int | None:
    """All axes multiplied; None where one is not told."""
    total = 1
    for part in parts:
        if part is None or part < 0:
            return None
        total *= part
    return total
