"""vLLM's log records as JSON (``--logging-config.formatter json``), written as its text lines are.

A record also tells what a text line cannot: the year, and a time for uvicorn's access lines.
"""

from __future__ import annotations

import re

import msgspec

from analyzer.readers._rows import clean

UNREADABLE = "\x01not JSON"
"""Stands for a record that is damaged; no line of a log begins like this."""
MEMORY = " (OutOfMemoryError)"
"""Ends the message of a record whose traceback does."""
_RECORD = re.compile(rb'\{"(?:asctime|levelname|message)"')


class _Record(msgspec.Struct):
    asctime: str | None = None
    levelname: str | None = None
    name: str | None = None
    process: int | str | None = None
    processName: str | None = None
    vllm_process_name: str | None = None
    message: str | None = None
    exc_info: str | None = None


_decode = msgspec.json.Decoder(_Record).decode


def text_of(line: bytes) -> str | None:
    """The line as the text formatter would write it; None where it is no record of a log."""
    try:
        one = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return UNREADABLE if _RECORD.match(line) else None
    if one.message is None:
        return None
    process = one.vllm_process_name or one.processName
    head = f"({process} pid={one.process}) " if process else ""
    message = one.message.partition("\n")[0].rstrip("\r")
    if one.exc_info and "OutOfMemoryError: " in one.exc_info.rstrip().rpartition("\n")[2]:
        message += MEMORY
    stamp = f"{one.levelname or 'INFO'} {one.asctime} " if one.asctime else ""
    return clean(f"{head}{stamp}[{one.name or ''}] {message}").replace("\n", " ")
