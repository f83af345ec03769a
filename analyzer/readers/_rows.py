"""Turns what a reader collected into Arrow tables of the contract."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from analyzer.contract.tables import TABLES
from analyzer.readers._times import DURATIONS, TIMES, Limits

COUNTS = Limits(0, 2**53 + 1)
"""Tokens, characters and whatever else is counted: what a JSON number holds exactly."""
EXCERPT_CHARS = 160
_MOST_FLOAT = 1e18
_MOMENTS = (
    "start_ns", "time_ns", "valid_from_ns", "period_start_ns", "period_end_ns", "base_ns",
)  # fmt: skip
# A key, which alone is shown; else a string, whole or up to the cut; else a word.
_TOKEN = re.compile(
    r"""([{,]\s*"[A-Za-z_][A-Za-z0-9_.-]{0,39}"(?=\s*:))"""
    r"""|"(?:[^"\\]|\\.)*"?|[^\s{}\[\]():,;=|<>"'/-]+""",
    re.DOTALL,
)
_NUMBER = re.compile(r"\d[\d.eE+]*")


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


def columns_table(name: str, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Columns of one contract table, as long as each other; for rows that come by the million."""
    schema = TABLES[name]
    arrays = {key: pa.array(values, schema.field(key).type) for key, values in columns.items()}
    return pa.table(arrays)


def believed(row: MutableMapping[str, Any], spelled: Mapping[str, str] | None = None) -> str:
    """Empties the columns that tell what cannot be, and says which; makes text storable.

    ``spelled``: what a column is called in the log.
    """
    strange = []
    wall = row.get("clock", "wall") == "wall"
    for name, value in row.items():
        kind = type(value)
        if kind is str:
            if not value.isascii():
                row[name] = clean(value)
        elif kind is int:
            if value not in _bounds(name, wall):
                strange.append(name)
        elif kind is float and not 0 <= value < _MOST_FLOAT:
            strange.append(name)
    for name in strange:
        row[name] = None
    names = [(spelled or {}).get(name, name) for name in strange]
    return f"{', '.join(names)}: beyond any request, not read" if strange else ""


@cache
def _bounds(name: str, wall: bool) -> Limits:  # noqa: FBT001 - a key of the cache
    if name in _MOMENTS and wall:
        return TIMES
    return DURATIONS if name.endswith("_ns") else COUNTS


def tables_of(**rows: Sequence[Mapping[str, Any]]) -> dict[str, pa.Table]:
    """Several tables at once; empty ones are left out."""
    return {name: table_of(name, some) for name, some in rows.items() if some}


def excerpt(record: bytes | str) -> str:
    """Keys and punctuation of a record; every text and number is cut to its length.

    Log content may hold prompts and secrets, and problems are shown and exported.
    """
    begin = record[: 4 * EXCERPT_CHARS]
    text = begin.decode("utf-8", "replace") if isinstance(begin, bytes) else begin
    safe = _TOKEN.sub(_masked, text)
    safe = "".join(char if char.isprintable() else "\ufffd" for char in safe)
    return safe if len(safe) <= EXCERPT_CHARS else safe[:EXCERPT_CHARS] + "…"


def _masked(token: re.Match[str]) -> str:
    if token[1]:
        return token[1]
    text = token[0].strip('"')
    return "#" if _NUMBER.fullmatch(text) else f"…({len(text)} chars)"


def clean(text: str) -> str:
    """JSON can escape half a surrogate pair, which no column can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def text_or_none(value: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    """A name or id as text: numbers become text, empty and nested things are not told."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return str(value)
    return clean(value) if isinstance(value, str) and value else None


def int_or_none(value: Any) -> int | None:  # noqa: ANN401 - foreign JSON
    """A whole number, else not told; whether it can be is :func:`believed`'s to say."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) else None


def first(values: Iterable[Any]) -> Any:  # noqa: ANN401
    """First value that is told."""
    return next((value for value in values if value is not None), None)
