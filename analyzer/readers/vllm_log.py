"""vLLM's log: the engine's state every few seconds, its steps, its start, and what went wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from analyzer.contract.types import Batch, Problem, Resume
from analyzer.readers._fast_ahead import ahead
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt, tables_of
from analyzer.readers._times import year_that_fits
from analyzer.readers._vllm_events import KINDS as EVENTS
from analyzer.readers._vllm_events import events_of
from analyzer.readers._vllm_lines import (
    ENGINE,
    HOT,
    STATES,
    lines_of,
    messages_of,
    times_of,
    values_of,
)
from analyzer.readers._vllm_setup import Setup
from analyzer.readers._vllm_steps import SPECULATION, STEP, TOO_QUICK_NS, speculation_of, steps_of

_TELLING = re.compile(
    rb"Avg prompt throughput: [\d.]+ tokens/s|KV cache size: [\d,]+ tokens"
    rb"|\bIteration\(\d+\)[^:]{0,40}: \d+ context requests, \d+ context tokens"
)
_PREFIX = re.compile(rb"\b(?:INFO|WARNING|DEBUG) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./]+:\d+\] ")
_JSON = re.compile(
    rb'\{"asctime": ?"[^"]*", ?"levelname": ?"[A-Z]+", ?"name": ?"(?:vllm|uvicorn)[\w.]*", ?'
    rb'"processName": ?"'
)
_SAMPLE = (
    "record", "time_ns", "clock", "engine", "running", "waiting", "swapped", "kv_used_ratio",
    "prompt_tokens_per_s", "generation_tokens_per_s", "prefix_hit_ratio", "preemptions",
    "capacity_tokens", "deferred", "kv_fetching", "corrupted", "external_hit_ratio", "mm_hit_ratio",
)  # fmt: skip
_CUT = "cut off: the file ends inside it"
_SAID = {"step": "step", "speculation": "speculation"}
_AHEAD = (
    "some of its steps took no time at all: it schedules ahead (asynchronous scheduling), and the "
    "times of its steps are only what was left to wait for"
)


def probe(head: Head) -> Claim:
    """Text lines with vLLM's prefix, or its status line; or its records as JSON."""
    if any(_JSON.match(line) for line in head.lines):
        return Claim(1, "")
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
        months = messages["month"].cast(pl.Int64).forward_fill().rle().struct.unnest()
        years: list[int | None] = []
        for length, month in months.select("len", "value").iter_rows():
            if month is not None:
                if self.month is not None and self.year is not None and abs(month - self.month) > 6:
                    self.year += 1 if month < self.month else -1
                self.month = month
            years += [self.year] * length
        if messages.select(
            (pl.col("month").is_not_null() & pl.col("offset").is_null()).any()
        ).item():
            source = "as the option says" if self.options.zone else "for want of a better"
            self.assumed.add(f"its times name no zone: {self.zone} was taken, {source}")
        return pl.Series(years, dtype=pl.Int64)

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


class _Log:
    """What is carried from block to block; all of it can be JSON."""

    def __init__(self, options: Options) -> None:
        year, month, setup = options.resume.state if options.resume else (None, None, {})
        self.calendar = _Calendar(options, year, month)
        self.setup = Setup(**setup)

    def state(self) -> list[Any]:
        return [self.calendar.year, self.calendar.month, asdict(self.setup)]

    def open_records(self) -> tuple[int, ...]:
        """The start whose row may still change."""
        return () if self.setup.record is None else (self.setup.record,)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """Samples, steps, events and what is told of the deployment; the rest is counted by kind."""
    resume = options.resume
    offset, before = (resume.offset, resume.records) if resume else (0, 0)
    log = _Log(options)
    end = resume
    blocks = file.lines(offset=offset, records_before=before)
    for block, hot, cold in ahead(_sorted_out, blocks):
        state, unsettled = log.state(), log.open_records()
        batch = _read_block(block, hot, cold, log)
        yield batch
        last = block.last_record
        if not block.unterminated:
            end = Resume(block.end, last, log.open_records(), log.state())
        elif batch.ignored:  # nobody can tell what this line becomes: the file is read anew
            end = None
        else:
            end = Resume(block.offset, last - 1, (*unsettled, last), state)
    row = log.setup.row()
    rows = [{"record": row[0], **row[1]}] if row else []
    yield Batch(tables_of(deployment=rows), resume=end)


def _sorted_out(block: Lines) -> tuple[Lines, pl.DataFrame, dict[str, int]]:
    """The messages with values, and how many lines of each other kind there are."""
    lines = lines_of(block)
    hot = lines.filter(pl.col("kind").is_in(HOT))
    cold = lines.filter(~pl.col("kind").is_in(HOT)).group_by("kind").len()
    messages = messages_of(hot)
    is_step, is_speculation = pl.col("kind") == "step", pl.col("kind") == "speculation"
    states = values_of(messages.filter(~is_step & ~is_speculation))
    parts = [
        states,
        *(steps_of(part) for part in [messages.filter(is_step)] if part.height),
        *(speculation_of(part) for part in [messages.filter(is_speculation)] if part.height),
    ]
    told = pl.concat(parts, how="diagonal").sort("record") if len(parts) > 1 else states
    return block, told, dict(cold.iter_rows())


def _read_block(block: Lines, messages: pl.DataFrame, cold: dict[str, int], log: _Log) -> Batch:
    calendar, ignored = log.calendar, Counter(cold)
    told = times_of(messages, calendar.years(messages), calendar.zone)
    told = told.with_columns(clock=pl.lit("wall"))
    starts, problems = _starts(told, block, log, ignored)
    told = told.filter(pl.col("kind") != "setup")
    timed = pl.col("good") & pl.col("time_ns").is_not_null() & (pl.col("kind") != "json")
    is_state = pl.col("kind").is_in(STATES)
    if block.unterminated:  # nobody can tell whether an id, or a number without a unit, is whole
        timed = timed & is_state & ~pl.col("message").str.contains(r": [\d.]+$")
    good = told.filter(timed)
    tables = tables_of(engine_event=events_of(good.filter(pl.col("kind").is_in(list(EVENTS)))))
    tables |= tables_of(deployment=starts)
    samples = [good.filter(is_state).select(_SAMPLE)]
    speculation = good.filter(pl.col("kind") == "speculation")
    if speculation.height:
        samples.append(speculation.select(SPECULATION))
    if any(part.height for part in samples):
        tables["engine_sample"] = pl.concat(samples, how="diagonal").sort("record").to_arrow()
    steps = good.filter(pl.col("kind") == "step")
    if steps.height:
        if (steps["dur_ns"] < TOO_QUICK_NS).any():
            calendar.assumed.add(_AHEAD)
        tables["engine_step"] = steps.select(STEP).to_arrow()
    problems += _problems(told.filter(~timed.fill_null(value=False)), block)
    problems.sort(key=lambda one: one.record)
    assumed = tuple(sorted(calendar.assumed))
    counts = {reason: count for reason, count in ignored.items() if count}
    used = block.count - ignored.total() - len(problems)
    return Batch(tables, block.count, used, counts, tuple(problems), assumed)


def _starts(
    told: pl.DataFrame, block: Lines, log: _Log, ignored: Counter[str]
) -> tuple[list[dict[str, Any]], list[Problem]]:
    """Rows of starts that are over, in the order of their lines; adds to the one under way."""
    rows: list[dict[str, Any]] = []
    lines = told.filter(pl.col("kind").is_in(["setup", "size"]))
    for record, kind, message in lines.select("record", "kind", "message").iter_rows():
        if block.unterminated:  # its last value may be cut
            if kind == "setup":
                return rows, [_problem(record, _CUT, block)]
        elif kind == "size":
            log.setup.size(message or "")
        else:
            used, done = log.setup.take(record, message or "")
            ignored[ENGINE] += not used
            rows += [{"record": done[0], **done[1]}] if done else []
    if log.setup.engines > 1:
        log.calendar.assumed.add(
            f"max_num_seqs holds for each of {log.setup.engines} data-parallel engines"
        )
    return rows, []


def _problems(bad: pl.DataFrame, block: Lines) -> list[Problem]:
    found = []
    columns = ("record", "kind", "good", "time_ns")
    for record, kind, good, time_ns in bad.select(columns).iter_rows():
        if block.unterminated:
            reason = _CUT
        elif kind == "json":
            reason = "not valid JSON"
        elif good and time_ns is None:
            reason = "a line with values, but without a time that exists"
        else:
            reason = f"a {_SAID.get(kind, 'status')} line whose values cannot be read"
        found.append(_problem(record, reason, block))
    return found


def _problem(record: int, reason: str, block: Lines) -> Problem:
    index = record - block.first_record
    return Problem(record, reason, excerpt(block.lines[index]), block.starts[index])


READER = Reader(
    title="vLLM engine log (text, or its records as JSON)",
    record_unit="line",
    gives=("engine_sample", "engine_step", "engine_event", "deployment"),
    probe=probe,
    read=read,
    docs="https://docs.vllm.ai/en/stable/design/metrics.html",
    cannot="the times of any one request; anything between two status lines (10 s apart) without "
    "its steps; the year, the zone and less than a second (its JSON records tell the year and "
    "milliseconds); when an access line was written, failed ones included; how long a step took "
    "where it schedules ahead; bytes of the weights (what loading took holds more than them)",
    enable="VLLM_LOG_STATS_INTERVAL=1 for a line a second; --enable-logging-iteration-details for "
    "a line a step; --logging-config.formatter json for times of access lines; "
    "--otlp-traces-endpoint for the times of each request",
    checked_against="server logs of vLLM 0.22.1 and 0.25.1; V0 lines, steps, speculation and JSON "
    "records after its source",
    undated=True,
)
