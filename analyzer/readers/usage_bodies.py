"""Recorded answers of vendors: one JSON body a file, a list of them, or one a line.

A body is the vendor's own statement: rows of vantage provider, with the tokens it counted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._document import each_value, top_level
from analyzer.readers._file import BOM, Head, InputFile
from analyzer.readers._items import Item, items_of
from analyzer.readers._jsonl import Bad, Sink, Skip, object_of, read_jsonl
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt
from analyzer.readers._usage import merged_usage, token_buckets, usage_contradiction
from analyzer.readers._vendor_bodies import (
    by_engine,
    is_body,
    is_part,
    looks_like_body,
    told_by_body,
)
from analyzer.readers._vendor_facts import Facts

_REMEMBERED = 100_000
_UNKNOWN = "no vendor's answer with a usage; log the whole body"
_AGAIN, _EARLY = "the same answer again", "answer not finished"


def probe(head: Head) -> Claim:
    """JSON whose first objects are vendors' answers."""
    bodies = _first_bodies(head)
    if bodies is None:
        return Claim(0, "it is no JSON object or list of them")
    if not bodies:
        whole = looks_like_body(top_level(head.data))
        return Claim(1 if whole and not head.whole else 0, "it has no usage")
    if any(by_engine(body) for body in bodies):
        return Claim(0.4, "its answers carry the times of a model server's own reader")
    if _is_lines(head) and any(is_part(body) for body in bodies):
        return Claim(0.5, "its lines are the events of a stream, not whole answers")
    if any(is_body(body) for body in bodies):
        return Claim(1, "")
    quoted = any("usage" in body or "usageMetadata" in body for body in bodies)
    return Claim(0.3 if quoted else 0, "its records have a usage, but are no vendor's answers")


def _first_bodies(head: Head) -> list[dict[str, Any]] | None:
    """Objects the file begins with; None where it is no JSON, empty where the first is cut."""
    if _is_lines(head):
        return [one for line in head.lines if (one := _object(line)) is not None]
    data = head.data.removeprefix(BOM).lstrip()
    if data[:1] not in (b"{", b"["):
        return None
    text = data.decode("utf-8", "replace")
    values = each_value(text, 1 if data[:1] == b"[" else 0, " \t\r\n,")
    return [one for _, _, one in values if isinstance(one, dict)]


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        return object_of(line)
    except Bad:
        return None


def _is_lines(head: Head) -> bool:
    first = head.lines[0] if head.lines else b""
    if not first.startswith(b"{"):
        return False
    return _object(first) is not None or (not head.whole and len(head.lines) == 1)


class _Seen:
    """Answers that were read: one that was logged again for each of its tool calls counts once."""

    def __init__(self) -> None:
        self._past: dict[tuple[str, str], None] = {}

    def again(self, response_id: str | None, usage: Any) -> bool:  # noqa: ANN401 - foreign JSON
        """Whether this very answer was read before; an id alone may be reused."""
        if response_id is None:
            return False
        key = (response_id, repr(usage))
        if key in self._past:
            return True
        self._past[key] = None
        if len(self._past) > _REMEMBERED:
            del self._past[next(iter(self._past))]
        return False


def _add(body: dict[str, Any], record: int, sink: Sink, seen: _Seen) -> None:
    told = told_by_body(body)
    if told is None:
        raise Bad(_UNKNOWN)
    if told.idle:
        raise Skip(_EARLY)
    told.learn()
    if seen.again(told.facts.columns.get("response_id"), told.usage):
        raise Skip(_AGAIN)
    if problem := usage_contradiction(told.usage):
        reason = f"{problem}; the counts are stored as told"
        sink.problems.append(Problem(record, reason))
    _write(told.facts, told.usage, record, sink)


def _write(facts: Facts, usage: Any, record: int, sink: Sink) -> None:  # noqa: ANN401
    durations = facts.server.keys() - {"start_ns"}
    buckets = token_buckets(usage)
    sink.add(
        "request",
        record,
        vantage="provider",
        clock="wall" if "start_ns" in facts.server else None,
        timing="stated" if durations else None,
        **facts.server,
        **buckets,
        usage_final=True if buckets else None,
        **facts.columns,
    )
    for name, value in facts.tags.items():
        sink.add("request_tag", record, name=name, value=value)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage provider a body."""
    seen = _Seen()
    if _is_lines(file.head):
        whole = dataclasses.replace(options, resume=None)
        for batch in read_jsonl(file, whole, lambda one, n, sink: _add(one, n, sink, seen)):
            # What was seen is not kept for when the file has grown: it is then read anew.
            yield dataclasses.replace(batch, resume=None)
        return
    yield _document(list(items_of(file)), seen)


def _document(items: list[Item | Problem], seen: _Seen) -> Batch:
    sink = Sink()
    bodies = [one for one in items if isinstance(one, Item)]
    sink.problems += [one for one in items if isinstance(one, Problem)]
    if _is_stream([one.value for one in bodies]):
        _stream([one.value for one in bodies], sink)
        return sink.batch(len(items))
    for one in bodies:
        try:
            _add(one.value, one.record, sink, seen)
        except Skip as skip:
            sink.ignored[str(skip)] += 1
        except Bad as bad:
            sink.problems.append(Problem(one.record, str(bad), excerpt(one.text)))
    return sink.batch(len(items))


def _is_stream(values: list[dict[str, Any]]) -> bool:
    """Gemini streams a list of partial answers of one id unless it is asked for SSE."""
    ids = {str(value.get("responseId")) for value in values}
    if len(values) < 2 or len(ids) != 1 or ids == {"None"}:
        return False
    return all("candidates" in value for value in values)


def _stream(values: list[dict[str, Any]], sink: Sink) -> None:
    facts, usage = Facts(), None
    for value in values:
        told = told_by_body(value)
        if told is not None:
            told.learn()
            usage = merged_usage(usage, told.usage)
            facts.columns |= told.facts.columns
            facts.server |= told.facts.server
            facts.tags |= told.facts.tags
    facts.columns["streamed"] = True
    _write(facts, usage, 1, sink)


READER = Reader(
    title="Recorded vendor answers with their usage (JSON body, list, or JSON Lines)",
    record_unit="answer",
    gives=("request", "request_tag"),
    probe=probe,
    read=read,
    docs="the API references of OpenAI, Anthropic, Gemini, Amazon Bedrock (Converse), DeepSeek, "
    "OpenRouter, Groq, Mistral and Cohere",
    cannot="when the request was sent and how long it took, unless the vendor states it (Groq: "
    "queue, prefill and decode; Bedrock: its latency)",
    enable="log the stream with a time a line, or the client's request records, beside the bodies",
    checked_against="1,577 recorded usage bodies of a public test corpus; see tests/test_usage.py",
)
