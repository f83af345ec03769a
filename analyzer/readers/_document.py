"""Small whole files: one JSON or TOML document that is read at once."""

from __future__ import annotations

import tomllib
from typing import Any

import msgspec

from analyzer.readers._file import Head, InputFile

MAX_BYTES = 64 * 1024 * 1024


def parse(data: bytes) -> Any:  # noqa: ANN401 - foreign document
    """JSON, else TOML; ``ValueError`` says what is wrong with it."""
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            return msgspec.json.decode(data)
        except msgspec.DecodeError as error:
            msg = f"not valid JSON: {error}"
            raise ValueError(msg) from None
    try:
        return tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"neither JSON nor TOML: {error}"
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


def read_all(file: InputFile) -> bytes:
    """All bytes of a file that is known to be small."""
    data = bytearray()
    for block in file.blocks():
        data += block
        if len(data) > MAX_BYTES:
            msg = f"larger than {MAX_BYTES >> 20} MiB"
            raise ValueError(msg)
    return bytes(data)
