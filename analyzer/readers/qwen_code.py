"""Qwen Code chats: the client's own telemetry of each API call, among the messages.

The usage of an answer stands in the telemetry, with a duration, and again in its message: it counts
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip, objects
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._thread import Thread
from analyzer.readers._times import DURATIONS
from analyzer.readers._transcript import (
    AGAIN,
    NO_USAGE,
    WRITTEN,
    count,
    failure,
    ms,
    read_session,
    sound,
    status_of,
    text,
    told_again,
    told_once,
)
from analyzer.readers._usage import token_buckets

_KINDS = {"user", "assistant", "system", "tool_result"}
_ENDED = "the start of a request is the time of its telemetry less its duration"
_NAMES = {
    "promptTokenCount": "input_token_count",
    "candidatesTokenCount": "output_token_count",
    "cachedContentTokenCount": "cached_content_token_count",
    "thoughtsTokenCount": "thoughts_token_count",
    "totalTokenCount": "total_token_count",
}
"""The vendor's names, and those of the telemetry."""


def probe(head: Head) -> Claim:
    """JSON lines of a session with ``systemPayload`` or ``usageMetadata`` beside ``uuid``."""
    some = objects(head)
    if not some:
        return Claim(0, "its first lines are not JSON objects")
    for one in some:
        if not {"uuid", "sessionId", "type"} <= one.keys():
            continue
        message = one.get("message")
        parts = isinstance(message, dict) and "parts" in message
        if parts or isinstance(one.get("systemPayload"), dict) or "usageMetadata" in one:
            return Claim(1, "")
    return Claim(0, "its JSON lines are no entries of a Qwen Code chat")


class _Chat:
    """One session: the last request waits for the message that repeats its usage."""

    def __init__(self) -> None:
        self._last: tuple[int, dict[str, Any], dict[str, int]] | None = None
        self._calls = 0
        self._said = Thread()

    def take(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        kind = value.get("type")
        if not isinstance(kind, str) or kind not in _KINDS:
            raise Bad("a type of entry this reader does not know; if it tells usage, report it")
        try:
            self._take(kind, value, record, sink)
        finally:
            if value.get("message"):
                self._said.message(value["message"])

    def _take(self, kind: str, value: dict[str, Any], record: int, sink: Sink) -> None:
        payload, usage = value.get("systemPayload"), value.get("usageMetadata")
        event = payload.get("uiEvent") if isinstance(payload, dict) else None
        if isinstance(event, dict) and "auth_type" in event:
            self._event(event, value, record, sink)
        elif kind == "assistant" and isinstance(usage, dict) and usage:
            self._message(usage, value, record, sink)
        else:
            raise Skip(NO_USAGE)

    def _event(self, event: dict[str, Any], value: dict[str, Any], record: int, sink: Sink) -> None:
        counts = _counts(event, list(_NAMES.values()))
        error = None
        name, words = text(event, "error_type"), text(event, "error_message")
        if name or words:
            status = count(event, "status_code")
            failed = status is not None and 400 <= status <= 599
            error = f"http {status}" if failed else failure(name, words) or "error"
        now = sink.time(record, "timestamp", value.get("timestamp"))
        e2e = ms(event, "duration_ms")
        start = now
        if now is not None and e2e in DURATIONS and e2e is not None:
            start = now - e2e
            sink.assumed.add(_ENDED)
        row = self._row(value, counts, start) | {
            "response_id": text(event, "response_id"),
            "model": text(event, "model"),
            "e2e_ns": e2e,
            "timing": None if e2e is None else "stated",
            "error": error,
            "status": status_of(error),
        }
        self._hold(record, row, counts, sink)

    def _message(
        self, usage: dict[str, Any], value: dict[str, Any], record: int, sink: Sink
    ) -> None:
        counts = _counts(usage, list(_NAMES))
        if not counts:
            raise Skip(NO_USAGE)
        if self._last is not None and self._last[2] == counts:
            row = self._last[1]
            row.update(told_again(row, counts.get("candidatesTokenCount")))
            self.finish(sink)
            raise Skip(AGAIN)
        now = sink.time(record, "timestamp", value.get("timestamp"))
        if now is not None:
            sink.assumed.add(WRITTEN)
        row = self._row(value, counts, now) | {"model": text(value, "model")}
        self._hold(record, row, counts, sink)

    def _row(
        self, value: dict[str, Any], counts: dict[str, int], start: int | None
    ) -> dict[str, Any]:
        self._calls += 1
        row: dict[str, Any] = {
            "vantage": "client",
            "request_id": text(value, "uuid"),
            "session_id": text(value, "sessionId"),
            "turn": self._calls,
            "start_ns": start,
            "clock": None if start is None else "wall",
            **self._said.columns(),
        }
        if counts:
            row |= _buckets(counts) | told_once(counts.get("candidatesTokenCount"))
            row["usage_final"] = True
        return row

    def _hold(self, record: int, row: dict[str, Any], counts: dict[str, int], sink: Sink) -> None:
        self.finish(sink)
        self._last = (record, sound(sink, record, row), counts)

    def finish(self, sink: Sink) -> None:
        """No message repeats the last request."""
        if self._last is not None:
            sink.add("request", self._last[0], **self._last[1])
        self._last = None


def _counts(holder: dict[str, Any], names: list[str]) -> dict[str, int]:
    """Under the vendor's names; counts of 0 are left out by one of the two places."""
    told = {ours: count(holder, name) for ours, name in zip(_NAMES, names, strict=True)}
    return {name: value for name, value in told.items() if value}


def _buckets(counts: dict[str, int]) -> dict[str, Any]:
    """Providers that speak OpenAI's API count the reasoning as output: the total tells."""
    thought, made = counts.get("thoughtsTokenCount", 0), counts.get("candidatesTokenCount", 0)
    inside = counts.get("totalTokenCount") == counts.get("promptTokenCount", 0) + made
    if thought and thought <= made and inside:
        counts = counts | {"candidatesTokenCount": made - thought}
    return token_buckets(counts)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage client an API call."""
    yield from read_session(file, options, _Chat())


READER = Reader(
    title="Qwen Code chats (JSON Lines)",
    record_unit="line",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://github.com/QwenLM/qwen-code; ~/.qwen/projects/*/chats",
    cannot="TTFT; requests of versions that wrote no telemetry have no duration either",
    enable="nothing to switch on; a gateway's log beside it shows the network and TTFT",
    checked_against="the field names of a public file whose values were all taken out",
)
