"""OTLP/JSON traces: the Collector's file exporter (one batch a line), or one whole document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from analyzer.contract.types import Batch, Problem, Resume
from analyzer.readers._document import each_value, read_all
from analyzer.readers._fast_ahead import ahead
from analyzer.readers._fast_spans import SpanShapes, Told
from analyzer.readers._file import BOM, Head, InputFile, Lines
from analyzer.readers._jsonl import Bad, Sink, object_of, objects
from analyzer.readers._otlp import Broken, spans_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt
from analyzer.readers._spans._gather import Gather

_MAX_DOCUMENT = 1 << 30
_OPENING = re.compile(rb'\s*(?:\xef\xbb\xbf)?\s*\{\s*"resourceSpans"\s*:')
_ENTRIES = re.compile(r'"resourceSpans"\s*:\s*\[')
_OTHER_SIGNALS = ("resourceLogs", "resourceMetrics", "resourceProfiles")


def probe(head: Head) -> Claim:
    """A line or a document with ``resourceSpans``."""
    some = objects(head)
    if _OPENING.match(head.data) or any("resourceSpans" in one for one in some):
        return Claim(1, "")
    if any(signal in one for one in some for signal in _OTHER_SIGNALS):
        return Claim(0.6, "it holds OTLP logs or metrics, but no spans")
    return Claim(0, "it has no resourceSpans")


@dataclass
class _Tally:
    """Rows and account of one batch. ``before`` counts the records of earlier ones."""

    before: int
    gather: Gather
    records: int = 0
    sink: Sink = field(default_factory=Sink)

    def problem(self, reason: str, text: bytes | str, offset: int | None) -> None:
        """One more record, which could not be read."""
        self.records += 1
        record = self.before + self.records
        self.sink.problems.append(Problem(record, reason, excerpt(text), offset))

    def take(self, batch: Any, offset: int | None) -> None:  # noqa: ANN401 - foreign JSON
        """All spans of one object with ``resourceSpans``."""
        for span in spans_of(batch):
            if isinstance(span, Broken):
                self.problem(span.reason, _text(span.value), offset)
                continue
            self.records += 1
            record = self.before + self.records
            if strange := self.gather.take(span, record, self.sink):
                self.sink.problems.append(Problem(record, strange, "", offset))

    def batch(self) -> Batch:
        """What the store gets."""
        self.gather.settle(self.sink)
        return self.sink.batch(self.records)


def _text(value: Any) -> str:  # noqa: ANN401 - foreign JSON
    try:
        return json.dumps(value)
    except RecursionError:
        return ""


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row a span of a known kind."""
    head = file.head
    # A first line longer than the head is a Collector's big batch, or a document on one line.
    one_line = b"\n" not in head.data.strip()
    if one_line and file.has_long_line():
        yield from _read_document(file)
    elif one_line or any("resourceSpans" in one for one in objects(head)):
        yield from _read_lines(file, options)
    else:
        yield from _read_document(file)


def _read_lines(file: InputFile, options: Options) -> Iterator[Batch]:
    resume = options.resume
    offset, records = (resume.offset, resume.records) if resume else (0, 0)
    gather = Gather(resume.state if resume else None)
    end: tuple[int, int, tuple[int, ...]] | None = (offset, records, ())
    shapes = SpanShapes()
    for block, told in ahead(lambda block: (block, shapes.split(block)), file.lines(offset=offset)):
        tally = _Tally(records, gather)
        good = _take_lines(block, tally, told)
        if good:
            end = block.end, records + tally.records, ()
        elif block.offset <= len(BOM):
            end = None
        else:
            end = block.offset, records, (records + 1,)
        records += tally.records
        yield tally.batch()
    sink, state = Sink(), gather.state()
    open_records = gather.finish(sink)
    again = None if end is None else Resume(end[0], end[1], (*open_records, *end[2]), state)
    yield sink.batch(0, again)


def _take_lines(block: Lines, tally: _Tally, told: Told) -> bool:
    """False if the file ends inside the only line of this block; ``told`` was read before."""
    first: dict[int, int] = {}
    for index, (line, place) in enumerate(zip(block.lines, block.starts, strict=True)):
        if index in told.counts:
            first[index] = tally.before + tally.records + 1
            tally.records += told.counts[index]
            continue
        text = line.strip()
        try:
            value = object_of(text) if text else {"resourceSpans": []}
        except Bad as bad:
            if not block.unterminated:
                tally.problem(str(bad), text, place)
            elif place <= len(BOM):
                # One line from the very start: a document that is cut, whole as far as it goes.
                _take_cut(text.decode("utf-8", "replace"), 0, tally)
            else:
                tally.problem(f"cut off: the file ends inside it ({bad})", text, place)
            if block.unterminated:
                return False
        else:
            _take_batch(value, tally, text, place)
    tally.sink.tables = told.tables(first)
    return True


def _take_batch(value: Any, tally: _Tally, text: bytes | str, place: int | None) -> None:  # noqa: ANN401
    if isinstance(value, dict) and "resourceSpans" in value:
        tally.take(value, place)
    elif isinstance(value, dict) and any(signal in value for signal in _OTHER_SIGNALS):
        tally.records += 1
        tally.sink.ignored["OTLP logs or metrics, no spans"] += 1
    else:
        tally.problem("JSON without 'resourceSpans'", text, place)


def _read_document(file: InputFile) -> Iterator[Batch]:
    tally = _Tally(0, Gather())
    try:
        text = read_all(file, _MAX_DOCUMENT).decode("utf-8", "replace").lstrip("\ufeff")
    except ValueError as error:
        tally.problem(f"one document {error}; let the Collector write JSON lines", "", 0)
        yield tally.batch()
        return
    end = 0
    for start, stop, value in each_value(text):
        _take_batch(value, tally, text[start : start + 1000], None)
        end = stop
    if text[end:].strip():
        _take_cut(text, end, tally)
    tally.gather.finish(tally.sink)
    yield tally.batch()


def _take_cut(text: str, start: int, tally: _Tally) -> None:
    """The whole entries of a document before the place where it breaks, and one problem."""
    opening = _ENTRIES.search(text, start)
    end = start
    if opening is not None:
        for _, stop, entry in each_value(text, opening.end(), between=" \t\r\n,"):
            tally.take({"resourceSpans": [entry]}, None)
            end = stop
    reason = "the document breaks off or is damaged here; what came before was read"
    tally.problem(reason, text[end : end + 1000], len(text[:end].encode("utf-8", "replace")))


READER = Reader(
    title="OTLP/JSON traces (Collector file exporter)",
    record_unit="span",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding",
    cannot="vLLM spans: cached tokens, preemptions, aborted requests, network, chunk times; SGLang "
    "spans: queue and prefill without the spans of the stages, preemptions, network, chunk times; "
    "disaggregated workers tell a request in two rows",
    enable="vllm serve --otlp-traces-endpoint=grpc://COLLECTOR:4317, or SGLang's --enable-trace "
    "--otlp-traces-endpoint COLLECTOR:4317; a Collector with the file exporter; add the client's "
    "log for the network",
    checked_against="two spans of a vLLM V1 server (2026-06); generated spans; SGLang's after its "
    "source",
)
