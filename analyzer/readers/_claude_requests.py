"""Requests of a Claude Code transcript: several lines tell one, and some lines are told again.

An answer has a line for each of its blocks, each with the usage so far. The line with the largest
output is the one that counts, whole: a model that steps in changes model and cache counts together.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from operator import is_not
from typing import Any

import msgspec

from analyzer.readers._claude_lines import USAGE_COLUMNS, Line, Usage, moment, opened
from analyzer.readers._claude_talk import TALK_COLUMNS, Talk
from analyzer.readers._jsonl import Bad, Sink, usd
from analyzer.readers._rows import clean, columns_table, first, int_or_none
from analyzer.readers._vendor_facts import (
    Facts,
    finish_word,
    learn_answer,
    learn_error,
    learn_usage,
)

OPEN = 2_000
"""Requests whose lines may still come; the lines of one lie close together."""
_LONGEST_NS = 3_600_000_000_000
"""No request takes longer: a prompt that was answered later was answered after a break."""
_REMEMBERED = 500_000
"""Requests and lines before those are known by their id alone."""


@dataclass(slots=True)
class Open:
    """A request some lines of which were read."""

    record: int
    line: Line
    """The one that counts."""
    usage: Usage
    session: str | None
    parent_session: str | None
    sidechain: bool | None
    turn: int
    start_ns: int | None
    asked: bool
    """The start is the line that was answered, not the answer's own first."""
    end_ns: int | None
    first_output: int | None
    output: int
    made_of: tuple[int, ...] | None
    """What its prompt is made of."""
    lines: int = 1
    tags: dict[str, str] = field(default_factory=dict)


class Remembered(dict[Any, Any]):
    """A dictionary that forgets its oldest entries."""

    def keep(self, key: Any, value: Any, most: int = OPEN) -> None:  # noqa: ANN401
        """One more entry."""
        self[key] = value
        if len(self) >= 2 * most:  # all at once: to find the oldest one takes as long
            newest = list(self.items())[most:]
            self.clear()
            self.update(newest)


@dataclass
class Requests:
    """Every line in, rows out."""

    open: dict[Any, Open] = field(default_factory=dict)
    _done: Remembered = field(default_factory=Remembered)
    _asked: Remembered = field(default_factory=Remembered)
    _roots: Remembered = field(default_factory=Remembered)
    _turns: Remembered = field(default_factory=Remembered)
    _streamed: dict[str | None, Any] = field(default_factory=dict)
    _compacted: dict[str | None, dict[str, str]] = field(default_factory=dict)
    _tools: int | None = None
    _talk: Talk = field(default_factory=Talk)

    def other(self, line: Line) -> None:
        """A line that is no answer, but may be what an answer is to."""
        root = None
        if line.uuid is not None:
            self._asked.keep(line.uuid, line.timestamp)
            if line.isSidechain and line.agentId is None:
                root = self._root(line)
        if line.message is not None and line.type == "user":
            side = line.isSidechain if line.parent_tool_use_id is None else True
            self._talk.heard(self._chain(line, root, side=side)[0], line.message)

    def _root(self, line: Line) -> str | None:
        """First line of the side chain: it has no other name in older transcripts."""
        root = self._roots.get(line.parentUuid, line.parentUuid or line.uuid)
        if line.uuid is not None:
            self._roots.keep(line.uuid, root)
        return root

    def compaction(self, line: Line) -> None:
        """The history was summed up: the next prompt is another one, and shorter."""
        told = opened(line.compactMetadata)
        tags = {
            "compaction": told["trigger"] if told.get("trigger") in ("auto", "manual") else "told"
        }
        for name, tag in (("preTokens", "from"), ("postTokens", "to")):
            if (
                isinstance(count := told.get(name), int)
                and not isinstance(count, bool)
                and count > 0
            ):
                tags[f"compacted_{tag}_tokens"] = str(count)
        session = line.sessionId or line.session_id
        self._compacted[session] = tags
        self._talk.forget(session)

    def begin(self, line: Line) -> None:
        """First line of a headless run."""
        if line.tools:
            with suppress(msgspec.DecodeError):
                self._tools = len(msgspec.json.decode(line.tools, type=list[msgspec.Raw]))

    def event(self, line: Line) -> bool:
        """An event of the vendor's stream, which has the last word on its answer; False = none."""
        value = opened(line.event)
        chain = line.parent_tool_use_id
        if value.get("type") == "message_start":
            message = value.get("message")
            self._streamed[chain] = message.get("id") if isinstance(message, dict) else None
        if value.get("type") != "message_delta" or not isinstance(value.get("usage"), dict):
            return False
        # The line with the answer's blocks comes before the event that ends it.
        one = self.open.get(self._streamed.get(chain))
        if one is None:
            return False
        try:
            told = msgspec.convert(value["usage"], Usage)
        except msgspec.ValidationError:
            raise Bad("'usage' is no object of whole, non-negative counts: not counted") from None
        one.output += (told.output_tokens or 0) - (one.usage.output_tokens or 0)
        for name in ("input_tokens", "output_tokens", "cache_read_input_tokens",
                     "cache_creation_input_tokens"):  # fmt: skip
            if (count := getattr(told, name)) is not None:
                setattr(one.usage, name, count)
        delta = value.get("delta")
        if one.line.message is not None and isinstance(delta, dict):
            reason = delta.get("stop_reason")
            one.line.message.stop_reason = reason if isinstance(reason, str) else None
        return True

    def answer(self, line: Line, usage: Usage, record: int, sink: Sink) -> str:
        """A line with usage; why it is not used, or an empty text."""
        stamp = line.timestamp
        now = moment(stamp)
        if now is None and stamp is not None:
            now = sink.time(record, "timestamp", stamp)
        side = line.isSidechain if line.parent_tool_use_id is None else True
        root = self._root(line) if side and line.agentId is None else None
        key = self._key(line, side)
        if key is not None and (known := self.open.get(key)) is not None:
            if side and known.sidechain is False:
                return _COPY
            if known.sidechain and not side:
                known.session, known.parent_session, known.sidechain = self._chain(
                    line, root, side=side
                )
            self._more(known, line, usage, now)
            if line.message is not None:
                self._talk.said(known.session, line.message)
            return ""
        if key is not None and key in self._done:
            return _COPY
        self._new(key, record, line, usage, now, (side, root))
        return ""

    def _key(self, line: Line, side: bool | None) -> Any:  # noqa: ANN401, FBT001
        """What the lines of one request have in common; None where nothing says it.

        The answer's id is its own. Two request ids under one of them are two requests, unless one
        is a side chain's copy.
        """
        mid = line.message.id if line.message else None
        if not mid:
            return ("request", line.requestId) if line.requestId else None
        one = self.open.get(mid)
        if one is None or line.requestId is None or one.line.requestId in (None, line.requestId):
            return mid
        return mid if side or one.sidechain else (mid, line.requestId)

    def _chain(
        self, line: Line, root: str | None, *, side: bool | None
    ) -> tuple[str | None, str | None, bool | None]:
        """Session, the session that started it, and whether it is a side chain."""
        own = line.sessionId or line.session_id
        if not side:
            return own, None, side
        name = line.agentId or line.parent_tool_use_id or root
        return (f"{own or ''}/{name}" if name else own), own, side

    def _more(self, known: Open, line: Line, usage: Usage, now: int | None) -> None:
        """Another line of a request."""
        known.lines += 1
        output = usage.output_tokens or 0
        known.output += output
        if now is not None:
            known.end_ns = max(now, known.end_ns or now)
        if output >= (known.usage.output_tokens or 0):
            if line.requestId is None:
                line.requestId = known.line.requestId
            known.line, known.usage = line, usage
        elif known.line.requestId is None:
            known.line.requestId = line.requestId

    def _new(
        self, key: Any, record: int, line: Line, usage: Usage, now: int | None,  # noqa: ANN401
        place: tuple[bool | None, str | None],
    ) -> None:  # fmt: skip
        asked = moment(self._asked.get(line.parentUuid))
        if asked is not None and (now is None or not asked <= now <= asked + _LONGEST_NS):
            asked = None
        session, parent, side = self._chain(line, place[1], side=place[0])
        turn = self._turns.get(session, 0) + 1
        self._turns.keep(session, turn)
        one = Open(
            record, line, usage, session, parent, side, turn, now if asked is None else asked,
            asked is not None, now, usage.output_tokens, usage.output_tokens or 0,
            self._talk.so_far(session),
        )  # fmt: skip
        if self._compacted and not side:
            one.tags |= self._compacted.pop(session, {})
        if key is None:
            # Nothing says whether it is told again, within this file or in another.
            one.tags["dedupe"] = "unknown"
            key = ("record", record)
        self.open[key] = one
        if line.message is not None:
            self._talk.said(session, line.message)

    def failed(self, line: Line, record: int, sink: Sink) -> None:
        """An attempt that failed and is tried again."""
        facts = Facts()
        inner = told = opened(line.error)
        for _ in range(2):  # the SDK's error holds the answer's body, which holds the vendor's
            inner = inner["error"] if isinstance(inner.get("error"), dict) else inner
        learn_error(facts, inner)
        status = int_or_none(told.get("status"))
        if status is not None and 400 <= status <= 599:
            facts.learn("status", status)
        session, parent, side = self._chain(line, None, side=line.isSidechain)
        attempt = line.retryAttempt
        request_id = first(v for v in (told.get("requestID"), told.get("requestId")) if v)
        sink.add(
            "request", record, vantage="client", session_id=session, parent_session_id=parent,
            is_sidechain=side, start_ns=sink.time(record, "timestamp", line.timestamp),
            clock="wall", attempt=attempt if attempt and attempt > 0 else None,
            request_id=request_id if isinstance(request_id, str) else line.requestId,
            **facts.columns,
        )  # fmt: skip

    def close(self, sink: Sink, most: int = 0) -> None:
        """Rows of the oldest requests, until ``most`` are open."""
        rows = []
        for key in list(self.open)[: max(0, len(self.open) - most)]:
            one = self.open.pop(key)
            self._done.keep(key, None, _REMEMBERED)
            rows.append(self._row(one, sink))
        if rows:
            columns = zip(_COLUMNS, zip(*rows, strict=True), strict=True)
            told = {name: some for name, some in columns if any(map(_is_told, some))}
            sink.tables.setdefault("request", []).append(columns_table("request", told))

    def _row(self, one: Open, sink: Sink) -> tuple[Any, ...]:
        """Values of ``_COLUMNS``."""
        line, usage, message = one.line, one.usage, one.line.message
        special, diagnosed = usage.special(), message is not None and message.diagnostics
        told = self._beside(one, sink) if special or diagnosed or one.tags else {}
        reason = message.stop_reason if message else msgspec.UNSET
        span = None
        if one.asked and one.start_ns is not None and one.end_ns is not None:
            span = one.end_ns - one.start_ns
            span = span if span <= _LONGEST_NS else None
        return (
            one.record,
            "client",
            _text(line.requestId),
            _text(message.id if message else None),
            _text(one.session),
            one.turn,
            _text(one.parent_session),
            one.sidechain,
            _text(message.model if message else None),
            one.start_ns,
            None if one.start_ns is None else "wall",
            None if span is None else "stamps",
            span,
            None if reason is msgspec.UNSET else reason is not None,
            one.lines,
            one.output,
            one.first_output,
            None if one.sidechain else self._tools,
            told.get("cache_diagnosis"),
            told.get("cache_missed_tokens"),
            True if "compaction" in one.tags else None,
            _text(usage.speed),
            *(one.made_of or _UNTOLD),
            _finish(reason) if isinstance(reason, str) else None,
            _text(usage.service_tier),
            None if line.costUSD is None else _money(line.costUSD),
            *usage.buckets().values(),
        )

    def _beside(self, one: Open, sink: Sink) -> dict[str, Any]:
        """Adds the tags of a request, and gives what the vendor said of its cache."""
        usage, message = one.usage, one.line.message
        facts = Facts(tags=one.tags)
        if usage.special():
            learn_usage(facts, usage.object())
        if message is not None and message.diagnostics:
            learn_answer(facts, {"diagnostics": opened(message.diagnostics)})
        for name, value in sorted(facts.tags.items()):
            sink.add("request_tag", one.record, name=name, value=value)
        return facts.columns


_COLUMNS = (
    "record", "vantage", "request_id", "response_id", "session_id", "turn", "parent_session_id",
    "is_sidechain", "model", "start_ns", "clock", "timing", "e2e_ns", "usage_final",
    "usage_records", "usage_records_output_tokens", "usage_first_output_tokens", "tools_count",
    "cache_diagnosis", "cache_missed_tokens", "is_compacted", "speed", *TALK_COLUMNS,
    "finish_reason", "service_tier", "reported_cost_usd", *USAGE_COLUMNS,
)  # fmt: skip
_UNTOLD = (None,) * len(TALK_COLUMNS)
_is_told = partial(is_not, None)
_finish = lru_cache(64)(finish_word)
_COPY = "copy of an answer that was read before"


def _text(value: str | None) -> str | None:
    return clean(value) if value else None


def _money(value: float | None) -> Any:  # noqa: ANN401
    try:
        return usd(value)
    except Bad:
        return None
