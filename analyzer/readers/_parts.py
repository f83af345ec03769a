"""Prompts as parts: what each is, how long, and hashes of it with and without volatile values.

The text itself is not kept. A hash is of what the model reads: the ids that tie a tool's result to
its call are left out, and so are marks for the cache, which move on from call to call.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from analyzer.readers._jsonl import Sink
from analyzer.readers._rows import clean
from analyzer.readers._volatile import masked

_HASH_BYTES = 8
_REMEMBERED = 65_536
"""Messages whose parts are known, as most are sent again with the next call."""
_MARKS = ("cache_control", "cachePoint", "cache_point")
_REMOVED = frozenset({
    "redacted-by-litellm", "redacted", "[redacted]", "<redacted>", "<redacted_by_policy>",
})  # fmt: skip
_CUT = "litellm_truncated"
_PLAIN_LEAST, _PLAIN_MOST = 2048, 4096


class Part(NamedTuple):
    """One part of a prompt; the columns of ``prompt_part`` but its place."""

    kind: str
    chars: int | None
    part_hash: str | None
    plain_hash: str | None
    volatile: str | None = None
    first_volatile_chars: int | None = None
    name_hash: str | None = None


class Piece(NamedTuple):
    """A part of a prompt while its text is at hand."""

    kind: str
    text: str
    chars: int | None
    """None where it is no text to the model, such as an image: its length says nothing."""
    name: str | None = None


def text_piece(kind: str, text: str) -> Piece:
    """A piece that the model reads as it stands."""
    return Piece(kind, text, len(text))


class Prompt(NamedTuple):
    """The parts of one prompt, in the order in which the provider sees them."""

    parts: list[Part]
    tools_told: bool
    """Tool definitions would be there if there were any."""
    roles_told: bool = True
    """Who said what; else the prompt is one text."""


class Untold(Exception):
    """The text was taken out or cut before it was logged, so nothing can be said of it."""


def short_hash(text: str) -> str:
    """16 hexadecimal digits that stand for a text."""
    data = text.encode("utf-8", "replace")
    return hashlib.blake2b(data, digest_size=_HASH_BYTES).hexdigest()


def part_of(piece: Piece) -> Part:
    """The piece without its text."""
    kind, text, chars, name = piece
    if text.lower() in _REMOVED if len(text) < 40 else _CUT in text:
        raise Untold
    # A link to an image may be signed anew each time; its data has no such values.
    words = chars is not None or len(text) <= _PLAIN_MOST
    plain, classes, first = masked(text) if words else (text, None, None)
    whole = short_hash(text)
    return Part(
        kind, chars, whole, whole if classes is None else short_hash(plain), classes, first,
        None if name is None else short_hash(name),
    )  # fmt: skip


def plain_parts(text: str) -> list[Part]:
    """A prompt told as one text: cut after a line, alike for texts that begin alike."""
    parts, start = [], 0
    while start < len(text):
        line = text.find("\n", start + _PLAIN_LEAST, start + _PLAIN_MOST)
        end = line + 1 if line >= 0 else start + _PLAIN_MOST
        parts.append(part_of(text_piece("other", text[start:end])))
        start = end
    return parts


def as_json(value: Any) -> str:  # noqa: ANN401 - foreign JSON
    """A value as JSON, in the order of its keys, which providers see too."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, OverflowError):
        pass
    try:
        return json.dumps(value, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(type(value))


def unmarked(value: dict[str, Any]) -> dict[str, Any]:
    """The same without marks for the cache."""
    if any(name in value for name in _MARKS):
        return {name: one for name, one in value.items() if name not in _MARKS}
    return value


_known: dict[bytes, tuple[Part, ...]] = {}


def remembered(
    make: Callable[[Any], Iterable[Piece]],
    value: Any,  # noqa: ANN401 - foreign JSON
) -> tuple[Part, ...]:
    """The parts of what ``make`` gives: once, for messages are sent with each later call again."""
    try:
        data = msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return tuple(map(part_of, make(value)))
    key = hashlib.blake2b(data, digest_size=16, key=make.__name__.encode()).digest()
    parts = _known.get(key)
    if parts is None:
        parts = tuple(map(part_of, make(value)))
        if len(_known) >= _REMEMBERED:
            _known.clear()
        _known[key] = parts
    return parts


_SUMS = {
    "system_chars": ("system",),
    "user_chars": ("user",),
    "assistant_chars": ("assistant", "tool_call"),
    "reasoning_chars": ("reasoning",),
    "tool_result_chars": ("tool_result",),
}
_UNLESS_TOLD = ("system_chars",)
"""A log may tell the messages alone, so that none of these does not mean that there were none."""


def make_up(prompt: Prompt) -> dict[str, Any]:
    """Columns of the request: the lengths of a prompt's parts, added up by kind."""
    by_kind: dict[str, int] = {}
    images = tools = 0
    if not prompt.roles_told:
        return {"input_chars": sum(part.chars or 0 for part in prompt.parts)}
    for part in prompt.parts:
        by_kind[part.kind] = by_kind.get(part.kind, 0) + (part.chars or 0)
        images += part.kind == "image"
        tools += part.kind == "tools"
    columns: dict[str, Any] = {
        name: sum(by_kind.get(kind, 0) for kind in kinds) for name, kinds in _SUMS.items()
    }
    for name in _UNLESS_TOLD:
        columns[name] = columns[name] or None
    if prompt.tools_told:
        columns |= {"tools_count": tools, "tools_chars": by_kind.get("tools", 0)}
    return columns | {"images": images, "input_chars": sum(by_kind.values())}


def write_prompt(sink: Sink, record: int, prompt: Prompt | None) -> dict[str, Any]:
    """Adds the rows of ``prompt_part``; the columns that the prompt gives its request."""
    if prompt is None:
        return {}
    add_parts(sink, record, prompt.parts)
    return make_up(prompt)


def add_parts(sink: Sink, record: int, parts: list[Part]) -> None:
    """The ``prompt_part`` rows of one request."""
    if parts:
        columns = zip(*parts, strict=True)
        names = dict(zip(Part._fields, map(list, columns), strict=True))
        sink.add_columns("prompt_part", record, part_index=list(range(len(parts))), **names)


def word_of(value: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    """A setting's short word; anything longer is none."""
    if isinstance(value, str) and 0 < len(value) <= 20 and value.replace("_", "").isalnum():
        return clean(value)
    return None
