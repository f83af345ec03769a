"""Spans outside OTLP: JavaScript's readable spans, Python's console exporter, Phoenix's exports.

What they mean is what their kind means in OTLP. Gemini CLI's telemetry file holds log records of
the same shape, and is read as those are.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._agent_events import take_event
from analyzer.readers._document import each_value
from analyzer.readers._file import BOM, Head, InputFile
from analyzer.readers._items import Item, items_of
from analyzer.readers._jsonl import Bad, Sink, object_of, objects
from analyzer.readers._mapping_head import DELIMITERS, cells_of
from analyzer.readers._otlp import Event
from analyzer.readers._plain_spans import is_record, is_span, moment, plain_span, resource_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt
from analyzer.readers._spans._gather import Gather
from analyzer.readers._times import zone_note

_LISTS = ("spans", "data")
_COLUMNS = {"context.span_id", "start_time"}
_A_BATCH = 5_000
_METRICS = "metrics: sums over many requests"
_STRANGE = "no span: it names no span id or no start; export whole spans"
_MARKS = (b'"startTime"', b'"start_time"', b'"hrTime"')
_MINE = (
    b"gen_ai.", b"openinference.span.kind", b"ai.operationId", b"llm.token_count", b"gemini_cli.",
    b'"span_kind"',
)  # fmt: skip


def probe(head: Head) -> Claim:
    """JSON whose first objects are spans, or a table with Phoenix's columns."""
    begin = head.data.removeprefix(BOM).lstrip()[:1]
    if begin not in (b"{", b"["):
        columns = {name for name in _columns(head)[1] if name}
        if columns >= _COLUMNS:
            return Claim(1, "")
        return Claim(0.3 if columns & _COLUMNS else 0, "it is no JSON, and no table of spans")
    some = _first(head)
    if any(is_span(one) or is_record(one) for one in some):
        return Claim(1, "")
    if not some and any(mark in head.data for mark in _MARKS):
        # The first span, with its prompt, is longer than what is looked at.
        ids = b"spanContext" in head.data or b"span_id" in head.data
        if ids and not head.whole and any(mark in head.data for mark in _MINE):
            return Claim(1, "")
        return Claim(0.4, "its first object breaks off before it tells a span")
    return Claim(0, "it has no spans")


def _first(head: Head) -> list[dict[str, Any]]:
    """Whole objects the file begins with; of one that holds a list, those of the list."""
    text = head.data.decode("utf-8", "replace").lstrip("\ufeff")
    found = []
    for _, _, value in each_value(text, 0, " \t\r\n,["):
        found += [one for one in _inner(value) if isinstance(one, dict)]
        if len(found) > 50:
            break
    if not found:
        for name in _LISTS:
            at = text.find(f'"{name}"')
            opening = text.find("[", at) if at >= 0 else -1
            if opening >= 0 and not text[at + len(name) + 2 : opening].strip(" \t\r\n:"):
                values = each_value(text, opening + 1, " \t\r\n,")
                found += [one for _, _, one in values if isinstance(one, dict)]
    return found


def _inner(value: Any) -> list[Any]:  # noqa: ANN401 - foreign JSON
    """The spans of a value: itself, or those it lists."""
    if isinstance(value, dict) and not is_span(value) and not is_record(value):
        for name in _LISTS:
            if isinstance(value.get(name), list):
                return list(value[name])
    return [value]


def _columns(head: Head) -> tuple[str, tuple[str, ...]]:
    line = head.lines[0] if head.lines else b""
    tables = [(one, cells_of(line, one)) for one in DELIMITERS]
    return max(tables, key=lambda table: len(_COLUMNS & set(table[1])))


class _Tally:
    """Rows and account of one batch; ``before`` counts the records of earlier ones."""

    def __init__(self, gather: Gather, before: int, zone: str | None) -> None:
        self.gather, self.before, self.zone = gather, before, zone
        self.records = 0
        self.sink = Sink()

    def take(self, value: Any, offset: int | None = None) -> None:  # noqa: ANN401 - foreign JSON
        """The spans of one value; what is none is a problem."""
        for one in _inner(value):
            self.records += 1
            record = self.before + self.records
            if not isinstance(one, dict):
                self.add(Problem(record, "a JSON value, but no span", "", offset))
            elif is_span(one):
                if note := zone_note(one.get("start_time"), self.zone):
                    self.sink.assumed.add(note)
                span = plain_span(one, self.zone)
                if strange := self.gather.take(span, record, self.sink):
                    self.add(Problem(record, strange, "", offset))
            elif is_record(one):
                if strange := take_event(_event(one), record, self.sink):
                    self.add(Problem(record, strange, "", offset))
            elif "scopeMetrics" in one or "descriptor" in one:
                self.sink.ignored[_METRICS] += 1
            else:
                self.add(Problem(record, _STRANGE, "", offset))

    def problem(self, reason: str, text: bytes | str, offset: int | None) -> None:
        """One more record, which could not be read."""
        self.records += 1
        self.add(Problem(self.before + self.records, reason, excerpt(text), offset))

    def add(self, problem: Problem) -> None:
        """A problem of a record that was counted."""
        self.sink.problems.append(problem)

    def batch(self) -> Batch:
        """What the store gets."""
        self.gather.settle(self.sink)
        return self.sink.batch(self.records)


def _event(value: dict[str, Any]) -> Event:
    told = value["attributes"]
    names = (told.get("event.name"), value.get("eventName"), value.get("body"))
    name = next((one for one in names if isinstance(one, str) and one), None)
    return Event(name, moment(value.get("hrTime"), None), told, resource_of(value))


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """Rows as in OTLP."""
    tally = _Tally(Gather(), 0, options.zone)
    for _ in _taken(file, tally):
        if tally.records >= _A_BATCH:
            yield tally.batch()
            tally.before += tally.records
            tally.records, tally.sink = 0, Sink()
    tally.gather.finish(tally.sink)
    yield tally.batch()


def _taken(file: InputFile, tally: _Tally) -> Iterable[None]:
    """Hands every value of the file to the tally, one at a time."""
    begin = file.head.data.removeprefix(BOM).lstrip()[:1]
    if begin and begin not in (b"{", b"["):
        return _take_table(file, tally)
    return _take_lines(file, tally) if objects(file.head, 1) else _take_items(file, tally)


def _take_lines(file: InputFile, tally: _Tally) -> Iterator[None]:
    for block in file.lines():
        for line, place in zip(block.lines, block.starts, strict=True):
            if not (text := line.strip()):
                continue
            try:
                value = object_of(text)
            except Bad as bad:
                tally.problem(str(bad), text, place)
            else:
                tally.take(value, place)
            yield


def _take_items(file: InputFile, tally: _Tally) -> Iterator[None]:
    for item in items_of(file):
        if isinstance(item, Item):
            tally.take(item.value)
        else:
            tally.problem(item.reason, "", item.byte_offset)
        yield


def _take_table(file: InputFile, tally: _Tally) -> Iterator[None]:
    delimiter, names = _columns(file.head)
    text = (
        line.decode("utf-8", "replace") + "\n"
        for block in file.lines()
        for line in (block.data.removeprefix(BOM).split(b"\n")[: block.count])
    )
    rows = csv.reader(text, delimiter=delimiter)
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            tally.problem(f"no row of CSV: {error}", "", None)
            continue
        if row is None:
            return
        if not any(row) or tuple(cell.strip() for cell in row) == names:
            continue
        if len(row) != len(names):
            tally.problem(f"{len(row)} cells under {len(names)} columns", "", None)
        else:
            told = {name: cell for name, cell in zip(names, row, strict=True) if cell}
            tally.take(told)
        yield


READER = Reader(
    title="Spans outside OTLP (JavaScript readable spans, Python console exporter, Phoenix)",
    record_unit="span",
    gives=("request", "prompt_part", "request_tag"),
    probe=probe,
    read=read,
    docs="https://arize-ai.github.io/openinference/spec/ and "
    "https://ai-sdk.dev/docs/ai-sdk-core/telemetry",
    cannot="the time to first token without the attribute or the event that tells it; queue and "
    "prefill; whether a first chunk was a token; a Parquet file of spans (write JSON or CSV)",
    enable="Phoenix: px.Client().get_spans_dataframe().to_json(FILE, orient='records', "
    "lines=True); JavaScript: JSON.stringify of the finished spans; Python: "
    "ConsoleSpanExporter(out=FILE); Gemini CLI: --telemetry --telemetry-outfile=FILE",
    checked_against="recorded spans of the AI SDK 6 and of Phoenix; example files of a load "
    "generator's trace replay; Python's and Gemini CLI's after their sources",
)
