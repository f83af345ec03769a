"""Cursor's usage export (CSV): one event a row, tokens beside what they cost or were worth."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from analyzer.contract.types import Batch, Problem
from analyzer.readers._cursor import Event, dollars, kind_of, person
from analyzer.readers._file import BOM, Head, InputFile
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt

_TOKENS = {
    "Input (w/ Cache Write)": "cache_write_unknown_tokens",
    "Input (w/o Cache Write)": "input_fresh_tokens",
    "Cache Read": "cache_read_tokens",
    "Output Tokens": "output_visible_tokens",
}
_NEEDED = ("Date", "Kind", "Model", *_TOKENS)
_COSTS = ("Cost", "Cost ($)", "Cost to you")
_HEADER, _BLANK = "header", "blank line"
_COUNT = re.compile(r"\d{1,19}")
_MAX_CELL = 10_000
_NOT_THE_SUM = "the total of tokens is not the sum of its parts"


def probe(head: Head) -> Claim:
    """A CSV header with Cursor's names of token columns."""
    if not head.lines or b"Cache Write)" not in head.lines[0]:
        return Claim(0, "its first line is no header of Cursor's usage export")
    names = _cells(head.lines[0])
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        share = 1 - len(missing) / len(_NEEDED)
        return Claim(0.8 * share, f"its header lacks {', '.join(missing)}")
    return Claim(1, "")


def _cells(line: bytes) -> list[str]:
    text = line.removeprefix(BOM).decode("utf-8", "replace").rstrip("\r")
    try:
        return [cell.strip() for cell in next(csv.reader([text], strict=True), [])]
    except csv.Error:
        return []


class _Export:
    """The rows of one file, each under the names of its header."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def take(self, line: bytes, record: int, sink: Sink) -> None:
        cells = _cells(line)
        if not self.names:
            if missing := [name for name in _NEEDED if name not in cells]:
                raise Bad(f"its header lacks {', '.join(missing)}")
            self.names = cells
            sink.ignored[_HEADER] += 1
            return
        if len(cells) != len(self.names):
            raise Bad("it has another number of cells than the header")
        if max(map(len, cells)) > _MAX_CELL:
            raise Bad("a cell longer than any of such an export")
        self._event(dict(zip(self.names, cells, strict=True)), record, sink)

    def _event(self, row: dict[str, str], record: int, sink: Sink) -> None:
        start = sink.needed_time("Date", row["Date"])
        usage = {ours: _count(row[name], name) for name, ours in _TOKENS.items()}
        total = _count(row.get("Total Tokens", ""), "Total Tokens")
        parts = list(usage.values())
        fits = total is None or None in parts or total == sum(part or 0 for part in parts)
        cost = next((row[name] for name in _COSTS if name in row), "")
        Event(
            start_ns=start,
            kind=kind_of(row["Kind"]),
            model=row["Model"] or None,
            session=row.get("Cloud Agent ID") or None,
            usage=usage,
            contradiction=None if fits else _NOT_THE_SUM,
            cost=dollars(cost),
            labels={
                "max_mode": row.get("Max Mode", "").lower() or None,
                "requests": row.get("Requests") or None,
                "automation": row.get("Automation ID") or None,
                "user": person(row.get("User")),
            },
        ).add(sink, record)


def _count(text: str, name: str) -> int | None:
    bare = text.replace(",", "")
    if not bare:
        return None
    if not _COUNT.fullmatch(bare):
        raise Bad(f"{name!r} is no count")
    return int(bare)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row an event; a line of a bill where it was charged."""
    export = _Export()
    for block in file.lines():
        sink = Sink(zone=options.zone)
        for index, line in enumerate(block.lines):
            record = block.first_record + index
            if not line.strip():
                sink.ignored[_BLANK] += 1
                continue
            told = len(sink.problems)
            try:
                export.take(line, record, sink)
            except Bad as bad:
                sink.problems.append(Problem(record, str(bad)))
            for at in range(told, len(sink.problems)):
                reason = sink.problems[at].reason
                place = block.starts[index]
                sink.problems[at] = Problem(record, reason, excerpt(line), place)
        yield sink.batch(block.count)


READER = Reader(
    title="Cursor usage export (CSV)",
    record_unit="line",
    gives=("request", "request_tag", "invoice_line"),
    probe=probe,
    read=read,
    docs="https://cursor.com/docs/account/usage",
    cannot="durations and TTFT; single calls of a model where one event holds several; the "
    "lifetime of what was written to the cache; the vendor behind a model called auto",
    enable="Dashboard > Usage > Export CSV; teams get more from the admin API's usage events",
    checked_against="a real export of 199 events and three others, with costs, with requests "
    "instead of costs, and with agents",
    facts=(
        ("cost", "of a subscription's event it is a worth and makes no line of a bill"),
        ("user", "a mail address is kept as a hash"),
    ),
)
