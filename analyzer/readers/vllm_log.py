"""vLLM's text log: the engine's state every few seconds, among much that tells no numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from analyzer.contract.types import Batch, Problem, Resume
from analyzer.readers._fast_ahead import ahead
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt, tables_of
from analyzer.readers._times import year_that_fits
from analyzer.readers._vllm_lines import HOT, lines_of, messages_of, times_of, values_of

_TELLING = re.compile(rb"Avg prompt throughput: [\d.]+ tokens/s|KV cache size: [\d,]+ tokens")
_PREFIX = re.compile(rb"\b(?:INFO|WARNING|DEBUG) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./]+:\d+\] ")
_SAMPLE = (
    "record", "time_ns", "clock", "engine", "running", "waiting", "swapped", "kv_used_ratio",
    "prompt_tokens_per_s", "generation_tokens_per_s", "prefix_hit_ratio", "preemptions",
    "capacity_tokens",
)  # fmt: skip


def probe(head: Head) -> Claim:
    """Text lines with vLLM's prefix, or its status line."""
    lines = [line for line in head.lines if not line.startswith((b"{", b"["))]
    if any(_TELLING.search(line) for line in lines):
        return Claim(1, "")
    prefixed = sum(bool(_PREFIX.search(line)) for line in lines)
    if prefixed >= 3 and b"vllm" in head.data.lower():
        return Claim(1, "")
    if prefixed:
        return Claim(0.6, "its lines look like vLLM's, but none is a status line or names vLLM")
    return Claim(0, "it has no line of a vLLM engine")


@dataclass
class _Calendar:
    """Gives lines without a year one; a log that crosses New Year goes on counting."""

    options: Options
    year: int | None = None
    month: int | None = None
    assumed: set[str] = field(default_factory=set)

    @property
    def zone(self) -> str:
        return self.options.zone or "UTC"

    def years(self, messages: pl.DataFrame) -> pl.Series:
        """The year of each line that names none."""
        bare = messages.filter(pl.col("year").is_null() & pl.col("month").is_not_null())
        if bare.height and self.year is None:
            self.year = self._first_year(bare)
        months = messages["month"].cast(pl.Int64)
        steps = []
        for month in months:
            if month is not None:
                if self.month is not None and self.year is not None and abs(month - self.month) > 6:
                    self.year += 1 if month < self.month else -1
                self.month = month
            steps.append(self.year)
        if (
            messages.select(pl.col("month").is_not_null() & pl.col("offset").is_null())
            .to_series()
            .any()
        ):
            source = "as the option says" if self.options.zone else "for want of a better"
            self.assumed.add(f"its times name no zone: {self.zone} was taken, {source}")
        return pl.Series(steps, dtype=pl.Int64)

    def _first_year(self, bare: pl.DataFrame) -> int:
        month, day, time = bare.select("month", "day", "time").row(0)
        hour, minute, second = map(int, time.split(":"))
        options = self.options
        if options.year is not None:
            year, why = options.year, "as the option says"
        else:
            stamp = (int(month), int(day), hour, minute, second)
            year = year_that_fits(stamp, options.zone, options.reference_ns, options.today_ns)
            near = options.reference_ns is not None
            why = "nearest to the dated logs of the case" if near else "the newest that fits"
        self.assumed.add(f"its times name no year: {year} was taken, {why}")
        return year


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """Engine samples and events; everything else is counted by kind."""
    resume = options.resume
    offset, before = (resume.offset, resume.records) if resume else (0, 0)
    year, month = resume.state if resume else (None, None)
    calendar = _Calendar(options, year, month)
    end = resume
    blocks = file.lines(offset=offset, records_before=before)
    for block, hot, cold in ahead(_sorted_out, blocks):
        state = [calendar.year, calendar.month]
        batch = _read_block(block, hot, cold, calendar)
        yield batch
        last = block.last_record
        if not block.unterminated:
            end = Resume(block.end, last, (), [calendar.year, calendar.month])
        elif batch.ignored:  # nobody can tell what this line becomes: the file is read anew
            end = None
        else:
            end = Resume(block.offset, last - 1, (last,), state)
    yield Batch(resume=end)


def _sorted_out(block: Lines) -> tuple[Lines, pl.DataFrame, dict[str, int]]:
    """The messages with values, and how many lines of each other kind there are."""
    lines = lines_of(block)
    hot = lines.filter(pl.col("kind").is_in(HOT))
    cold = lines.filter(~pl.col("kind").is_in(HOT)).group_by("kind").len()
    return block, values_of(messages_of(hot)), dict(cold.iter_rows())


def _read_block(
    block: Lines, messages: pl.DataFrame, ignored: dict[str, int], calendar: _Calendar
) -> Batch:
    told = times_of(messages, calendar.years(messages), calendar.zone)
    told = told.with_columns(clock=pl.lit("wall"))
    timed = pl.col("good") & pl.col("time_ns").is_not_null()
    is_event = pl.col("kind").is_in(["preemption", "abort"])
    if block.unterminated:  # nobody can tell whether an id, or a number without a unit, is whole
        timed = timed & ~is_event & ~pl.col("message").str.contains(r": [\d.]+$")
    samples = told.filter(timed & ~is_event).select(_SAMPLE)
    tables = tables_of(engine_event=_events(told.filter(timed & is_event)))
    if samples.height:
        tables["engine_sample"] = samples.to_arrow()
    problems = _problems(told.filter(~timed.fill_null(value=False)), block)
    assumed = tuple(sorted(calendar.assumed))
    used = told.height - len(problems)
    return Batch(tables, block.count, used, ignored, problems, assumed)


def _events(messages: pl.DataFrame) -> list[dict[str, Any]]:
    rows = []
    columns = ("record", "time_ns", "engine", "kind", "message")
    for record, time_ns, engine, kind, message in messages.select(columns).iter_rows():
        if kind == "abort":
            ids = (
                message.partition(" request")[2].removeprefix("(s)").strip().rstrip(".").split(",")
            )
        else:
            ids = [message.removeprefix("Sequence group ").partition(" ")[0]]
        same = {"record": record, "time_ns": time_ns, "engine": engine, "kind": kind}
        rows += [{**same, "request_id": one.strip() or None} for one in ids]
    return rows


def _problems(bad: pl.DataFrame, block: Lines) -> tuple[Problem, ...]:
    found = []
    for record, good, timeless in bad.select(
        "record", "good", pl.col("time_ns").is_null()
    ).iter_rows():
        index = record - block.first_record
        if block.unterminated:
            reason = "cut off: the file ends inside it"
        elif good and timeless:
            reason = "a line with values, but without a time that exists"
        else:
            reason = "a status line whose values cannot be read"
        found.append(Problem(record, reason, excerpt(block.lines[index]), block.starts[index]))
    return tuple(found)


READER = Reader(
    title="vLLM engine log (text)",
    record_unit="line",
    gives=("engine_sample", "engine_event"),
    probe=probe,
    read=read,
    docs="https://docs.vllm.ai/en/stable/design/metrics.html",
    cannot="the times of any one request; anything between two status lines (10 s apart); the "
    "year, the zone and less than a second",
    enable="VLLM_LOG_STATS_INTERVAL=1 for a line a second; --otlp-traces-endpoint for the times of "
    "each request",
    checked_against="server logs of vLLM 0.22.1 and 0.25.1; V0 lines after its source",
    undated=True,
)
