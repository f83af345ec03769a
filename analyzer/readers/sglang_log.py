"""SGLang's text log: the scheduler's batches, request time stats and, where asked for, requests.

One stream carries them all, so a request may be told twice: by the scheduler when it is done with
it, and by the API server a moment later. Both lines make one row.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa

from analyzer.contract.types import Batch, Problem, Resume
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._jsonl import Bad, Skip
from analyzer.readers._pending import Pending
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt, tables_of
from analyzer.readers._sglang_events import events_of
from analyzer.readers._sglang_lines import (
    BATCHES,
    EVENTS,
    HOT,
    RECEIVED,
    REQUESTS,
    lines_of,
    messages_of,
    values_of,
)
from analyzer.readers._sglang_request_log import Taken, rows_of, take

_TELLING = re.compile(
    rb"(?:Prefill|Decode) batch(?:[.,]| \[\d+\],) #|Req ?Time ?Stats\(rid="
    rb"|(?:Receive|Finish): obj=GenerateReqInput\("
    rb"|\{\"timestamp\": ?\"[^\"]*\", ?\"event\": ?\"(?:request\.(?:rec|fin)|scheduler\.status)"
    rb"|^\[\d{4}-\d\d-\d\d [^\]]{8,40}\] max_total_num_tokens=\d"
)
_PREFIX = re.compile(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: [A-Z]+\d+)*\] ")
_SAMPLE = (
    "record", "time_ns", "clock", "engine", "running", "waiting", "kv_used_ratio",
    "prompt_tokens_per_s", "generation_tokens_per_s", "prefix_hit_ratio", "capacity_tokens",
)  # fmt: skip
# The two lines about a request are at most as many requests apart as a server runs at a time.
_HELD = 2_000
_CUT = "cut off: the file ends inside it"
_BIASED = (
    "far fewer requests finish in it than are received: it may leave fast ones out "
    "(SGLANG_LOG_REQUEST_EXCEEDED_MS), so its latencies may be those of slow ones"
)


def probe(head: Head) -> Claim:
    """Text lines with SGLang's prefix, or one of its telling lines."""
    if any(_TELLING.search(line) for line in head.lines):
        return Claim(1, "")
    prefixed = sum(bool(_PREFIX.search(line)) for line in head.lines)
    if prefixed >= 3 and b"sglang" in head.data.lower():
        return Claim(1, "")
    if prefixed:
        return Claim(0.6, "its lines look like SGLang's, but none tells numbers or names SGLang")
    return Claim(0, "it has no line of an SGLang server")


@dataclass
class _Log:
    """What is carried from block to block."""

    zone: str
    said: str
    pending: Pending
    received: int = 0
    finished: int = 0
    assumed: set[str] = field(default_factory=set)

    def state(self) -> list[Any]:
        """JSON-able, for when the file has grown."""
        return [self.received, self.finished, self.pending.state()]


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """Samples and events as they come; a request row once both its lines have come."""
    resume = options.resume
    offset, before = (resume.offset, resume.records) if resume else (0, 0)
    received, finished, parts = resume.state if resume else (0, 0, None)
    said = "as the option says" if options.zone else "for want of a better"
    log = _Log(options.zone or "UTC", said, Pending(_HELD, parts), received, finished)
    end: tuple[int, int, tuple[int, ...]] | None = (offset, before, ())
    for block in file.lines(offset=offset, records_before=before):
        batch = _read_block(block, log)
        yield batch
        last = block.last_record
        if not block.unterminated:
            end = block.end, last, ()
        elif batch.ignored:  # nobody can tell what this line becomes: the file is read anew
            end = None
        else:
            end = block.offset, last - 1, (last,)
    rows = [row for parts in log.pending.rest() for row in rows_of(parts)]
    if log.received >= 20 and log.finished < 0.8 * log.received:
        log.assumed.add(_BIASED)
    stop = None
    if end is not None:
        provisional = tuple(sorted({*(row["record"] for row in rows), *end[2]}))
        stop = Resume(end[0], end[1], provisional, log.state())
    assumed = tuple(sorted(log.assumed))
    yield Batch(tables_of(request=rows), assumed=assumed, resume=stop)


def _read_block(block: Lines, log: _Log) -> Batch:
    lines = lines_of(block.lines, block.first_record)
    hot = lines.filter(pl.col("kind").is_in(HOT))
    cold = lines.filter(~pl.col("kind").is_in(HOT)).group_by("kind").len()
    messages = messages_of(hot, log.zone)
    if messages["time_ns"].is_not_null().any() or (messages["kind"] == "json").any():
        log.assumed.add(f"its times name no zone: {log.zone} was taken, {log.said}")
    ignored = Counter(dict(cold.iter_rows()))
    log.received += ignored[RECEIVED]
    if block.unterminated and hot.height:  # nobody can tell whether its last value is whole
        record = block.first_record
        problem = Problem(record, _CUT, excerpt(block.lines[0]), block.offset)
        return Batch({}, 1, 0, {}, (problem,))
    told = values_of(messages.filter(pl.col("kind").is_in(BATCHES)))
    told = told.with_columns(clock=pl.lit("wall"))
    good = (pl.col("good") & pl.col("time_ns").is_not_null()).fill_null(value=False)
    problems = _unread(told.filter(~good), block)
    samples = told.filter(good).select(_SAMPLE)
    events, states = events_of(messages.filter(pl.col("kind").is_in(EVENTS)))
    more, failed = _requests(messages.filter(pl.col("kind").is_in(REQUESTS)), block, log, ignored)
    rows = [row for parts in log.pending.settled() for row in rows_of(parts)]
    tables = tables_of(engine_event=events, request=rows, engine_sample=[*states, *more])
    tables |= _with(samples, tables.get("engine_sample"))
    problems = sorted(problems + failed, key=lambda one: one.record)
    used = len(block.lines) - ignored.total() - len(problems)
    counts = {reason: count for reason, count in ignored.items() if count}
    assumed = tuple(sorted(log.assumed))
    return Batch(tables, len(block.lines), used, counts, tuple(problems), assumed)


def _with(samples: pl.DataFrame, more: pa.Table | None) -> dict[str, pa.Table]:
    """Samples of scheduler lines, which come by the million, and the few others."""
    tables = [table for table in (samples.to_arrow() if samples.height else None, more) if table]
    if not tables:
        return {}
    return {"engine_sample": pa.concat_tables(tables, promote_options="permissive")}


def _requests(
    messages: pl.DataFrame, block: Lines, log: _Log, ignored: Counter[str]
) -> tuple[list[dict[str, Any]], list[Problem]]:
    """Adds parts to the pending requests; samples of the scheduler, and problems."""
    samples, problems = [], []
    columns = ("record", "kind", "text", "message", "time_ns")
    for record, kind, text, message, time_ns in messages.select(columns).iter_rows():
        try:
            taken = take(kind, text, message, time_ns, log.zone)
        except Skip as skip:
            ignored[str(skip)] += 1
            log.received += str(skip) == RECEIVED
            continue
        except Bad as bad:
            taken = Taken(strange=str(bad))
        if taken.sample:
            samples.append({"record": record, **taken.sample})
        if taken.part:
            log.pending.add(taken.part["request_id"], {"record": record, **taken.part})
            log.finished += kind != "stats"
        if taken.assumed:
            log.assumed.add(taken.assumed)
        if taken.strange:
            index = record - block.first_record
            shown = excerpt(block.lines[index])
            problems.append(Problem(record, taken.strange, shown, block.starts[index]))
    return samples, problems


def _unread(bad: pl.DataFrame, block: Lines) -> list[Problem]:
    found = []
    for record, good in bad.select("record", "good").iter_rows():
        index = record - block.first_record
        reason = (
            "a line with values, but without a time that exists"
            if good
            else "a scheduler line whose values cannot be read"
        )
        found.append(Problem(record, reason, excerpt(block.lines[index]), block.starts[index]))
    return found


READER = Reader(
    title="SGLang server log (text, with request log and time stats)",
    record_unit="line",
    gives=("engine_sample", "engine_event", "request"),
    probe=probe,
    read=read,
    docs="https://docs.sglang.ai/advanced_features/observability.html",
    cannot="the zone; less than a second (SGLANG_LOG_MS); anything between two decode lines (40 "
    "steps apart); prefill and decode of a request apart from time stats; on a prefill line the "
    "running requests are those before it, its throughput is over the time since the last one, "
    "and its hit ratio is that of its batch; disaggregated workers tell a request in two rows",
    enable="--enable-request-time-stats-logging for queue times; --enable-metrics with "
    "--export-metrics-to-file, or --log-requests --log-requests-format json, for the whole; "
    "--decode-log-interval 1 for a line a step",
    checked_against="server logs of SGLang 0.5.12; lines of other versions after its source",
)
