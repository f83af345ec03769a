"""Small whole files: one JSON or TOML document that is read at once."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import msgspec

from analyzer.readers._file import BOM, Head, InputFile

MAX_BYTES = 64 * 1024 * 1024
_scan = json.JSONDecoder().raw_decode
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"|[{}\[\]:,]', re.DOTALL)


def parse(data: bytes) -> Any:  # noqa: ANN401 - foreign document
    """JSON, else TOML; ``ValueError`` says what is wrong with it."""
    data = data.removeprefix(BOM)
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            return msgspec.json.decode(data)
        except msgspec.DecodeError as error:
            msg = f"not valid JSON{_where(data)}: {error}"
            raise ValueError(msg) from None
        except RecursionError:
            msg = "JSON nested too deeply"
            raise ValueError(msg) from None
    try:
        return msgspec.to_builtins(tomllib.loads(data.decode()))  # TOML's own dates as text
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"neither JSON nor TOML: {error}"
        raise ValueError(msg) from None
    except RecursionError:
        msg = "TOML nested too deeply"
        raise ValueError(msg) from None


def _where(data: bytes) -> str:
    """The line at which JSON breaks, where the other parser breaks too."""
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        return f" at line {error.lineno}"
    except (ValueError, RecursionError):
        pass
    return ""


def small_document(head: Head) -> dict[str, Any] | None:
    """The whole file as an object, if it ends within the head and is one."""
    if not head.whole:
        return None
    try:
        value = parse(head.data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read_all(file: InputFile, limit: int = MAX_BYTES) -> bytes:
    """All bytes of a file that is known to be small; ``ValueError`` where it is not."""
    data = bytearray()
    for block in file.blocks():
        data += block
        if len(data) > limit:
            msg = f"larger than {limit >> 20} MiB"
            raise ValueError(msg)
    return bytes(data)


def each_value(
    text: str, start: int = 0, between: str = " \t\r\n"
) -> Iterator[tuple[int, int, Any]]:
    """(start, end, value) of JSON values that follow one another, up to the first broken one.

    Unlike msgspec this takes the NaN and Infinity that Python programs write.
    """
    while True:
        while start < len(text) and text[start] in between:
            start += 1
        try:
            value, end = _scan(text, start)
        except (ValueError, RecursionError):
            return
        yield start, end, value
        start = end


def top_level(data: bytes) -> dict[str, Any]:
    """Top-level keys of a JSON object that is cut off, with the values that are text."""
    top: dict[str, Any] = {}
    depth, key, expects = 0, "", False
    for match in _TOKEN.finditer(data):
        mark = match[0][:1]
        if mark in b"{[":
            depth += 1
        elif mark in b"}]":
            depth -= 1
        elif depth == 1 and mark == b":":
            expects, top[key] = True, None
        elif depth == 1 and mark == b",":
            expects = False
        elif depth == 1 and mark == b'"':
            text = match[1].decode("utf-8", "replace")
            if expects:
                top[key] = text
            else:
                key = text
    return top
