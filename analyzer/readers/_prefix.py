"""Prompts as chains of hashes: equal hashes at one place mean equal prompts up to there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

import msgspec

from analyzer.readers._file import InputFile
from analyzer.readers._jsonl import Sink

TEXT_BLOCK_CHARS = 64
"""About the 16 tokens that model servers cache as one block."""
_HASH_BYTES = 8
_ENDINGS = (".gz", ".zst", ".json", ".jsonl", ".traj")


def digest_of(text: str) -> str:
    """A hash that stands for a text which is not kept."""
    data = text.encode("utf-8", "replace")
    return hashlib.blake2b(data, digest_size=2 * _HASH_BYTES).hexdigest()


class Chain:
    """Hashes of the prefixes of prompts that are given as ids of blocks.

    Most prompts of a session repeat the one before, whose hashes then hold.
    """

    def __init__(self, scope: str) -> None:
        """Another ``scope`` gives other hashes."""
        self._scope = scope
        self._ids: list[Any] = []
        self._hashes: list[str] = []

    def of(self, ids: list[Any]) -> list[str]:
        """The hash of each prefix, block by block."""
        same = _in_common(self._ids, ids)
        before = self._hashes[:same]
        blocks = (str(one).encode("utf-8", "replace") for one in ids[same:])
        self._hashes = before + _chained(blocks, self._scope, before[-1] if before else None)
        self._ids = ids
        return self._hashes


def _in_common(one: list[Any], other: list[Any]) -> int:
    """How many items two lists begin with that are the same; halves, which compare fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        half = (low + high + 1) // 2
        if one[low:half] == other[low:half]:
            low = half
        else:
            high = half - 1
    return low


def _chained(blocks: Iterable[bytes], scope: str = "", last: str | None = None) -> list[str]:
    state = bytes.fromhex(last) if last else scope.encode("utf-8", "replace")
    hashes = []
    for block in blocks:
        state = hashlib.blake2b(state + b"\0" + block, digest_size=_HASH_BYTES).digest()
        hashes.append(state.hex())
    return hashes


def add_blocks(sink: Sink, record: int, hashes: list[str]) -> None:
    """The ``prompt_block`` rows of one request."""
    if hashes:
        sink.add_columns(
            "prompt_block", record, block_index=list(range(len(hashes))), prefix_hash=hashes
        )


def text_blocks(text: str) -> list[str]:
    """Hashes of the whole blocks of a text."""
    ends = range(TEXT_BLOCK_CHARS, len(text) + 1, TEXT_BLOCK_CHARS)
    return _chained(text[end - TEXT_BLOCK_CHARS : end].encode("utf-8", "replace") for end in ends)


def text_of(content: Any) -> str:  # noqa: ANN401 - foreign JSON
    """The text of a message, told as one string or as parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return ""


def prompt_of(messages: Any, tools: Any = None) -> str:  # noqa: ANN401 - foreign JSON
    """What a chat request sends, as one text; marks for the cache, which move on, are left out."""
    parts = [_json(tools)] if tools else []
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            calls = message.get("tool_calls")
            parts += [f"<{message.get('role')}>", text_of(message.get("content"))]
            parts += [_json(calls)] if calls else []
    return "\n".join(parts)


def _json(value: Any) -> str:  # noqa: ANN401 - foreign JSON
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, OverflowError):
        return ""


def stem_of(file: InputFile) -> str:
    """The name of a file without its folder and endings; what a format has for a session's name."""
    name = PurePosixPath(file.name).name
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name
