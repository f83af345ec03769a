"""JSON lines as columns of text, whatever the type of their values; for logs without times inside.

One struct type a format: only the keys that are asked for become Python objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import polars as pl
from msgspec.structs import astuple

from analyzer.readers._file import BOM, Lines
from analyzer.readers._rows import clean

RECORD = "record"
_PREFIX = re.compile(
    rb"^(?:[^{\s]+ std(?:out|err) F |[\w.-]{1,60}[ \t]+\| "
    rb"|[^{\n]{0,120}?\bnginx(?:\[\d+\])?: )(?=\{)",
    re.MULTILINE,
)
"""What CRI, Compose and syslog put before a container's own line."""
_OBJECT = re.compile(rb'\{\s*"[^"\n]*"\s*:')
_HEX = re.compile(rb"\\x([0-9A-Fa-f]{2})")
_UNSET = re.compile(rb"(\"\s*:)\s*-?\s*(?=[,}])")
_UNFIT = re.compile(r'[\\"\x00-\x1f]')
"""What a key of a typed line must not hold."""
_NUMBERS = (pl.Float64, pl.Int64)
_Value = str | int | float | bool | None


@dataclass(frozen=True)
class Columns:
    """``frame``: record and one text column a field; ``broken``: record and what is wrong."""

    frame: pl.DataFrame
    broken: list[tuple[int, str]]
    others: list[tuple[int, bytes]]
    """Lines that are no objects at all, blank ones too."""


@lru_cache(maxsize=64)
def _decoders(names: tuple[str, ...], *, all_known: bool = False) -> tuple[Any, Any]:
    """Decoders of one line and of an array of them, into structs with the named fields.

    ``all_known``: a line with any other key is refused.
    """
    fields = [(f"f{i}", Any if all_known else _Value, None) for i in range(len(names))]
    rename = {f"f{i}": name for i, name in enumerate(names)}
    kind: Any = msgspec.defstruct(
        "Line", fields, rename=rename, gc=False, forbid_unknown_fields=all_known
    )
    return msgspec.json.Decoder(kind).decode, msgspec.json.Decoder(list[kind]).decode


def json_columns(block: Lines, names: Sequence[str]) -> Columns:
    """The named fields of each line of a block; those no line has are left out."""
    data = block.data.removeprefix(BOM)
    if (whole := _alike(data, block, names)) is not None:
        return whole
    one, many = _decoders(tuple(names))
    objects = _at_once(data, block.count, many)
    if objects is None:
        data = _PREFIX.sub(b"", data)
        objects = _at_once(data, block.count, many)
    records: Iterable[int] = range(block.first_record, block.first_record + block.count)
    broken: list[tuple[int, str]] = []
    others: list[tuple[int, bytes]] = []
    if objects is None:
        objects, records = [], []
        for number, line in enumerate(data.split(b"\n")[: block.count], block.first_record):
            if not line.lstrip().startswith(b"{"):
                others.append((number, line.strip()))
                continue
            try:
                objects.append(_repaired(line, one))
                records.append(number)
            except ValueError as error:
                broken.append((number, str(error)))
    columns = _columns(objects, names, frozenset(names))
    frame = pl.DataFrame({RECORD: pl.Series(RECORD, list(records), dtype=pl.Int64), **columns})
    return Columns(frame, broken, others)


def _alike(data: bytes, block: Lines, names: Sequence[str]) -> Columns | None:
    """A block whose lines have only the keys that some of them have, which is the rule."""
    keys: set[str] = set()
    for place in (0, len(data) // 2, max(0, len(data) - 2)):
        end = data.find(b"\n", place)
        line = data[data.rfind(b"\n", 0, place) + 1 : None if end < 0 else end]
        try:
            some = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if not isinstance(some, dict):
            return None
        keys |= some.keys()
    if any(_UNFIT.search(key) for key in keys):
        return None
    told = tuple(sorted(keys))
    objects = _at_once(data, block.count, _decoders(told, all_known=True)[1])
    if objects is None:
        return None
    try:
        columns = _columns(objects, told, frozenset(names))
    except _Nested:
        return None
    records = pl.int_range(block.first_record, block.last_record + 1, dtype=pl.Int64, eager=True)
    return Columns(pl.DataFrame({RECORD: records, **columns}), [], [])


def _columns(
    objects: Sequence[Any], names: Sequence[str], asked: frozenset[str]
) -> dict[str, pl.Series]:
    values = zip(*map(astuple, objects), strict=True)
    return {
        name: _text(name, some)
        for name, some in zip(names, values, strict=False)
        if name in asked and some.count(None) < len(some)
    }


class _Nested(Exception):
    """A field that holds an object or a list, which no access log has there."""


def has_objects(data: bytes) -> bool:
    """Whether any line looks like one."""
    return _OBJECT.search(data) is not None


def _at_once(data: bytes, count: int, decode: Any) -> list[Any] | None:  # noqa: ANN401
    """All lines in one call; None where one of them is no object of its own."""
    if not data.startswith(b"{"):
        return None
    try:
        objects: list[Any] = decode(b"[%s]" % data.rstrip(b"\n").replace(b"\n", b","))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return objects if len(objects) == count else None


def _repaired(line: bytes, decode: Any) -> Any:  # noqa: ANN401 - a struct of its own
    """A line as it is, else with nginx's default escapes and bare dashes made JSON."""
    try:
        return decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = _reason(error)
    line = _UNSET.sub(rb"\1null", _HEX.sub(rb"\\u00\1", line))
    try:
        return decode(line.decode("utf-8", "replace").encode())
    except (msgspec.DecodeError, RecursionError):
        raise ValueError(reason) from None


def _reason(error: Exception) -> str:
    if isinstance(error, msgspec.ValidationError):
        return "a field of another type than access logs have"
    if isinstance(error, RecursionError):
        return "JSON nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "not valid UTF-8"
    return f"not valid JSON: {error}; quote each variable and set escape=json"


def _text(name: str, values: Sequence[Any]) -> pl.Series:
    """Numbers as their shortest text; a word (true) is text too."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds & {dict, list}:
        raise _Nested
    if kinds <= {str}:
        with suppress(UnicodeError):
            return pl.Series(name, values, dtype=pl.String)
    elif kinds <= {int, float}:
        try:
            return pl.Series(name, values, dtype=_NUMBERS[kinds == {int}]).cast(pl.String)
        except (TypeError, OverflowError):
            pass
    return pl.Series(name, [_written(value) for value in values], dtype=pl.String)


def _written(value: _Value) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return clean(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
