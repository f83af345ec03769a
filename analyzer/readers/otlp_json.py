"""OTLP/JSON traces and logs: the Collector's file exporter (a batch a line), or one document.

Metrics hold sums over many requests: what they count, spans and events count once already.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from analyzer.contract.types import Batch, Problem, Resume
from analyzer.readers._agent_events import take_event
from analyzer.readers._document import each_value, read_all
from analyzer.readers._fast_ahead import ahead
from analyzer.readers._fast_spans import SpanShapes, Told
from analyzer.readers._file import BOM, Head, InputFile, Lines
from analyzer.readers._jsonl import Bad, Sink, object_of, objects
from analyzer.readers._otlp import Broken, events_of, spans_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt
from analyzer.readers._spans._gather import Gather

_MAX_DOCUMENT = 1 << 30
_OPENING = re.compile(rb'\s*(?:\xef\xbb\xbf)?\s*\{\s*"resource(?:Spans|Logs)"\s*:')
_ENTRIES = re.compile(r'"(resource(?:Spans|Logs))"\s*:\s*\[')
_SIGNALS = ("resourceSpans", "resourceLogs")
_OTHER_SIGNALS = ("resourceMetrics", "resourceProfiles")
_SUMS = "OTLP metrics or profiles: sums over many requests"


def probe(head: Head) -> Claim:
    """A line or a document with ``resourceSpans`` or ``resourceLogs``."""
    some = objects(head)
    if _OPENING.match(head.data) or any(signal in one for one in some for signal in _SIGNALS):
        return Claim(1, "")
    if any(signal in one for one in some for signal in _OTHER_SIGNALS):
        why = "it holds OTLP metrics only, sums over many requests: export the spans or logs too"
        return Claim(0.6, why)
    return Claim(0, "it has no resourceSpans or resourceLogs")


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
        """All spans and log records of one object with ``resourceSpans`` or ``resourceLogs``."""
        for event in events_of(batch):
            if isinstance(event, Broken):
                self.problem(event.reason, _text(event.value), offset)
                continue
            self.records += 1
            record = self.before + self.records
            if strange := take_event(event, record, self.sink):
                self.sink.problems.append(Problem(record, strange, "", offset))
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
    """One ``request`` row a span of a known kind that is none's sum, and one a call's event."""
    head = file.head
    # A first line longer than the head is a Collector's big batch, or a document on one line.
    one_line = b"\n" not in head.data.strip()
    if one_line and file.has_long_line():
        yield from _read_document(file)
    elif one_line or any(
        signal in one for one in objects(head) for signal in (*_SIGNALS, *_OTHER_SIGNALS)
    ):
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
    if isinstance(value, dict) and any(signal in value for signal in _SIGNALS):
        tally.take(value, place)
    elif isinstance(value, dict) and any(signal in value for signal in _OTHER_SIGNALS):
        tally.records += 1
        tally.sink.ignored[_SUMS] += 1
    else:
        tally.problem("JSON without 'resourceSpans' or 'resourceLogs'", text, place)


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
            tally.take({opening[1]: [entry]}, None)
            end = stop
    reason = "the document breaks off or is damaged here; what came before was read"
    tally.problem(reason, text[end : end + 1000], len(text[:end].encode("utf-8", "replace")))


READER = Reader(
    title="OTLP/JSON traces and logs (Collector file exporter)",
    record_unit="span",
    gives=("request", "prompt_part", "request_tag"),
    probe=probe,
    read=read,
    docs="https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding and "
    "https://github.com/open-telemetry/semantic-conventions-genai",
    cannot="vLLM spans: cached tokens, preemptions, aborted requests, network, chunk times; SGLang "
    "spans: queue and prefill without the spans of the stages, preemptions, network, chunk times; "
    "disaggregated workers tell a request in two rows. GenAI spans (client): queue and prefill, a "
    "time to first token without its attribute or event, whether a first chunk was a token, name "
    "lookup, connect and TLS without spans of their own; a call whose outer span lies in another "
    "file, unless both tell the answer's id. Agents' events: time to first token. Metrics: any "
    "request",
    enable="vllm serve --otlp-traces-endpoint=grpc://COLLECTOR:4317, or SGLang's --enable-trace "
    "--otlp-traces-endpoint COLLECTOR:4317; an instrumentation of the GenAI conventions, "
    "OpenInference, OpenLLMetry or the AI SDK's experimental_telemetry in the application; "
    "CLAUDE_CODE_ENABLE_TELEMETRY=1 OTEL_LOGS_EXPORTER=otlp for Claude Code; a Collector with the "
    "file exporter, all spans of a trace in one file; add the client's log for the network",
    checked_against="two spans of a vLLM V1 server (2026-06); generated spans; SGLang's after its "
    "source; attributes of recorded GenAI, OpenInference and AI SDK spans; Claude Code's and "
    "Gemini CLI's events after their documentation",
)
