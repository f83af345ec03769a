"""Raw captures of vendors' streams: what ``curl -N`` printed, with or without a time a line.

Events are read line by line and summed up per answer; of the text only lengths are kept. Without
times a capture tells ids, tokens and how the answer ended, but no latency. With times but without
the moment of sending it tells gaps, but no TTFT.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._jsonl import Sink
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt
from analyzer.readers._sse_lines import IDLE, Found, Framing
from analyzer.readers._sse_streams import Streams
from analyzer.readers._vendor_bodies import by_engine, is_part, told_by_body
from analyzer.readers._vendor_events import told_by
from analyzer.readers._vendor_told import Told

_UNKNOWN = "an event no vendor's stream is known to have; report its type if it is one"
_CUT = "cut off: the capture ends inside an event"


def probe(head: Head) -> Claim:
    """SSE fields, or JSON lines, whose first events are those of a vendor's stream."""
    framing = Framing(None)
    kinds: Counter[str] = Counter()
    for line in head.lines:
        found = framing.line(line)
        kinds["problem"] += bool(found.problem)
        kinds["headers"] += found.status is not None
        for event in found.events:
            if by_engine(event):
                return Claim(0.4, "its events carry the times of a model server's own reader")
            kinds[_kind(event, line, whole=kinds["headers"] > 0)] += 1
        if not kinds["event"] and kinds["unknown"] > 1:
            break
    if kinds["problem"] > max(2, kinds["event"] // 4):
        return Claim(0.3 if kinds["event"] else 0, "most of its lines are no SSE fields or events")
    if kinds["event"] > 0 and kinds["event"] >= kinds["unknown"]:
        return Claim(1, "")
    if kinds["unknown"]:
        return Claim(0.2, "its events are no vendor's stream")
    if kinds["answer"]:
        return Claim(0.5, "its JSON lines are whole answers, not the events of one")
    return Claim(0, "it has neither 'data:' lines nor the events of a stream")


def _kind(event: dict[str, Any], line: bytes, *, whole: bool) -> str:
    """What an event makes of a file: only a stream has it, it is an answer by itself, or unknown.

    What follows HTTP headers (curl -i) may be a whole answer, or a failure in its place.
    """
    told = _streamed(event)
    if told is None:
        return "event" if whole and told_by_body(event) is not None else "unknown"
    bare = line.lstrip().startswith(b"{") and "choices" not in event and told.key is not None
    return "event" if not bare or is_part(event) else "answer"


def _streamed(event: dict[str, Any]) -> Told | None:
    """What an event tells, if only a stream has it: a lone error or a whole answer does not."""
    if event.get("object") in ("chat.completion", "response", "list", "message"):
        return None
    choices = event.get("choices")
    if isinstance(choices, list) and any(
        isinstance(one, dict) and "message" in one for one in choices
    ):
        return None
    told = told_by(event)
    if told is None or told.idle or "error" in told.facts.columns:
        return None
    return told


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """A client row an answer with its chunks; the vendor's own durations as its own row."""
    framing, streams = Framing(options.zone), Streams()
    before: tuple[Sink, int] | None = None
    for block in file.lines():
        if before is not None:
            yield before[0].batch(before[1])
        sink = Sink()
        for index, line in enumerate(block.lines):
            _take(framing.line(line), block, index, streams, sink)
        if framing.zone_assumed:
            zone = options.zone or "UTC"
            sink.assumed.add(f"times without a zone are {zone}; change it with --zone")
        before = (sink, len(block.lines))
        last = (block.last_record, block.starts[-1], block.lines[-1])
    if before is None:
        return
    sink, records = before
    if framing.unfinished():
        sink.problems.append(Problem(last[0], _CUT, excerpt(last[2]), last[1]))
    streams.finish(sink)
    yield sink.batch(records)


def _take(found: Found, block: Lines, index: int, streams: Streams, sink: Sink) -> None:
    """One line: its events, its part of the HTTP exchange, its place in the account."""
    record = block.first_record + index
    problem, ignored = found.problem, found.ignored
    if problem and block.unterminated:
        problem = _CUT
    if found.sent is not None:
        streams.sent(found.stamp, found.sent, record, sink)
    if found.status is not None:
        if found.status < 200:
            ignored = IDLE
        else:
            streams.status(found.status, record, sink)
    if found.header is not None:
        streams.header(*found.header)
    idle = bool(found.events)
    for event in found.events:
        told = told_by(event) or told_by_body(event)
        if told is None:
            problem = problem or _UNKNOWN
        elif not told.idle:
            idle = False
            streams.take(told, found.stamp, record, sink)
    if found.end:
        streams.done(sink)
    if problem:
        line = block.lines[index]
        sink.problems.append(Problem(record, problem, excerpt(line), block.starts[index]))
    elif idle or ignored:
        sink.ignored[ignored or IDLE] += 1


READER = Reader(
    title="Captured vendor stream (SSE text, or JSON lines of its events)",
    record_unit="line",
    gives=("request", "chunk", "request_tag"),
    probe=probe,
    read=read,
    docs="https://html.spec.whatwg.org/multipage/server-sent-events.html, and the streaming "
    "reference of OpenAI, Anthropic, Gemini, Amazon Bedrock, DeepSeek, Groq and OpenRouter",
    cannot="TTFT and end to end, unless lines carry times and the moment of sending is known; "
    "queue and prefill, unless the vendor states them (Groq) or the answer was queued visibly",
    enable="curl -sN -v … 2>&1 | ts '%Y-%m-%dT%H:%M:%.S%z', which also times the request itself; "
    "ask for the usage (stream_options.include_usage)",
    checked_against="recorded streams of OpenAI chat and responses, Anthropic, Gemini, DeepSeek "
    "and Groq; Bedrock's from its documentation",
)
