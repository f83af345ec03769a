"""Sessions of the pi coding agent: a tree of entries, one a line, with the usage of each answer.

A branch is a new file that copies the entries before it: their ids and times stay, so that they
count once.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip, objects, usd
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._thread import Thread
from analyzer.readers._transcript import (
    NO_USAGE,
    WRITTEN,
    compaction_tags,
    contradiction,
    count,
    failure,
    ms,
    ms_moment,
    read_session,
    status_of,
    text,
)
from analyzer.readers._usage import token_buckets
from analyzer.readers._vendor_facts import finish_word

_SILENT = {
    "model_change", "thinking_level_change", "branch_summary", "custom", "custom_message", "label",
    "session_info",
}  # fmt: skip
_TOOL = "sum over the requests a tool made of its own"
_PARTS = ("input", "output", "cacheRead", "cacheWrite")


def probe(head: Head) -> Claim:
    """``type: session`` with a ``version``, or messages whose usage has ``totalTokens``."""
    some = objects(head)
    if not some:
        return Claim(0, "its first lines are not JSON objects")
    for one in some:
        if one.get("type") == "session" and "version" in one and "id" in one:
            return Claim(1, "")
        if one.get("type") == "message" and "parentId" in one:
            usage = _usage_of(one)
            if usage is not None and "totalTokens" in usage and "input" in usage:
                return Claim(1, "")
    kinds = {one.get("type") for one in some if isinstance(one.get("type"), str)}
    return Claim(0.3 if "session" in kinds else 0, "it has no 'session' line with a 'version'")


def _usage_of(value: dict[str, Any]) -> dict[str, Any] | None:
    message = value.get("message")
    usage = message.get("usage") if isinstance(message, dict) else None
    return usage if isinstance(usage, dict) else None


class _Session:
    """One file: its session, and how many answers it had."""

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {}
        self._calls = 0
        self._compacted: dict[str, str] = {}
        self._said = Thread()

    def take(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        kind = value.get("type")
        if kind == "session":
            self._columns = {"session_id": text(value, "id"), "parent_session_id": _parent(value)}
        elif kind == "message":
            self._message(value, record, sink)
        elif kind == "compaction":
            self._compacted = compaction_tags(count(value, "tokensBefore"))
            self._said.forget()
            self._said.content("user", text(value, "summary"))
        elif isinstance(kind, str) and kind in _SILENT:
            raise Skip(NO_USAGE)
        else:
            raise Bad("a type of entry this reader does not know; if it tells usage, report it")

    def _message(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        message, usage = value.get("message"), _usage_of(value)
        if not isinstance(message, dict):
            raise Bad("a message without 'message'")
        made_of = self._said.columns()
        self._said.message(message)
        if usage is None:
            raise Skip(NO_USAGE)
        if message.get("role") != "assistant":
            raise Skip(_TOOL)
        self._calls += 1
        wrong = contradiction(sink, record, wrong=not _adds_up(usage))
        sent = ms_moment(message.get("timestamp"))
        if sent is None and value.get("timestamp") is not None:
            sent = sink.time(record, "timestamp", value.get("timestamp"))
            sink.assumed.add(WRITTEN)
        entry = text(value, "id")
        own = f"{entry}@{sent // 1_000_000}" if entry and sent is not None else entry
        reason = text(message, "stopReason")
        failed = reason in ("error", "aborted")
        error = failure(reason, text(message, "errorMessage")) if failed else None
        # An answer that never came keeps the zeros it was made with.
        told = _buckets(usage) if not failed or any(count(usage, one) for one in _PARTS) else {}
        sink.add(
            "request", record, vantage="client", **self._columns, turn=self._calls,
            request_id=own,
            response_id=text(message, "responseId"), model=text(message, "model"),
            provider=text(message, "provider"), start_ns=sent,
            clock=None if sent is None else "wall", **_durations(message), **told, **wrong,
            usage_final=None if failed else True,
            finish_reason=None if failed else finish_word(_camel(reason)),
            error=error, status=status_of(error),
            reported_cost_usd=_cost(usage), **made_of,
            is_compacted=True if self._compacted else None,
        )  # fmt: skip
        for name, tag in self._compacted.items():
            sink.add("request_tag", record, name=name, value=tag)
        self._compacted = {}

    def finish(self, sink: Sink) -> None:
        """Nothing waits."""


def _parent(header: dict[str, Any]) -> str | None:
    """The session it was branched from: its id ends the name of that file."""
    path = text(header, "branchedFrom") or text(header, "parentSession")
    if path is None:
        return None
    stem = PurePosixPath(path.replace("\\", "/")).name.removesuffix(".jsonl")
    return stem.rpartition("_")[2] or None


def _adds_up(usage: dict[str, Any]) -> bool:
    total = count(usage, "totalTokens")
    return total is None or total == sum(count(usage, name) or 0 for name in _PARTS)


def _buckets(usage: dict[str, Any]) -> dict[str, Any]:
    """Exclusive: the input leaves out what was read from or written to the cache."""
    given, made, read, written = (count(usage, name) for name in _PARTS)
    told = {
        "input_tokens": given,
        "output_tokens": made,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }
    columns = token_buckets({name: one for name, one in told.items() if one is not None})
    if not columns:
        return {}
    long, thought = count(usage, "cacheWrite1h"), count(usage, "reasoning")
    if long is not None and written is not None and long <= written:
        columns["cache_write_long_tokens"] = long
        columns["cache_write_unknown_tokens"] = written - long
    if thought is not None and made is not None and thought <= made:
        columns |= {"output_visible_tokens": made - thought, "output_reasoning_tokens": thought}
    return columns | {"usage_convention": "exclusive"}


def _durations(message: dict[str, Any]) -> dict[str, Any]:
    """What oh-my-pi, which writes the same form, adds to an answer."""
    told = {
        f"{ours}_ns": value
        for ours, theirs in (("ttft", "ttft"), ("e2e", "duration"))
        if (value := ms(message, theirs)) is not None
    }
    return told | {"timing": "stated"} if told else {}


def _camel(reason: str | None) -> str | None:
    return {"toolUse": "tool_use"}.get(reason, reason) if reason else None


def _cost(usage: dict[str, Any]) -> Decimal | None:
    """What it says it cost; 0 for tokens means that it knew no price."""
    cost = usage.get("cost")
    total = cost.get("total") if isinstance(cost, dict) else None
    if isinstance(total, bool) or not isinstance(total, (int, float)) or total <= 0:
        return None
    try:
        return usd(total)
    except Bad:
        return None


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage client an answer."""
    yield from read_session(file, options, _Session())


READER = Reader(
    title="pi coding agent sessions (JSON Lines)",
    record_unit="line",
    gives=("request", "request_tag"),
    probe=probe,
    read=read,
    docs="https://github.com/badlogic/pi-mono; ~/.pi/agent/sessions",
    cannot="TTFT and how long an answer took, unless oh-my-pi wrote it; in older versions "
    "reasoning tokens apart from the output and lifetimes of cache writes; requests of compactions",
    enable="send pi through a gateway that logs its requests, and add that log",
    facts=(("compaction", "tags compaction and compacted_from_tokens on the next request"),),
    checked_against="a public session of a reader's test data",
)
