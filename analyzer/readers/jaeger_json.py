"""Traces exported from Jaeger: one document of traces, each with its spans and their processes.

Times are whole microseconds. What the spans mean is that of their kind, as in OTLP.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._document import each_value, read_all
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Sink
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt, int_or_none, text_or_none
from analyzer.readers._spans._gather import Gather
from analyzer.readers._spans._kind import Span

_MAX_BYTES = 1 << 30
_NEEDED = (b"data", b"traceID", b"spans", b"spanID", b"operationName")
_TRACES = re.compile(r'"data"\s*:\s*\[')
_SPANS = re.compile(r'"spans"\s*:\s*\[')
_OPENING = re.compile(rb'[^"]*"data"\s*:|\s*\{\s*"(?:total|limit|offset|errors)"')
_TRACES_A_BATCH = 2_000
_MOST_EVENTS = 10_000
_BETWEEN = " \t\r\n,"


def probe(head: Head) -> Claim:
    """An object whose ``data`` are traces of spans with operation names."""
    if not head.data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return Claim(0, "it is no JSON object")
    keys = set(re.findall(rb'"(\w+)"\s*:', head.data))
    missing = [name.decode() for name in _NEEDED if name not in keys]
    if missing:
        return Claim(0.6 * (1 - len(missing) / len(_NEEDED)), f"it lacks {', '.join(missing)}")
    if not _OPENING.match(head.data.lstrip(b"\xef\xbb\xbf \t\r\n")):
        return Claim(0.7, "its 'data' is not that of a Jaeger export")
    return Claim(1, "")


class _Tally:
    """Rows and account of one batch; ``before`` counts the records of earlier ones."""

    def __init__(self, gather: Gather, before: int) -> None:
        self.gather, self.before = gather, before
        self.records = 0
        self.sink = Sink()

    def trace(self, trace: Any) -> None:  # noqa: ANN401 - foreign JSON
        """All spans of one trace."""
        spans = trace.get("spans") if isinstance(trace, dict) else None
        if not isinstance(spans, list):
            self.problem("a trace without its list of spans", trace)
            return
        processes = trace.get("processes")
        for span in spans:
            self.span(span, processes if isinstance(processes, dict) else {})

    def span(self, value: Any, processes: dict[str, Any]) -> None:  # noqa: ANN401
        """One span; what is none is a problem."""
        name = text_or_none(value.get("operationName")) if isinstance(value, dict) else None
        if name is None:
            self.problem("a span without an operationName", value)
            return
        self.records += 1
        record = self.before + self.records
        strange = self.gather.take(_span(name, value, processes), record, self.sink)
        if strange:
            self.sink.problems.append(Problem(record, strange))

    def problem(self, reason: str, value: Any, offset: int | None = None) -> None:  # noqa: ANN401
        """One more record, which could not be read."""
        self.records += 1
        text = value if isinstance(value, str) else _text(value)
        record = self.before + self.records
        self.sink.problems.append(Problem(record, reason, excerpt(text), offset))

    def batch(self) -> Batch:
        """What the store gets."""
        self.gather.settle(self.sink)
        return self.sink.batch(self.records)


def _text(value: Any) -> str:  # noqa: ANN401
    try:
        return json.dumps(value)
    except RecursionError:
        return ""


def _span(name: str, value: dict[str, Any], processes: dict[str, Any]) -> Span:
    tags = _tags(value.get("tags"))
    key = value.get("processID")
    process = processes.get(key) if isinstance(key, str) else None
    resource = _tags(process.get("tags")) if isinstance(process, dict) else {}
    if isinstance(process, dict) and text_or_none(process.get("serviceName")):
        resource["service.name"] = process["serviceName"]
    start, took = int_or_none(value.get("startTime")), int_or_none(value.get("duration"))
    start_ns = start * 1000 if start else None
    ended = start_ns is not None and took is not None and took >= 0
    return Span(
        name,
        text_or_none(value.get("traceID")),
        start_ns,
        start_ns + took * 1000 if ended and start_ns and took is not None else None,
        tags.get("error") in (True, "true") or tags.get("otel.status_code") == "ERROR",
        tags,
        resource,
        text_or_none(value.get("spanID")),
        _parent(value.get("references")),
        tags.get("span.kind") == "server",
        tuple(_events(value.get("logs"))),
    )


def _events(values: Any) -> Iterator[tuple[str, int | None, dict[str, Any]]]:  # noqa: ANN401
    for one in values[:_MOST_EVENTS] if isinstance(values, list) else ():
        fields = _tags(one.get("fields")) if isinstance(one, dict) else {}
        if name := text_or_none(fields.get("event")):
            at = int_or_none(one.get("timestamp"))
            yield name, at * 1000 if at else None, fields


def _tags(pairs: Any) -> dict[str, Any]:  # noqa: ANN401
    """Key -> value; the values of a JSON export are typed already."""
    if not isinstance(pairs, list):
        return {}
    tags = (pair for pair in pairs if isinstance(pair, dict) and isinstance(pair.get("key"), str))
    return {pair["key"]: pair.get("value") for pair in tags}


def _parent(references: Any) -> str | None:  # noqa: ANN401
    for one in references if isinstance(references, list) else ():
        if isinstance(one, dict) and one.get("refType") == "CHILD_OF":
            return text_or_none(one.get("spanID"))
    return None


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """Rows as in OTLP; trace by trace, so that only the text of the document is held whole."""
    tally = _Tally(Gather(), 0)
    try:
        text = read_all(file, _MAX_BYTES).decode("utf-8", "replace").lstrip("\ufeff")
    except ValueError as error:
        tally.problem(f"one document {error}; export fewer traces at a time", "", 0)
        yield tally.batch()
        return
    opening = _TRACES.search(text)
    end = opening.end() if opening else 0
    if opening:
        for number, (_, stop, trace) in enumerate(each_value(text, end, _BETWEEN), 1):
            tally.trace(trace)
            end = stop
            if number % _TRACES_A_BATCH == 0:
                yield tally.batch()
                tally = _Tally(tally.gather, tally.before + tally.records)
    if not opening or text[end : end + 1000].lstrip(_BETWEEN)[:1] != "]":
        _take_cut(text, end, tally)
    tally.gather.finish(tally.sink)
    yield tally.batch()


def _take_cut(text: str, start: int, tally: _Tally) -> None:
    """The whole spans of a trace that breaks off, without their processes, and one problem."""
    if not text[start:].strip():
        return
    opening = _SPANS.search(text, start)
    end = start
    if opening is not None:
        for _, stop, span in each_value(text, opening.end(), _BETWEEN):
            tally.span(span, {})
            end = stop
    reason = "the document breaks off or is damaged here; what came before was read"
    tally.problem(reason, text[end : end + 1000], len(text[:end].encode("utf-8", "replace")))


READER = Reader(
    title="Jaeger traces (JSON export)",
    record_unit="span",
    gives=("request", "prompt_part"),
    probe=probe,
    read=read,
    docs="https://www.jaegertracing.io/docs/latest/apis/",
    cannot="anything below a microsecond; what the spans themselves leave out (see otlp_json)",
    enable="GET /api/traces?service=NAME&limit=N, or the download of the user interface",
    checked_against="documents written after Jaeger's own model; no file of a real server",
)
