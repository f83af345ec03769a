"""GitHub Copilot CLI session events: the output of each answer; the input only in sums.

The sums at the end of a session cover its requests once more and are not added to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip, objects
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._thread import Thread
from analyzer.readers._transcript import (
    NO_USAGE,
    WRITTEN,
    compaction_tags,
    count,
    failure,
    read_session,
    sound,
    status_of,
    text,
    told_again,
    told_once,
)

_FAMILIES = {
    "session", "assistant", "tool", "user", "system", "hook", "subagent", "abort", "skill",
    "permission", "command", "external_tool", "user_input", "elicitation", "exit_plan_mode",
    "pending_messages",
}  # fmt: skip
"""First words of event types that tell no request."""
_SUMS = "sums over requests, some of which stand in the session"


def probe(head: Head) -> Claim:
    """JSON lines with ``data``, ``id`` and ``parentId``, of a type that Copilot writes."""
    some = objects(head)
    if not some:
        return Claim(0, "its first lines are not JSON objects")
    for one in some:
        kind = one.get("type")
        told = isinstance(one.get("data"), dict) and {"id", "timestamp", "parentId"} <= one.keys()
        if told and isinstance(kind, str) and kind.startswith(("session.", "assistant.")):
            return Claim(1, "")
    return Claim(0, "its JSON lines are no events of a Copilot session")


class _Session:
    """One session: the last answer waits for the other parts of itself."""

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {}
        self._model: str | None = None
        self._last: tuple[int, dict[str, Any]] | None = None
        self._compacted: dict[str, str] = {}
        self._calls = 0
        self._said = Thread()

    def take(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        kind, data = value.get("type"), value.get("data")
        if not isinstance(kind, str) or not isinstance(data, dict):
            raise Bad("no 'type' with 'data': not an event that Copilot writes")
        if kind == "session.start":
            self._columns["session_id"] = text(data, "sessionId")
            self._model = text(data, "selectedModel")
        elif kind == "session.model_change":
            self._model = text(data, "newModel") or self._model
        elif kind == "assistant.message":
            self._message(data, value, record, sink)
        elif kind == "session.error":
            self._error(data, value, record, sink)
        elif kind in ("session.truncation", "session.compaction_complete"):
            before = count(data, "preTruncationTokensInMessages")
            after = count(data, "postTruncationTokensInMessages")
            self._compacted = compaction_tags(before, after)
            self._said.forget()
        elif kind in ("session.shutdown", "session.usage_checkpoint", "subagent.completed"):
            raise Skip(_SUMS)
        elif kind.partition(".")[0] in _FAMILIES:
            self._hear(kind, data)
            raise Skip(NO_USAGE)
        else:
            raise Bad("a type of event this reader does not know; if it tells usage, report it")

    def _message(
        self, data: dict[str, Any], value: dict[str, Any], record: int, sink: Sink
    ) -> None:
        made, made_of = count(data, "outputTokens"), self._said.columns()
        self._said.content("reasoning", text(data, "reasoningText"))
        self._said.message({"role": "assistant", "content": data.get("content"),
                            "tool_calls": data.get("toolRequests")})  # fmt: skip
        if made is None:
            raise Skip(NO_USAGE)
        call = text(data, "apiCallId") or text(data, "requestId") or text(data, "messageId")
        if self._last is not None and call is not None and self._last[1]["request_id"] == call:
            row = self._last[1]
            row.update(told_again(row, made))
            row["output_visible_tokens"] = max(made, row["output_visible_tokens"] or 0)
            return
        self._calls += 1
        row = self._row(value, record, sink) | {
            "request_id": call,
            "response_id": text(data, "serviceRequestId"),
            "turn": self._calls,
            "model": text(data, "model") or self._model,
            "is_sidechain": text(data, "parentToolCallId") is not None,
            "output_visible_tokens": made,
            "usage_convention": "unknown",
            "is_compacted": True if self._compacted else None,
            **made_of,
        }
        row |= told_once(made)
        self.finish(sink)
        self._last = (record, sound(sink, record, row))
        for name, tag in self._compacted.items():
            sink.add("request_tag", record, name=name, value=tag)
        self._compacted = {}

    def _hear(self, kind: str, data: dict[str, Any]) -> None:
        """What was said by others than the model."""
        if kind in ("user.message", "system.message"):
            told = text(data, "transformedContent") or data.get("content")
            self._said.content(kind.partition(".")[0], told)
        elif kind == "tool.execution_complete":
            self._said.content("tool_result", text(data, "result", "content"))

    def _error(self, data: dict[str, Any], value: dict[str, Any], record: int, sink: Sink) -> None:
        status = count(data, "statusCode")
        if status is None or not 400 <= status <= 599:
            error = failure(text(data, "errorType"), text(data, "message"))
        else:
            error = f"http {status}"
        if error in (None, "error"):
            raise Skip(NO_USAGE)
        row = self._row(value, record, sink) | {"error": error, "status": status_of(error)}
        row |= {"request_id": text(data, "serviceRequestId"), "model": self._model}
        sink.add("request", record, **row)

    def _row(self, value: dict[str, Any], record: int, sink: Sink) -> dict[str, Any]:
        now = sink.time(record, "timestamp", value.get("timestamp"))
        if now is not None:
            sink.assumed.add(WRITTEN)
        clock = None if now is None else "wall"
        return {"vantage": "client", "start_ns": now, "clock": clock} | self._columns

    def finish(self, sink: Sink) -> None:
        """The last answer has all its parts."""
        if self._last is not None:
            sink.add("request", self._last[0], **self._last[1])
        self._last = None


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage client an answer; its input is not told."""
    yield from read_session(file, options, _Session())


READER = Reader(
    title="GitHub Copilot CLI session events (events.jsonl)",
    record_unit="line",
    gives=("request", "request_tag"),
    probe=probe,
    read=read,
    docs="https://github.com/github/copilot-cli; ~/.copilot/session-state",
    cannot="the input and what of it was cached: only their sums over a session are written, when "
    "it ends; reasoning tokens apart from the output; TTFT and durations",
    enable="send the CLI through a gateway that logs, or set its OpenTelemetry export and add that",
    facts=(("compaction", "tag compaction on the next request"),),
    checked_against="public session files, some values of which were taken out",
)
