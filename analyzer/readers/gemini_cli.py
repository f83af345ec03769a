"""Gemini CLI sessions (``chats/session-*.json`` and ``.jsonl``) and its headless JSON output.

The JSON Lines form writes a message again each time it changes: its last form counts, once. A
rewind takes messages out of the conversation, not off the bill, so their rows stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._errors import error_class
from analyzer.readers._file import BOM, Head, InputFile
from analyzer.readers._json_stream import Item, each_item, is_entry
from analyzer.readers._jsonl import Bad, Sink, Skip, object_of, objects
from analyzer.readers._part_blocks import content_pieces, message_pieces
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt
from analyzer.readers._thread import Sums, Thread, sums_of
from analyzer.readers._transcript import (
    NO_USAGE,
    WRITTEN,
    contradiction,
    count,
    ms,
    read_session,
    sound,
    text,
    told_again,
    told_once,
)
from analyzer.readers._usage import token_buckets

_MESSAGES = [("messages",)]
_HEADER = {"sessionId", "projectHash", "startTime", "lastUpdated"}
_SILENT = {"user", "info", "error", "warning", "model"}
_KEY = re.compile(rb'(?<!\\)"(projectHash|sessionId|messages|stats|models)"\s*:')
_OPEN_MESSAGES = 20_000
"""So many messages wait for a later form of themselves; older ones are settled."""
_SUMS = (
    "the sums of a run over {n} requests are no request: ingest its session file under "
    "~/.gemini/tmp, or record telemetry to a file, which has a record a request"
)


def probe(head: Head) -> Claim:
    """``projectHash`` with ``messages``, its JSON Lines form, or ``stats.models``."""
    some = objects(head, 5)
    for one in some:
        if isinstance(one.get("projectHash"), str) and "sessionId" in one:
            return Claim(1, "")
        if isinstance(one.get("messages"), list) and "projectHash" in one:
            return Claim(1, "")
        if _headless(one) is not None:
            return Claim(1, "")
    begins = head.data.removeprefix(BOM).lstrip()[:1] == b"{"
    if some and not (begins and len(some) < len(head.lines)):
        return Claim(0, "its JSON has no 'projectHash'")
    if not begins:
        return Claim(0, "it is no JSON object")
    keys = {match[1] for match in _KEY.finditer(head.data)}
    if b"projectHash" in keys and keys & {b"messages", b"sessionId"}:
        return Claim(1, "")
    if keys >= {b"stats", b"models"} and b'"totalLatencyMs"' in head.data:
        return Claim(1, "")
    return Claim(0.3 if b"projectHash" in keys else 0, "it has no 'messages' with a 'projectHash'")


def _headless(value: dict[str, Any]) -> dict[str, Any] | None:
    """``stats.models`` of the output of ``--output-format json``."""
    stats = value.get("stats")
    models = stats.get("models") if isinstance(stats, dict) else None
    if not isinstance(models, dict) or not models:
        return None
    known = all(
        isinstance(one, dict) and isinstance(one.get("api"), dict) for one in models.values()
    )
    return models if known else None


class _Chat:
    """One session: its header, and the messages that may still be told again."""

    def __init__(self) -> None:
        self._session: dict[str, Any] = {}
        self._open: dict[str, tuple[int, dict[str, Any]]] = {}
        self._calls = 0
        self._said = Thread()
        self._forms: dict[str, Sums] = {}

    def take(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        if "$rewindTo" in value:
            self._rewind(value["$rewindTo"])
            raise Skip("rewind of the conversation: what it takes back was billed")
        if "$set" in value or value.keys() & _HEADER:
            self._patch(value, record, sink)
        elif (models := _headless(value)) is not None:
            self.headless(models, text(value, "session_id"), record, sink)
        else:
            self.message(value, record, sink)

    def _patch(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        """The header, or a change of it. Messages it carries were billed, whatever it takes out."""
        told = value.get("$set", value)
        if not isinstance(told, dict):
            raise Bad("'$set' is no object")
        self.header(told)
        messages = told.get("messages")
        for message in messages if isinstance(messages, list) else ():
            if isinstance(message, dict) and isinstance(message.get("tokens"), dict):
                self.message(message, record, sink)

    def header(self, told: dict[str, Any]) -> None:
        if session := text(told, "sessionId"):
            self._session["session_id"] = session
        if kind := text(told, "kind"):
            self._session["is_sidechain"] = kind == "subagent"

    def message(self, value: dict[str, Any], record: int, sink: Sink) -> None:
        kind, tokens = value.get("type"), value.get("tokens")
        if not isinstance(kind, str):
            raise Bad("no 'type': neither a message nor a change of the session")
        made_of = self._said.columns()
        if kind in ("user", "gemini"):
            self._hear(kind, value)
        if kind in _SILENT:
            raise Skip(NO_USAGE)
        if kind != "gemini":
            raise Bad("a type of message this reader does not know; if it tells usage, report it")
        if not isinstance(tokens, dict):
            raise Skip(NO_USAGE)
        own = text(value, "id")
        at, row = self._open.pop(own or "", (record, {"turn": self._calls + 1} | made_of))
        self._calls = max(self._calls, row["turn"])
        now = sink.time(record, "timestamp", value.get("timestamp"))
        if now is not None:
            sink.assumed.add(WRITTEN)
        told = told_again(row, _made(tokens)) if "usage_records" in row else None
        row |= {"request_id": own, "model": text(value, "model"), "start_ns": now}
        row |= {"clock": None if now is None else "wall", "usage_final": True}
        row.pop("usage_contradiction", None)
        row |= token_buckets(_usage(tokens)) | (told or told_once(_made(tokens)))
        row |= contradiction(sink, record, wrong=not _adds_up(tokens))
        row = sound(sink, record, row)
        if own is None:
            self._add(at, row, sink)
            return
        self._open[own] = (at, row)
        if len(self._open) > _OPEN_MESSAGES:
            first = next(iter(self._open))
            self._add(*self._open.pop(first), sink)

    def _hear(self, kind: str, value: dict[str, Any]) -> None:
        """What was said; a later form of a message stands for the one before."""
        own, sums = text(value, "id"), _sums(kind, value)
        before = self._forms.get(own, {}) if own else {}
        self._said.add(sums)
        self._said.take_back(before)
        if own:
            self._forms[own] = sums
            if len(self._forms) > _OPEN_MESSAGES:
                del self._forms[next(iter(self._forms))]

    def _rewind(self, own: object) -> None:
        """The message and all after it are no part of the conversation any more."""
        if not isinstance(own, str) or own not in self._forms:
            return
        while self._forms:
            name, sums = self._forms.popitem()
            self._said.take_back(sums)
            if name == own:
                return

    def headless(
        self, models: dict[str, Any], session: str | None, record: int, sink: Sink
    ) -> None:
        """The sums of a run a model; only where that was one request they are its own."""
        for name, one in models.items():
            made = count(one, "api", "totalRequests")
            if made != 1:
                reason = _SUMS.format(n=made if made is not None else "untold")
                sink.problems.append(Problem(record, reason))
                continue
            tokens = one.get("tokens")
            usage = _usage(tokens) if isinstance(tokens, dict) else None
            failed = bool(count(one, "api", "totalErrors"))
            e2e = ms(one, "api", "totalLatencyMs")
            sink.add(
                "request", record, vantage="client", session_id=session, model=name,
                e2e_ns=e2e, timing=None if e2e is None else "stated",
                error=error_class("error") if failed else None, **token_buckets(usage),
            )  # fmt: skip

    def _add(self, record: int, row: dict[str, Any], sink: Sink) -> None:
        own, session = row.get("request_id"), self._session.get("session_id")
        row["request_id"] = f"{session}/{own}" if session and own else own
        sink.add("request", record, vantage="client", **self._session, **row)

    def finish(self, sink: Sink) -> None:
        """All messages have their last form."""
        for record, row in self._open.values():
            self._add(record, row, sink)
        self._open = {}


def _sums(kind: str, value: dict[str, Any]) -> Sums:
    """Lengths of one message with its thoughts, its calls of tools and their results."""
    thoughts, calls = value.get("thoughts"), value.get("toolCalls")
    pieces = list(content_pieces("user" if kind == "user" else "assistant", value.get("content")))
    for thought in thoughts if isinstance(thoughts, list) else ():
        pieces += content_pieces("reasoning", text(thought, "description"))
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            pieces += message_pieces({"role": "assistant", "tool_calls": [call]})
            pieces += content_pieces("tool_result", call.get("result"))
    return sums_of(pieces)


def _usage(tokens: dict[str, Any]) -> dict[str, Any]:
    """The vendor's own names: the prompt includes what was cached, not what tools added."""
    prompt = count(tokens, "input")
    told = {
        "promptTokenCount": count(tokens, "prompt") if prompt is None else prompt,
        "candidatesTokenCount": _made(tokens),
        "cachedContentTokenCount": count(tokens, "cached"),
        "thoughtsTokenCount": count(tokens, "thoughts"),
        "toolUsePromptTokenCount": count(tokens, "tool"),
    }
    return {name: value for name, value in told.items() if value is not None}


def _made(tokens: dict[str, Any]) -> int | None:
    made = count(tokens, "output")
    return count(tokens, "candidates") if made is None else made


def _adds_up(tokens: dict[str, Any]) -> bool:
    total, given, made = count(tokens, "total"), count(tokens, "input"), count(tokens, "output")
    if total is None or given is None or made is None:
        return True
    return total == given + made + (count(tokens, "thoughts") or 0) + (count(tokens, "tool") or 0)


def _is_lines(head: Head) -> bool:
    """Whether each line is an object of its own; else the file is one document."""
    if not head.lines:
        return False
    try:
        first = object_of(head.lines[0])
    except Bad:
        return False
    return len(head.lines) > 1 or not head.whole or "messages" not in first


def _document(file: InputFile, options: Options) -> Iterator[Batch]:
    sink, chat, records = Sink(zone=options.zone), _Chat(), 0
    header: dict[str, Any] = {}
    for item in each_item(file, _MESSAGES):
        if not item.broken and not is_entry(item.path, {("messages",)}):
            if len(item.path) == 1 and isinstance(item.path[0], str):
                header[item.path[0]] = item.value
                chat.header({item.path[0]: item.value})
            continue
        records += 1
        try:
            _take_item(item, chat, records, sink)
        except Skip as skip:
            sink.ignored[str(skip)] += 1
        except Bad as bad:
            problem = Problem(records, str(bad), excerpt(str(item.value)), item.offset)
            sink.problems.append(problem)
    if (models := _headless(header)) is not None:
        records += 1
        chat.headless(models, text(header, "session_id"), records, sink)
    chat.finish(sink)
    yield sink.batch(records)


def _take_item(item: Item, chat: _Chat, record: int, sink: Sink) -> None:
    if item.broken:
        raise Bad(item.broken)
    if not isinstance(item.value, dict):
        raise Bad("a JSON value, but no message")
    chat.message(item.value, record, sink)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage client a message of the model."""
    if _is_lines(file.head):
        yield from read_session(file, options, _Chat())
    else:
        yield from _document(file, options)


READER = Reader(
    title="Gemini CLI sessions (chats/session-*.json, .jsonl) and headless output",
    record_unit="message",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://github.com/google-gemini/gemini-cli; ~/.gemini/tmp/<project>/chats",
    cannot="when a request was sent, TTFT and how long it took (headless output of one request "
    "tells the last); requests apart where old versions wrote several into one message",
    enable="set telemetry.outfile: its api_response records have a duration a request",
    checked_against="public session files of readers' test data; the field names in the CLI's own "
    "source (0.61)",
)
