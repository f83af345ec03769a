"""Objects of a document: an array of them, several arrays in a row, or one object a line."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from analyzer.contract.types import Problem
from analyzer.readers._document import each_value, read_all
from analyzer.readers._file import InputFile
from analyzer.readers._rows import excerpt

_MAX_BYTES = 512 * 1024 * 1024
# Where reading goes on after a broken object: one that begins a line, or is barely indented.
_NEXT_OBJECT = re.compile(r"\n(?=[\[, ]{0,2}\{)")
# Brackets of an array stand between its items; so does what joins two arrays.
_BETWEEN = " \t\r\n,[]"
_REST = re.compile(r"[ \t\r\n,\[\]\0]*")


@dataclass(frozen=True)
class Item:
    """One object, its number from 1, and its text for an id of its own."""

    record: int
    value: dict[str, Any]
    text: str


def items_of(file: InputFile) -> Iterator[Item | Problem]:
    """Every object of the file; what is none, or breaks off, is a problem of its own number."""
    try:
        text = read_all(file, _MAX_BYTES).decode("utf-8", "replace").lstrip("\ufeff")
    except ValueError as error:
        yield Problem(1, f"one document {error}; split it, or fetch it more often")
        return
    record = end = chars = offset = 0
    while True:
        for start, stop, value in each_value(text, end, between=_BETWEEN):
            record, end = record + 1, stop
            if isinstance(value, dict):
                yield Item(record, value, text[start:stop])
            else:
                yield Problem(record, "a JSON value, but no object", excerpt(text[start:stop]))
        broken = _REST.match(text, end)
        begin = end if broken is None else broken.end()
        if begin == len(text):
            return
        record += 1
        offset += len(text[chars:begin].encode("utf-8", "replace"))
        chars = begin
        reason = "it breaks off or is damaged here; what came before was read"
        yield Problem(record, reason, excerpt(text[begin : begin + 1000]), offset)
        following = _NEXT_OBJECT.search(text, begin)
        if following is None:
            return
        end = following.end()


def local_id(file: InputFile, item: Item, number: object) -> str:
    """An id for a request that only a counter of its process names: two files must not share it."""
    stem = PurePosixPath(file.name).name
    for ending in (".gz", ".zst", ".json", ".jsonl"):
        stem = stem.removesuffix(ending)
    digest = hashlib.sha256(item.text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{stem}:{digest}#{number}"
