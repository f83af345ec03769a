"""An answer from its events, as a load generator kept them: what came when, never what it said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from analyzer.readers._errors import error_class
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._loadgen import add_chunks, counted
from analyzer.readers._rows import text_or_none
from analyzer.readers._times import DURATIONS

_DELTAS = {
    "response.output_text.delta": "content",
    "response.refusal.delta": "content",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.function_call_arguments.delta": "tool_call",
}
_BLOCKS = {
    "text_delta": ("content", "text"),
    "thinking_delta": ("reasoning", "thinking"),
    "input_json_delta": ("tool_call", "partial_json"),
}
_Piece = tuple[str, int]


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
        self._learn(event)
        for kind, chars in self._pieces(event):
            self.offsets.append(offset_ns)
            self.kinds.append(kind)
            self.chars.append(chars)

    def _learn(self, event: dict[str, Any]) -> None:
        inner = event.get("message") if event.get("type") == "message_start" else None
        inner = event.get("response") if inner is None else inner
        for one in (event, inner):
            if not isinstance(one, dict):
                continue
            if isinstance(one.get("usage"), dict):
                self.usage |= one["usage"]
            for name, key in (("response_id", "id"), ("model", "model"), ("tier", "service_tier")):
                if name not in self.facts and (told := text_or_none(one.get(key))):
                    self.facts[name] = told
        if isinstance(event.get("metrics"), dict):
            self.metrics = event["metrics"]
        if event.get("error") or event.get("object") == "error":
            self.facts["error"] = _error(event.get("error") or event)
        stop = event.get("delta")
        if isinstance(stop, dict) and (reason := text_or_none(stop.get("stop_reason"))):
            self.facts["finish"] = reason

    def _pieces(self, event: dict[str, Any]) -> Iterator[_Piece]:
        kind = event.get("type")
        if isinstance(kind, str) and kind in _DELTAS:
            yield from _piece(_DELTAS[kind], event.get("delta"))
        elif kind == "content_block_delta" and isinstance(event.get("delta"), dict):
            delta = event["delta"]
            name, key = _BLOCKS.get(str(delta.get("type")), ("content", ""))
            yield from _piece(name, delta.get(key))
        elif "choices" in event:
            yield from self._choices(event["choices"])
        elif "text_output" in event:
            yield from _piece("content", event["text_output"])
        elif isinstance(event.get("token"), dict):
            yield from _piece("content", event["token"].get("text"))

    def _choices(self, choices: Any) -> Iterator[_Piece]:  # noqa: ANN401
        pieces: dict[str, int] = {}
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict):
                continue
            if reason := text_or_none(choice.get("finish_reason")):
                self.facts["finish"] = reason
            delta = choice.get("delta")
            if "message" in choice:
                self.whole, delta = True, choice["message"]
            if not isinstance(delta, dict):
                delta = {"content": choice.get("text")}
            for kind, chars in _delta(delta):
                pieces[kind] = pieces.get(kind, 0) + chars
        if pieces.keys() - {"role"}:
            pieces.pop("role", None)
        # Several choices of one event are one chunk.
        for kind in ("role", "reasoning", "content", "tool_call"):
            if kind in pieces:
                yield kind, pieces[kind]

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


def _piece(kind: str, text: Any) -> Iterator[_Piece]:  # noqa: ANN401
    if isinstance(text, list):
        text = "".join(one for one in text if isinstance(one, str))
    if isinstance(text, str) and text:
        yield kind, len(text)


def _delta(delta: dict[str, Any]) -> Iterator[_Piece]:
    told = False
    for kind, names in (
        ("reasoning", ("reasoning_content", "reasoning")),
        ("content", ("content",)),
    ):
        for name in names:
            text = delta.get(name)
            if isinstance(text, str) and text:
                told = True
                yield kind, len(text)
                break
    calls = delta.get("tool_calls")
    if isinstance(calls, list) and calls:
        told = True
        yield "tool_call", sum(map(_call, calls))
    if "role" in delta and not told:
        yield "role", 0


def _call(call: Any) -> int:  # noqa: ANN401
    function = call.get("function") if isinstance(call, dict) else None
    texts = function.values() if isinstance(function, dict) else ()
    return sum(len(text) for text in texts if isinstance(text, str))


def _error(error: Any) -> str:  # noqa: ANN401
    if isinstance(error, dict):
        code = error.get("code", error.get("status"))
        if isinstance(code, int) and 400 <= code < 600:
            return f"http {code}"
        error = " ".join(str(error.get(name) or "") for name in ("type", "message"))
    return error_class(str(error)) or "error"


def sse_events(text: str) -> Iterator[str]:
    """The data of each event of a stream, up to its end mark."""
    for event in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line[5:].strip() for line in event.split("\n") if line.startswith("data:")]
        if lines and lines != ["[DONE]"]:
            yield "\n".join(lines)
