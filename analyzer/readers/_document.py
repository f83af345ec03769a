"""Small whole files: one JSON or TOML document that is read at once."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from typing import Any

import msgspec

from analyzer.readers._file import BOM, Head, InputFile

MAX_BYTES = 64 * 1024 * 1024
_scan = json.JSONDecoder().raw_decode


def parse(data: bytes) -> Any:  # noqa: ANN401 - foreign document
    """JSON, else TOML; ``ValueError`` says what is wrong with it."""
    data = data.removeprefix(BOM)
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            return msgspec.json.decode(data)
        except msgspec.DecodeError as error:
            msg = f"not valid JSON: {error}"
            raise ValueError(msg) from None
        except RecursionError:
            msg = "JSON nested too deeply"
            raise ValueError(msg) from None
    try:
        return tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"neither JSON nor TOML: {error}"
        raise ValueError(msg) from None
    except RecursionError:
        msg = "TOML nested too deeply"
        raise ValueError(msg) from None


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
