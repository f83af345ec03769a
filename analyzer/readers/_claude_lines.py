"""Lines of a Claude Code transcript: only the fields that tell of requests, never a text.

A transcript is mostly text. Every line is checked to be JSON, but what is no field of ours is
passed over without becoming an object.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from analyzer.readers._file import BOM
from analyzer.readers._jsonl import Bad, object_of
from analyzer.readers._rows import COUNTS, text_or_none
from analyzer.readers._times import TIMES
from analyzer.readers._usage import BUCKETS, token_buckets

Count = Annotated[int, msgspec.Meta(ge=0, le=COUNTS.last)]
NOT_ANSWERS = frozenset(
    {
        "user", "system", "summary", "attachment", "file-history-snapshot", "queue-operation",
        "progress", "permission-mode", "mode", "worktree-state", "agent-name", "custom-title",
        "ai-title", "last-prompt", "frame-link", "pr-link", "started", "relocated",
        "bridge-session", "tool_use", "tool_result", "result", "rate_limit_event",
        "tool_progress", "auth_status", "tool_use_summary", "keep_alive", "control_request",
        "control_response",
    }
)  # fmt: skip
"""Types of lines that are known to be no answer of a model."""


class Split(msgspec.Struct, gc=False):
    """Cache writes by lifetime."""

    ephemeral_5m_input_tokens: Count | None = None
    ephemeral_1h_input_tokens: Count | None = None


class Details(msgspec.Struct, gc=False):
    """What of the output was reasoning."""

    thinking_tokens: Count | None = None


class Tools(msgspec.Struct, gc=False):
    """Calls of tools that the vendor ran."""

    web_search_requests: Count | None = None
    web_fetch_requests: Count | None = None


class Pass(msgspec.Struct, gc=False):
    """One of several passes a request took."""

    type: str | None = None
    model: str | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_creation: Split | None = None


class Usage(msgspec.Struct, gc=False):
    """The plain part of an answer's usage; passes and thinking are told by the whole object."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_creation: Split | None = None
    output_tokens_details: Details | None = None
    total_tokens: Count | None = None
    iterations: list[Pass] | None = None
    server_tool_use: Tools | None = None
    service_tier: str | None = None
    speed: str | None = None
    inference_geo: str | None = None

    def object(self) -> dict[str, Any]:
        """It as the vendor's object, without what is not told."""
        told = msgspec.to_builtins(self)
        return {name: value for name, value in told.items() if value is not None}

    def buckets(self) -> dict[str, Any]:
        """``USAGE_COLUMNS``, all of them and in this order, as :func:`token_buckets` tells them."""
        if self._summed():
            return _UNTOLD | token_buckets(self.object())
        split, written = self.cache_creation or _NO_SPLIT, self.cache_creation_input_tokens
        short, long = split.ephemeral_5m_input_tokens, split.ephemeral_1h_input_tokens
        details = self.output_tokens_details
        thought = details.thinking_tokens if details else None
        visible = self.output_tokens
        return {
            "input_fresh_tokens": self.input_tokens,
            "cache_read_tokens": self.cache_read_input_tokens,
            "cache_write_short_tokens": short,
            "cache_write_long_tokens": long,
            "cache_write_unknown_tokens": (
                None if written is None else max(0, written - (short or 0) - (long or 0))
            ),
            "output_visible_tokens": visible if visible is None else visible - (thought or 0),
            "output_reasoning_tokens": thought,
            "usage_convention": "exclusive",
            "usage_contradiction": None,
        }

    def _summed(self) -> bool:
        """Its numbers are not simply the answer's."""
        details, split = self.output_tokens_details, self.cache_creation or _NO_SPLIT
        told = (split.ephemeral_5m_input_tokens or 0) + (split.ephemeral_1h_input_tokens or 0)
        return (
            self.total_tokens is not None
            or (self.cache_creation is not None and told != self.cache_creation_input_tokens)
            or (self.input_tokens is None and self.output_tokens is None)
            or (details is not None and (details.thinking_tokens or 0) > (self.output_tokens or 0))
            or any(one.type == "compaction" for one in self.iterations or ())
        )

    def special(self) -> bool:
        """It tells more than counts and tier: see :func:`learn_usage`."""
        tools = self.server_tool_use
        return (
            self.speed not in (None, "standard")
            or (self.inference_geo is not None and self.inference_geo != "not_available")
            or (tools is not None and bool(tools.web_search_requests or tools.web_fetch_requests))
            or any(one.type in _BESIDE for one in self.iterations or ())
        )


_BESIDE = ("compaction", "advisor_message")
_NO_SPLIT = Split()
USAGE_COLUMNS = (*BUCKETS, "usage_convention", "usage_contradiction")
_UNTOLD = dict.fromkeys(USAGE_COLUMNS)


_NOTHING = msgspec.Raw()


class Inner(msgspec.Struct, gc=False):
    """One of several things that a tool gave; only its length is looked at."""

    type: str | None = None
    text: str | None = None


class Block(msgspec.Struct, gc=False):
    """A part of a message; only its length is looked at."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    content: list[Inner] | str | None = None
    name: str | None = None
    input: msgspec.Raw = _NOTHING


class Message(msgspec.Struct, gc=False):
    """An answer, as the vendor's API gave it, or what it answers."""

    id: str | None = None
    model: str | None = None
    stop_reason: str | msgspec.UnsetType | None = msgspec.UNSET
    usage: Usage | None = None
    diagnostics: msgspec.Raw = _NOTHING


class Spoken(Message, gc=False):
    """The same with what was said."""

    content: list[Block] | str | None = None


class Line(msgspec.Struct, gc=False):
    """One line. Headless runs spell the session otherwise and name the tool that started them."""

    type: str | None = None
    subtype: str | None = None
    uuid: str | None = None
    parentUuid: str | None = None
    timestamp: str | None = None
    sessionId: str | None = None
    session_id: str | None = None
    parent_tool_use_id: str | None = None
    requestId: str | None = None
    isSidechain: bool | None = None
    agentId: str | None = None
    version: str | None = None
    costUSD: float | None = None
    message: Message | None = None
    compactMetadata: msgspec.Raw = _NOTHING
    event: msgspec.Raw = _NOTHING
    error: msgspec.Raw = _NOTHING
    retryAttempt: int | None = None
    tools: msgspec.Raw = _NOTHING


class Told(Line, gc=False):
    """A line whose message is told with its content."""

    message: Spoken | None = None


_decode = msgspec.json.Decoder(Told).decode
_decode_without_content = msgspec.json.Decoder(Line).decode
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - as the times it is taken from, which are UTC


def line_of(text: bytes) -> Line:
    """The line, or :class:`Bad`. A field of another type than ours is not told."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    value = object_of(text.removeprefix(BOM))
    try:
        line = _decode_without_content(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        line = _loosely(value)
    if (message := line.message) is not None:
        told = {name: getattr(message, name) for name in Message.__struct_fields__}
        line.message = Spoken(**told, content=_content(value["message"].get("content")))
    return line


def _content(content: Any) -> list[Block] | str | None:  # noqa: ANN401 - foreign JSON
    """Content some of which is of other types: as far as its lengths are told."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    return [_block(one) for one in content if isinstance(one, dict)]


def _block(one: dict[str, Any]) -> Block:
    told = {
        name: value
        for name in ("type", "text", "thinking", "name")
        if isinstance(value := one.get(name), str)
    }
    content, given = one.get("content"), one.get("input")
    inner: list[Inner] | str | None = content if isinstance(content, str) else None
    if isinstance(content, list):
        inner = [_inner(part) for part in content if isinstance(part, dict)]
    raw = _NOTHING if given is None else msgspec.Raw(msgspec.json.encode(given))
    return Block(**told, content=inner, input=raw)


def _inner(part: dict[str, Any]) -> Inner:
    kind, text = part.get("type"), part.get("text")
    return Inner(kind if isinstance(kind, str) else None, text if isinstance(text, str) else None)


def _loosely(value: dict[str, Any]) -> Line:
    """A line with fields of odd types; only odd usage is a problem, for it would be lost."""
    line = Line()
    for name in _TEXTS:
        setattr(line, name, text_or_none(value.get(name)))
    side = value.get("isSidechain")
    line.isSidechain = side if isinstance(side, bool) else None
    stamp = value.get("timestamp")
    line.timestamp = None if stamp is None else str(stamp)
    message = value.get("message")
    if not isinstance(message, dict):
        return line
    line.message = Message()
    for name in _MESSAGE_TEXTS:
        if name in message:
            setattr(line.message, name, text_or_none(message[name]))
    usage = message.get("usage")
    if usage is None:
        return line
    try:
        line.message.usage = msgspec.convert(usage, Usage, strict=False)
    except msgspec.ValidationError:
        raise Bad("'usage' is no object of whole, non-negative counts: not counted") from None
    return line


def opened(raw: msgspec.Raw) -> dict[str, Any]:
    """An object that was passed over at first; empty where there is none, or it is damaged."""
    try:
        value = msgspec.json.decode(raw) if raw else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


_TEXTS = (
    "type", "subtype", "uuid", "parentUuid", "sessionId", "session_id", "parent_tool_use_id",
    "requestId", "agentId", "version",
)  # fmt: skip
_MESSAGE_TEXTS = ("id", "model", "stop_reason")


def moment(text: str | None) -> int | None:
    """A time as transcripts write it (UTC, milliseconds); None where it is written otherwise."""
    if text is None or len(text) != 24 or text[23] != "Z" or text[10] != "T" or text[4] != "-":
        return None
    try:
        since = datetime.fromisoformat(text[:23]) - _EPOCH
    except ValueError:
        return None
    ns = (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000
    return ns if TIMES.start <= ns < TIMES.stop else None
