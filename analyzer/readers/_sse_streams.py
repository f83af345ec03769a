"""Answers of a capture that are under way: a few numbers each, whatever their length."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from analyzer.contract.types import Problem
from analyzer.readers._jsonl import Sink
from analyzer.readers._sse_lines import Stamp, since
from analyzer.readers._times import ms_to_ns, seconds_to_ns
from analyzer.readers._usage import merged_usage, token_buckets, usage_contradiction
from analyzer.readers._vendor_facts import Facts
from analyzer.readers._vendor_told import CONTENT, REASONING, ROLE, TOOL, Told

_MOST_OPEN = 256
_ID_HEADERS = ("x-request-id", "request-id", "apim-request-id", "x-amzn-requestid")
_TAG_HEADERS = ("openai-processing-ms", "x-envoy-upstream-service-time")
_BEDROCK = "x-amzn-bedrock-"
_BEDROCK_COUNTS = {
    "input-token-count": "inputTokenCount", "output-token-count": "outputTokenCount",
    "cache-read-input-token-count": "cacheReadInputTokenCount",
    "cache-write-input-token-count": "cacheWriteInputTokenCount",
}  # fmt: skip
_FIRST = ("response_id", "status")
_OUTPUT = ("output_visible_tokens", "output_reasoning_tokens")


@dataclass(eq=False)
class Stream:
    """One answer: what is known so far."""

    record: int
    sent: Stamp | None = None
    first: Stamp | None = None
    """Time of its first event."""
    begun: bool = False
    """It has events, not only headers."""
    complete: bool = False
    over: bool = False
    """Complete, or ended by a failure."""
    usage: Any = None
    counts: dict[str, int] = field(default_factory=dict)
    """Token counts told in the headers."""
    counted: int | None = 0
    """Output tokens told with the latest chunk; None once a chunk told none."""
    facts: Facts = field(default_factory=Facts)
    seen: dict[str, Stamp | None] = field(default_factory=dict)
    queued: Stamp | None = None
    last_token: Stamp | None = None
    last: Stamp | None = None
    index: int = 0
    chunks: int = 0
    chars: int | None = None
    first_chars: int | None = None
    first_tokens: int | None = None

    def base(self) -> Stamp | None:
        """What its chunks' offsets count from."""
        return self.sent or self.first

    def take(self, told: Told, stamp: Stamp | None, sink: Sink) -> None:
        """One event."""
        if not self.begun or told.complete or told.ends or told.usage is not None:
            told.learn()
        if not self.begun:
            self.begun, self.first = True, stamp
            if self.sent is None and stamp and stamp.clock == "relative" and stamp.ns > 0:
                # Zero is before the first event, so it is no event's own time.
                self.sent = Stamp(0, "relative")
                sink.assumed.add("times that count from 0 begin when the request was sent")
        self.last = stamp
        self.complete |= told.complete
        self.over |= told.complete or told.ends
        # What came first stays: the id of the answer, and its HTTP status when it fails half-way.
        kept = {name: self.facts.columns[name] for name in _FIRST if name in self.facts.columns}
        self.facts.columns |= told.facts.columns | kept
        if self.index and "status" not in kept:
            self.facts.columns.pop("status", None)
        self.facts.server = told.facts.server | self.facts.server
        self.facts.tags |= told.facts.tags
        self.usage = merged_usage(self.usage, told.usage)
        if told.queued is True:
            self.queued = stamp
        elif told.queued is False and self.queued is not None:
            self.facts.learn("queue_ns", since(stamp, self.queued))
            self.queued = None
        tokens = self._tokens_of(told) if told.pieces else None
        for place, (kind, chars) in enumerate(told.pieces):
            self._piece(kind, chars, tokens if place == len(told.pieces) - 1 else None, stamp, sink)

    def _tokens_of(self, told: Told) -> int | None:
        """Tokens of this chunk, where each one so far told the running total."""
        buckets = token_buckets(told.usage)
        made = [buckets.get(name) for name in _OUTPUT]
        total = sum(part or 0 for part in made) if any(p is not None for p in made) else None
        if [kind for kind, _ in told.pieces] == [ROLE] and total is None:
            return None
        before, self.counted = self.counted, total
        if total is None or before is None or total < before:
            return None
        return total - before if len(told.pieces) == 1 else None

    def _piece(
        self, kind: str, chars: int | None, tokens: int | None, stamp: Stamp | None, sink: Sink
    ) -> None:
        self.seen.setdefault(kind, stamp)
        offset = since(stamp, self.base())
        if offset is not None:
            sink.add(
                "chunk", self.record, chunk_index=self.index, offset_ns=offset, kind=kind,
                chars=chars, tokens=tokens,
            )  # fmt: skip
        self.index += 1
        if kind == ROLE:
            return
        self.last_token = stamp
        if self.chunks == 0:
            self.first_chars, self.first_tokens = chars, tokens
        self.chunks += 1
        if chars is not None:
            self.chars = (self.chars or 0) + chars

    def header(self, name: str, value: str) -> None:
        """One response header; cookies and keys are passed over."""
        columns = self.facts.columns
        if name in _ID_HEADERS:
            columns["request_id"] = value
        elif name == "retry-after":
            columns["retry_after_ns"] = seconds_to_ns(value)
        elif name == "retry-after-ms":
            columns["retry_after_ns"] = ms_to_ns(value)
        elif name in _TAG_HEADERS:
            self.facts.tags[name] = value
        elif name == f"{_BEDROCK}invocation-latency":
            self.facts.server["e2e_ns"] = ms_to_ns(value)
        elif (count := _BEDROCK_COUNTS.get(name.removeprefix(_BEDROCK))) and value.isdecimal():
            self.counts[count] = int(value)

    def write(self, sink: Sink) -> None:
        """Its rows: what the client saw, and what the vendor says of its own side."""
        problem = usage_contradiction(self.usage)
        if problem:
            reason = f"{problem}; the counts are stored as told"
            sink.problems.append(Problem(self.record, reason))
        columns, server = self.facts.columns, self.facts.server
        base = self.base()
        wall = base is not None and base.clock == "wall"
        sink.add("request", self.record, **self._client(base))
        created = None if wall else server.get("start_ns")
        durations = {name: ns for name, ns in server.items() if name != "start_ns"}
        if durations or created is not None:
            shared = ("request_id", "response_id", "model", "provider", "service_tier")
            sink.add(
                "request", self.record, **{name: columns.get(name) for name in shared},
                vantage="provider", start_ns=server.get("start_ns"),
                clock="wall" if "start_ns" in server else None,
                timing="stated" if durations else None, **durations,
            )  # fmt: skip
        for name, value in self.facts.tags.items():
            sink.add("request_tag", self.record, name=name, value=value)

    def _client(self, base: Stamp | None) -> dict[str, Any]:
        wall, first = base is not None and base.clock == "wall", self._first_token()
        ended = self.last_token or self.last
        buckets = token_buckets(self.usage or self.counts)
        row: dict[str, Any] = {
            "vantage": "client",
            "start_ns": base.ns if base is not None and wall else None,
            "clock": None if base is None else "wall" if wall else "monotonic",
            "timing": "stream" if base is not None else None,
            **buckets,
            "usage_final": self.complete if buckets else None,
            "streamed": True if self.seen else None,
            "chunks": self.chunks if self.seen else None,
            "chunk_chars": self.chars,
            "first_chunk_chars": self.first_chars,
            "first_chunk_tokens": self.first_tokens,
            **self.facts.columns,
        }
        if self.sent is not None:
            visible = self.seen.get(CONTENT) or self.seen.get(TOOL)
            row |= {
                "ttft_ns": since(first, self.sent),
                "first_role_ns": since(self.seen.get(ROLE), self.sent),
                "first_reasoning_ns": since(self.seen.get(REASONING), self.sent),
                "first_content_ns": since(visible, self.sent),
                "e2e_ns": since(ended, self.sent) if self.over else None,
            }
        return row

    def _first_token(self) -> Stamp | None:
        seen = [self.seen[kind] for kind in (REASONING, CONTENT, TOOL) if self.seen.get(kind)]
        return min((one for one in seen if one is not None), key=lambda one: one.ns, default=None)


class Streams:
    """All answers of a capture that are under way."""

    def __init__(self) -> None:
        self._current: Stream | None = None
        self._by_key: dict[str, Stream] = {}

    def sent(self, stamp: Stamp | None, path: str, record: int, sink: Sink) -> None:
        """A request left: what comes next is another answer."""
        self._close(sink)
        self._current = Stream(record, sent=stamp)
        self._current.facts.columns["endpoint"] = path

    def status(self, status: int, record: int, sink: Sink) -> Stream:
        """The status line of an answer."""
        one = self._current
        if one is None or one.begun or "status" in one.facts.columns:
            self._close(sink)
            one = self._current = Stream(record)
        one.facts.columns["status"] = status
        return one

    def header(self, name: str, value: str) -> None:
        """A header of the answer whose status line came last."""
        if self._current is not None:
            self._current.header(name, value)

    def take(self, told: Told, stamp: Stamp | None, record: int, sink: Sink) -> None:
        """One event; its answer is the one of its id, else the one that began last."""
        one = self._of(told, record, sink)
        one.take(told, stamp, sink)
        if told.ends:
            self._end(one, sink)

    def done(self, sink: Sink) -> None:
        """The mark that ends an answer."""
        if self._current is not None and self._current.begun:
            self._current.complete = self._current.over = True
            self._end(self._current, sink)

    def finish(self, sink: Sink) -> None:
        """Writes what is still open at the end of the capture."""
        for one in list(self._by_key.values()):
            self._end(one, sink)
        self._close(sink)

    def _of(self, told: Told, record: int, sink: Sink) -> Stream:
        fresh = self._current if self._current is not None and not self._current.begun else None
        if told.key is not None:
            one = self._by_key.get(told.key)
            if one is None:
                one = fresh or Stream(record)
                if len(self._by_key) >= _MOST_OPEN:
                    self._end(next(iter(self._by_key.values())), sink)
                self._by_key[told.key] = one
            self._current = one
            return one
        if told.begins and fresh is None:
            self._close(sink)
        if self._current is None:
            self._current = Stream(record)
        return self._current

    def _close(self, sink: Sink) -> None:
        """Answers without an id on each event follow one another; the others end by their own."""
        if self._current is not None and self._current not in self._by_key.values():
            self._end(self._current, sink)

    def _end(self, one: Stream, sink: Sink) -> None:
        one.write(sink)
        self._by_key = {key: held for key, held in self._by_key.items() if held is not one}
        if self._current is one:
            self._current = None
