"""Native stream events: what a client saw of each streamed answer, event by event.

Chunks outnumber everything else a hundred to one, so they never become Python objects: a block of
lines is cut into columns by the shapes of its lines and summed up per request by Polars. Only the
few other events (send, done, error, headers) are looked at one by one. Requests that are still open
are carried from block to block, and over the end of the file for when it has grown.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from analyzer.contract.types import Batch, Problem, Resume
from analyzer.readers._fast_ahead import ahead
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._hints import Unused
from analyzer.readers._jsonl import objects
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import tables_of
from analyzer.readers._stream_lines import EVENTS, KNOWN, Parsed, parse_lines, shapes
from analyzer.readers._stream_requests import OpenRequests

_NEEDED = {"ts", "event"}


def probe(head: Head) -> Claim:
    """JSON lines with ``ts`` and one of our events."""
    some = objects(head)
    if not some:
        return Claim(0, "its first lines are not JSON objects")
    if any(one.keys() >= _NEEDED and one["event"] in EVENTS for one in some):
        return Claim(1, "")
    known = max(len(_NEEDED & one.keys()) for one in some)
    return Claim(0.4 * known, "its JSON lines have no 'ts' with an 'event' of send, chunk, done …")


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """Chunk rows as they come; a request row when it is done, or at the end of the file."""
    resume = options.resume
    requests = OpenRequests.restore(resume.state if resume else None, options.zone)
    offset, before = (resume.offset, resume.records) if resume else (0, 0)
    end, records = offset, before
    cut: tuple[int, ...] = ()
    blocks = file.lines(offset=offset, records_before=before)
    known = shapes()
    unused = Unused(KNOWN)
    for block, parsed in ahead(
        lambda block: (block, parse_lines(block, known, options.zone)), blocks
    ):
        unused.take(parsed.unknown)
        batch, good = _read_block(block, parsed, requests)
        yield batch
        if good:
            end, records = block.end, block.last_record
        else:  # the file ends inside its last line: that line is read again once it is whole
            end, records = block.offset, block.first_record - 1
            cut = (block.first_record,)
    provisional = requests.open_records() + cut
    state = requests.state()
    for rows in requests.finish():
        yield Batch(tables_of(request=rows))
    yield Batch(resume=Resume(end, records, provisional, state), assumed=unused.notes())


def _read_block(block: Lines, parsed: Parsed, requests: OpenRequests) -> tuple[Batch, bool]:
    problems = list(parsed.problems)
    good = True
    if block.unterminated and problems:
        good = False
        last = problems[0]
        problems = [
            Problem(last.record, "cut off: the file ends inside it", last.excerpt, last.byte_offset)
        ]
    chunks, late = requests.take_block(parsed.events, parsed.objects)
    ticks = parsed.events.filter(pl.col("event") == "tick")
    ticks = ticks.select("record", "client", time_ns="ts_ns")
    tables = tables_of(request=requests.closed(), **requests.lists())
    if chunks.height:
        tables["chunk"] = chunks.to_arrow()
    if ticks.height:
        tables["client_tick"] = ticks.to_arrow()
    problems += requests.problems()
    counts = {"blank line": parsed.blank, "event after the end of its request": late}
    ignored = {reason: count for reason, count in counts.items() if count}
    bad = len({problem.record for problem in problems})
    used = block.count - bad - parsed.blank - late
    assumed = tuple(sorted(parsed.assumed))
    return Batch(tables, block.count, used, ignored, tuple(problems), assumed), good


READER = Reader(
    title="Native stream events (JSON Lines)",
    record_unit="line",
    gives=("request", "chunk", "prompt_block", "prompt_part", "request_tag", "client_tick"),
    probe=probe,
    read=read,
    docs="schemas/native/stream-event.schema.json",
    cannot="queue and prefill: a client sees only their sum, with the network, as TTFT",
    enable="write 'emit' events on the server's side, or add the engine's spans to the case",
    checked_against="generated logs; a 200 MB one in benchmarks/",
)
