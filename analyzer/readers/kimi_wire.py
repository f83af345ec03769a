"""Kimi Code CLI wire logs: each step's request with its TTFT, taken apart by client and server.

``usage.record`` repeats the usage of the step before it; one that does not is of a request outside
the loop, such as a compaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip, objects
from analyzer.readers._parts import word_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._thread import AnsweredThread
from analyzer.readers._transcript import (
    AGAIN,
    NO_USAGE,
    WRITTEN,
    compaction_tags,
    count,
    ms,
    ms_moment,
    read_session,
    text,
)
from analyzer.readers._usage import token_buckets
from analyzer.readers._vendor_facts import finish_word

_FAMILIES = {
    "config", "context", "tools", "turn", "llm", "permission", "plan_mode", "plan", "goal",
    "full_compaction", "micro_compaction", "interaction", "file_history", "profile", "mcp",
    "swarm_mode", "cron", "task", "skill", "plugin",
}  # fmt: skip
"""First words of record types that tell no usage."""
_NAMELESS = "the file names no session: it is called by the time at which it was created"
_TAGS = {
    "request_build_ms": "llmRequestBuildMs",
    "server_first_token_ms": "llmServerFirstTokenMs",
    "client_consume_ms": "llmClientConsumeMs",
}


def probe(head: Head) -> Claim:
    """JSON lines of Kimi's own types: a protocol version, a loop event, a usage record."""
    some = objects(head)
    if not some:
        return Claim(0, "its first lines are not JSON objects")
    for one in some:
        kind = one.get("type")
        if kind == "metadata" and "protocol_version" in one:
            return Claim(1, "")
        if kind == "context.append_loop_event" and isinstance(one.get("event"), dict):
            return Claim(1, "")
        if kind == "usage.record" and isinstance(one.get("usage"), dict):
            return Claim(1, "")
    return Claim(0, "its JSON lines are of no type that Kimi writes")


class _Wire:
    """One agent's log: who it is, the request that is under way, and the usage told last."""

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {}
        self._asked: dict[str, Any] = {}
        self._sent_ns: int | None = None
        self._told: dict[str, Any] | None = None
        self._calls = 0
        self._compacted: dict[str, str] = {}
        self._said = AnsweredThread()

    def take(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        kind = value.get("type")
        if not isinstance(kind, str):
            raise Bad("no 'type': not a line that Kimi writes")
        event = value.get("event")
        if kind == "metadata":
            self._metadata(value, sink)
        elif kind == "turn.prompt" and text(value, "origin", "name") == "subagent":
            self._columns["is_sidechain"] = True
        elif kind == "llm.request":
            self._request(value)
        elif kind == "context.append_loop_event" and text(event, "type") == "step.end":
            self._step(event if isinstance(event, dict) else {}, value, record, sink)
        elif kind == "usage.record":
            self._record(value, record, sink)
        elif kind == "context.apply_compaction":
            before, after = count(value, "tokensBefore"), count(value, "tokensAfter")
            self._compacted = compaction_tags(before, after)
            self._said.forget()
            self._said.content("user", text(value, "summary"))
        elif kind.partition(".")[0] in _FAMILIES:
            self._hear(kind, value, event)
            raise Skip(NO_USAGE)
        else:
            raise Bad("a type of line this reader does not know; if it tells usage, report it")

    def _metadata(self, value: dict[str, Any], sink: Sink) -> None:
        session = text(value, "session_id") or text(value, "sessionId")
        created = count(value, "created_at")
        if session is None and created is not None:
            session = f"kimi-{created}"
            sink.assumed.add(_NAMELESS)
        self._columns["session_id"] = session

    def _request(self, value: dict[str, Any]) -> None:
        self._sent_ns = ms_moment(value.get("time"))
        self._asked = {
            "model": text(value, "model"),
            "provider": text(value, "provider"),
            "max_output_tokens": count(value, "maxTokens"),
            "effort": word_of(value.get("thinkingEffort")),
        }

    def _hear(self, kind: str, value: dict[str, Any], event: object) -> None:
        """What was said, by whomever."""
        if kind == "context.append_message":
            message = value.get("message")
            calls = message.get("toolCalls") if isinstance(message, dict) else None
            if isinstance(message, dict):
                self._said.message(message | {"tool_calls": calls})
        elif isinstance(event, dict):
            said = text(event, "type")
            if said == "content.part":
                part = event.get("part")
                if (thought := text(part, "think")) is not None:
                    self._said.content("reasoning", thought)
                else:
                    self._said.content("assistant", part)
            elif said == "tool.call":
                call = {"type": "tool_call", "name": event.get("name"), "args": event.get("args")}
                self._said.content("assistant", call)
            elif said == "tool.result":
                result = event.get("result")
                told = result.get("output") if isinstance(result, dict) else result
                self._said.content("tool_result", told)

    def _step(self, event: dict[str, Any], value: dict[str, Any], record: int, sink: Sink) -> None:
        usage = event.get("usage")
        if not isinstance(usage, dict):
            raise Skip(NO_USAGE)
        self._told = usage
        ttft = ms(event, "llmFirstTokenLatencyMs")
        stream = ms(event, "llmStreamDurationMs")
        answer = text(event, "messageId")
        columns = {
            "request_id": answer,
            "response_id": answer,
            "finish_reason": finish_word(event.get("finishReason")),
            "ttft_ns": ttft,
            # The stream is what the server took and what the client did between its parts.
            "decode_ns": ms(event, "llmServerDecodeMs"),
            "e2e_ns": None if ttft is None or stream is None else ttft + stream,
            "streamed": None if stream is None else True,
            "timing": None if ttft is None else "stated",
        }
        columns |= self._said.told() | ({"is_compacted": True} if self._compacted else {})
        self._add(usage, columns | self._asked, value, record, sink)
        for name, field in _TAGS.items():
            if (told := count(event, field)) is not None:
                sink.add("request_tag", record, name=name, value=str(told))
        for name, tag in self._compacted.items():
            sink.add("request_tag", record, name=name, value=tag)
        self._sent_ns, self._compacted = None, {}

    def _record(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        usage = value.get("usage")
        if not isinstance(usage, dict):
            raise Bad("a usage.record without usage")
        told, self._told = self._told, None
        if usage == told:
            raise Skip(AGAIN)
        self._add(usage, {"model": text(value, "model")}, value, record, sink)
        self._sent_ns = None

    def _add(
        self, usage: dict[str, Any], columns: dict[str, Any], value: dict[str, Any], record: int,
        sink: Sink,
    ) -> None:  # fmt: skip
        self._calls += 1
        start = self._sent_ns
        if start is None and (start := ms_moment(value.get("time"))) is not None:
            sink.assumed.add(WRITTEN)
        if columns.get("request_id") is None and (session := self._columns.get("session_id")):
            columns["request_id"] = f"{session}#{self._calls}"
        sink.add(
            "request", record, vantage="client", **self._columns, turn=self._calls, start_ns=start,
            clock=None if start is None else "wall", usage_final=True, **columns,
            **_buckets(usage),
        )  # fmt: skip

    def finish(self, sink: Sink) -> None:
        """Nothing waits."""


def _buckets(usage: dict[str, Any]) -> dict[str, Any]:
    """Exclusive: ``inputOther`` is what is neither read from nor written to the cache."""
    told = {
        "input_tokens": count(usage, "inputOther"),
        "output_tokens": count(usage, "output"),
        "cache_read_input_tokens": count(usage, "inputCacheRead"),
        "cache_creation_input_tokens": count(usage, "inputCacheCreation"),
    }
    return token_buckets({name: one for name, one in told.items() if one is not None})


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage client a step."""
    yield from read_session(file, options, _Wire())


READER = Reader(
    title="Kimi Code CLI wire logs (agents/*/wire.jsonl)",
    record_unit="line",
    gives=("request", "request_tag"),
    probe=probe,
    read=read,
    docs="https://github.com/MoonshotAI/kimi-cli; ~/.kimi/sessions",
    cannot="the server's queue apart from its prefill: server_first_token_ms is both, with the "
    "network; reasoning tokens apart from the output; which session a sub-agent belongs to; "
    "attempts that failed before a step ended",
    enable="nothing to switch on; a gateway's log beside it shows the network and the retries",
    checked_against="a public sub-agent log of protocol 1.4",
)
