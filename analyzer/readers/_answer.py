"""An answer from its events, as a load generator kept them: what came when, never what it said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._loadgen import add_chunks, counted
from analyzer.readers._times import DURATIONS
from analyzer.readers._vendor_events import told_by
from analyzer.readers._vendor_told import CONTENT, Told

_NAMES = {
    "response_id": "response_id", "model": "model", "service_tier": "tier",
    "finish_reason": "finish", "error": "error",
}  # fmt: skip
_LAST_WORD = {"finish", "error"}


@dataclass
class Answer:
    """Facts and chunks of one answer; ``take`` is given its events in order."""

    offsets: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    chars: list[int | None] = field(default_factory=list)
    facts: dict[str, str | None] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    metrics: Any = None
    whole: bool = False
    """It came as one body, not as a stream."""
    end_ns: int | None = None

    def take(self, event: Any, offset_ns: int) -> None:  # noqa: ANN401 - foreign JSON
        """One event: an object, or its text, at this time since the request was sent."""
        if offset_ns not in DURATIONS:
            raise Bad("an event before its request, or years after it")
        self.end_ns = offset_ns
        if isinstance(event, (str, bytes)):
            try:
                event = msgspec.json.decode(event)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                return
        if not isinstance(event, dict):
            return
        if isinstance(event.get("metrics"), dict):
            self.metrics = event["metrics"]
        told = self._told(event)
        told.learn()
        self.usage |= told.usage or {}
        for name, ours in _NAMES.items():
            value = told.facts.columns.get(name)
            if value is not None and (ours not in self.facts or ours in _LAST_WORD):
                self.facts[ours] = value
        for kind, chars in told.pieces:
            self.offsets.append(offset_ns)
            self.kinds.append(kind)
            self.chars.append(chars)

    def _told(self, event: dict[str, Any]) -> Told:
        if event.get("object") == "error":
            event = {"error": event}
        if "choices" not in event and (told := _plain(event)) is not None:
            return told
        told = told_by(_as_stream(event)) or Told()
        self.whole = self.whole or _is_whole(event)
        return told

    def columns(self, *, streamed: bool | None = None) -> dict[str, Any]:
        """Columns of the request row. The first token is no role chunk."""
        tokens = [i for i, kind in enumerate(self.kinds) if kind != "role"]
        at = {kind: self.offsets[self.kinds.index(kind)] for kind in set(self.kinds)}
        if self.whole:
            streamed = False
        elif len(tokens) > 1:
            streamed = True
        first = self.offsets[tokens[0]] if tokens and streamed is not False else None
        content = min((at[k] for k in ("content", "tool_call") if k in at), default=None)
        role = at.get("role")
        row: dict[str, Any] = {
            "response_id": self.facts.get("response_id"),
            "model": self.facts.get("model"),
            "service_tier": self.facts.get("tier"),
            "finish_reason": self.facts.get("finish"),
            "error": self.facts.get("error"),
            "streamed": streamed,
            "timing": "stream" if first is not None else "stated",
            "ttft_ns": first,
            "e2e_ns": self.end_ns,
            **counted(self.usage),
        }
        if first is None:
            return row
        chars = [self.chars[i] or 0 for i in tokens]
        # The usage and the end mark may come later; the answer ends with its last token.
        return row | {
            "e2e_ns": self.offsets[tokens[-1]],
            "first_role_ns": role if role is not None and role < first else None,
            "first_reasoning_ns": at.get("reasoning"),
            "first_content_ns": content,
            "chunks": len(tokens),
            "chunk_chars": sum(chars),
            "first_chunk_chars": chars[0],
        }

    def add_chunks(self, sink: Sink, record: int) -> None:
        """The chunk rows, if it was a stream."""
        if not self.whole:
            add_chunks(sink, record, self.offsets, self.kinds, self.chars)


def _plain(event: dict[str, Any]) -> Told | None:
    """Triton's and TGI's own events, which are no vendor's."""
    told, token = Told(answer=event), event.get("token")
    if "text_output" in event:
        text = event["text_output"]
        if isinstance(text, list):
            text = "".join(one for one in text if isinstance(one, str))
        told.piece(CONTENT, text)
    elif isinstance(token, dict):
        told.piece(CONTENT, token.get("text"))
    else:
        return None
    return told


def _is_whole(event: dict[str, Any]) -> bool:
    choices = event.get("choices")
    return isinstance(choices, list) and any(
        isinstance(choice, dict) and "message" in choice for choice in choices
    )


def _as_stream(event: dict[str, Any]) -> dict[str, Any]:
    """A whole chat answer as the one event it would be."""
    if not _is_whole(event):
        return event
    choices = [
        choice | {"delta": choice.get("message")} if isinstance(choice, dict) else choice
        for choice in event["choices"]
    ]
    return event | {"choices": choices}


def sse_events(text: str) -> Iterator[str]:
    """The data of each event of a stream, up to its end mark."""
    for event in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line[5:].strip() for line in event.split("\n") if line.startswith("data:")]
        if lines and lines != ["[DONE]"]:
            yield "\n".join(lines)
