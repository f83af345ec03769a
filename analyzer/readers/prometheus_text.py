"""Scrapes of ``/metrics`` of vLLM, SGLang, TGI and llama.cpp: the text that Prometheus reads.

One scrape a file, or one after another. A scrape's time is its samples' own time stamps, else a
comment or line above it that holds one, else the time in the file's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from analyzer.contract.types import Batch, Problem
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._prometheus import (
    EXPOSITION,
    SAMPLE,
    SERVER_LINE,
    Slot,
    moment_ns,
    slot_of,
)
from analyzer.readers._prometheus_rows import Scrapes
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt
from analyzer.readers._times import time_to_ns

_MOST_SERIES = 50_000
_FORMAL = (b"# HELP ", b"# TYPE ", b"# UNIT ")
_DATE = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?\s*(?:Z|UTC|[+-]\d\d:?\d\d)?"
_NUMBER = r"\d{10}(?:\.\d+)?|\d{13}|\d{16}|\d{19}"
_IN_COMMENT = re.compile(_DATE)
_ALONE = re.compile(
    rf"[#\s=>*-]*(?:(?:scraped?|timestamp|time|date|ts|at|unix|epoch)\b[:=\s]*)*({_DATE}|{_NUMBER})"
    r"[\s=<*#-]*",
    re.IGNORECASE,
)
_IN_NAME = re.compile(
    r"(?<!\d)(20\d\d)[-_.]?(\d\d)[-_.]?(\d\d)[T_. -]?(\d\d)[-_:.]?(\d\d)[-_:.]?(\d\d)(?!\d)"
)
_NUMBER_IN_NAME = re.compile(r"(?<!\d)(1\d{9}|1\d{12})(?!\d)")
_TIMELESS = (
    "a scrape names no time: put one in a comment above it (# 2026-01-31T12:00:00Z) or in the "
    "file's name"
)


def probe(head: Head) -> Claim:
    """Lines of the exposition format, some with a metric of a model server."""
    if SERVER_LINE.search(head.data) and any(
        SAMPLE.fullmatch(line) or EXPOSITION.match(line) for line in head.lines[:50]
    ):
        return Claim(1, "")
    if EXPOSITION.search(head.data):
        return Claim(0.5, "it is a scrape, but of no vLLM, SGLang, TGI or llama.cpp server")
    return Claim(0, "it is no scrape of a /metrics page")


@dataclass
class _Reading:
    """Where reading stands: the scrape under way, and what is known of each series."""

    options: Options
    scrapes: Scrapes = field(default_factory=Scrapes)
    slots: dict[bytes, Slot | str] = field(default_factory=dict)
    zoneless: bool = False

    def time_of(self, text: str) -> int | None:
        """A time in a comment or name."""
        text = text.strip().replace("UTC", "Z")
        if re.fullmatch(_NUMBER, text):
            return moment_ns(text)
        ns = time_to_ns(text, self.options.zone)
        if ns is not None and not re.search(r"(?:Z|[+-]\d\d:?\d\d)$", text):
            self.zoneless = True
        return ns

    def line(self, line: bytes, record: int, sink: Sink) -> None:
        """One line; :class:`Bad` where it is none of the format."""
        if line.startswith(b"#"):
            self._comment(line, sink)
            return
        end = line.rfind(b"}") + 1 or line.find(b" ")
        slot = self.slots.get(line[:end]) if end > 0 else None
        if slot is None or b" # " in line:
            sample = SAMPLE.fullmatch(line)
            if sample is None:
                self._other(line, sink)
                return
            end = sample.end(2) if sample[2] is not None else sample.end(1)
            slot = self._slot(line[:end], sample)
        if isinstance(slot, str):
            sink.ignored[slot] += 1
            return
        parts = line[end:].split()
        self.scrapes.take(line[:end], slot, _value(parts), _own_time(parts), record, sink)

    def _slot(self, series: bytes, sample: re.Match[bytes]) -> Slot | str:
        slot = self.slots.get(series)
        if slot is None:
            if len(self.slots) >= _MOST_SERIES:
                self.slots.clear()
            labels = (sample[2] or b"").decode("utf-8", "replace")
            slot = self.slots[series] = slot_of(sample[1].decode(), labels)
        return slot

    def _comment(self, line: bytes, sink: Sink) -> None:
        if line.startswith(b"# EOF"):
            self.scrapes.flush(sink)
        elif not line.startswith(_FORMAL):
            text = line.decode("utf-8", "replace")
            found = _ALONE.fullmatch(text) or _IN_COMMENT.search(text)
            time_ns = self.time_of(found[found.lastindex or 0]) if found else None
            if time_ns is not None:
                self.scrapes.at(time_ns, sink)
                return
        sink.ignored["comment"] += 1

    def _other(self, line: bytes, sink: Sink) -> None:
        found = _ALONE.fullmatch(line.decode("utf-8", "replace"))
        time_ns = self.time_of(found[1]) if found else None
        if time_ns is None:
            raise Bad("no line of the exposition format: neither sample, comment nor time")
        self.scrapes.at(time_ns, sink)


def _value(parts: list[bytes]) -> float:
    try:
        return float(parts[0])
    except (ValueError, IndexError):
        raise Bad("its value is no number") from None


def _own_time(parts: list[bytes]) -> int | None:
    if len(parts) < 2 or parts[1] == b"#":
        return None
    ns = moment_ns(parts[1].decode("ascii", "replace"))
    if ns is None:
        raise Bad("its time stamp is no time from 1990 to 2199")
    return ns


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``engine_sample`` row an engine and scrape; a counter that fell is a restart."""
    reading = _Reading(options)
    named = _time_in_name(file.name, reading)
    reading.scrapes.time_ns = named
    for block in file.lines():
        sink = Sink()
        for record, (line, place) in enumerate(
            zip(block.lines, block.starts, strict=True), block.first_record
        ):
            _take(reading, line.strip(), record, place, block, sink)
        yield sink.batch(len(block.lines))
    sink = Sink()
    reading.scrapes.flush(sink)
    if reading.scrapes.timeless:
        sink.assumed.add(_TIMELESS)
    if named is not None:
        sink.assumed.add("the time in the file's name is that of its first scrape without another")
    if reading.zoneless:
        source = "as the option says" if options.zone else "for want of a better"
        sink.assumed.add(f"its times name no zone: {options.zone or 'UTC'} was taken, {source}")
    yield sink.batch(0)


def _take(
    reading: _Reading, line: bytes, record: int, place: int, block: Lines, sink: Sink
) -> None:
    if not line:
        sink.ignored["blank line"] += 1
        return
    cut = block.unterminated and record == block.last_record
    if cut and not line.startswith(b"#"):  # nobody can tell whether its number is whole
        reason = "cut off: the file ends inside it"
        sink.problems.append(Problem(record, reason, excerpt(line), place))
        return
    try:
        reading.line(line, record, sink)
    except Bad as bad:
        sink.problems.append(Problem(record, str(bad), excerpt(line), place))


def _time_in_name(name: str, reading: _Reading) -> int | None:
    stem = name.replace("\\", "/").rpartition("/")[2]
    if date := _IN_NAME.search(stem):
        year, month, day, hour, minute, second = date.groups()
        zulu = "Z" if stem[date.end() : date.end() + 1] == "Z" else ""
        return reading.time_of(f"{year}-{month}-{day}T{hour}:{minute}:{second}{zulu}")
    number = _NUMBER_IN_NAME.search(stem)
    return reading.time_of(number[1]) if number else None


READER = Reader(
    title="Prometheus scrapes of a model server (/metrics text)",
    record_unit="line",
    gives=("engine_sample", "engine_event"),
    probe=probe,
    read=read,
    docs="https://prometheus.io/docs/instrumenting/exposition_formats/",
    cannot="any one request: histograms give means over an interval; anything between two scrapes; "
    "rates and what a counter did, where each scrape is a file of its own; TGI: prefill, decode, "
    "KV cache; llama.cpp: latencies",
    enable='while sleep 5; do date -u +"# %FT%TZ"; curl -s HOST/metrics; done > scrapes.txt; '
    "SGLang --enable-metrics, llama-server --metrics",
    checked_against="two scrapes of vLLM 0.25.1; names of older and other servers after their "
    "source and documentation",
)
