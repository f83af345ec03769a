"""Turns what a reader collected into Arrow tables of the contract."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from analyzer.contract.tables import TABLES

_JSON_STRING = re.compile(r'"((?:[^"\\]|\\.)*)("?)(\s*:)?')
_WORD = re.compile(r"[^\s{}\[\]():,;=|<>\"'/-]+")
EXCERPT_CHARS = 160


def table_of(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of one contract table (without ``source_id``, which the store adds).

    Columns no row has are left out; the store fills them with NULL. A value that does not fit the
    column's type raises ``pyarrow.ArrowInvalid``: a reader hands over clean values.
    """
    schema = TABLES[name]
    present = {key for row in rows for key in row}
    fields = [field for field in schema if field.name in present]
    unknown = present - {field.name for field in fields}
    if unknown:
        msg = f"table {name} has no column {', '.join(sorted(unknown))}"
        raise KeyError(msg)
    columns = [pa.array([row.get(f.name) for row in rows], type=f.type) for f in fields]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def tables_of(**rows: Sequence[Mapping[str, Any]]) -> dict[str, pa.Table]:
    """Several tables at once; empty ones are left out."""
    return {name: table_of(name, some) for name, some in rows.items() if some}


def excerpt(record: bytes | str) -> str:
    """Keys and punctuation of a record; every text and number is cut to its length.

    Log content may hold prompts and secrets, and problems are shown and exported.
    """
    text = record.decode("utf-8", "replace") if isinstance(record, bytes) else record
    text = text[: 4 * EXCERPT_CHARS]
    if text.lstrip().startswith(("{", "[")):
        safe = _JSON_STRING.sub(
            lambda m: f'"{m[1]}"{m[3]}' if m[3] and len(m[1]) <= 40 else _cut(m[1]) + (m[3] or ""),
            text,
        )
        safe = re.sub(r"(?<![\w(\"])-?\d[\d.eE+-]*", "#", safe)
    else:
        safe = _WORD.sub(lambda m: _cut(m[0]), text)
    safe = "".join(char if char.isprintable() else "\ufffd" for char in safe)
    return safe if len(safe) <= EXCERPT_CHARS else safe[:EXCERPT_CHARS] + "…"


def _cut(text: str) -> str:
    return f"…({len(text)} chars)"


def text_or_none(value: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    """A name or id as text: numbers become text, empty and nested things are not told."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return str(value)
    if not isinstance(value, str) or not value:
        return None
    # JSON can escape half a surrogate pair, which no column can hold.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def int_or_none(value: Any) -> int | None:  # noqa: ANN401 - foreign JSON
    """A whole number that fits int64, else not told."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None


def first(values: Iterable[Any]) -> Any:  # noqa: ANN401
    """First value that is told."""
    return next((value for value in values if value is not None), None)
