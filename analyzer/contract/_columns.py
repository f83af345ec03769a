"""How a row of a command's output is written down, and what rows can be grouped by."""

from __future__ import annotations

import pyarrow as pa

GROUPS = {
    "model": "model",
    "route": "route",
    "provider": "provider",
    "deployment": "deployment",
    "session": "session_id",
    "source": "source",
}
"""``--by`` name -> column of ``resolve_request``."""

BINS_NS = {"minute": 60_000_000_000, "hour": 3_600_000_000_000, "day": 86_400_000_000_000}
"""``--by`` name -> width of a bin of the start time, UTC."""


def row(doc: str, *columns: tuple[str, pa.DataType, str, str]) -> pa.Schema:
    fields = [
        pa.field(name, kind, metadata={"doc": text} | ({"unit": unit} if unit else {}))
        for name, kind, unit, text in columns
    ]
    return pa.schema(fields, metadata={"doc": doc})


TEXT, INT, REAL = pa.string(), pa.int64(), pa.float64()
MONEY = pa.decimal128(38, 15)


def struct(*names: tuple[str, pa.DataType, str, str]) -> pa.StructType:
    return pa.struct(list(row("", *names)))


GROUP_COLUMNS = [(name, TEXT, "", f"group: {name} (with --by)") for name in GROUPS] + [
    (f"{name}_ns", INT, "ns", f"group: start of the {name} (with --by)") for name in BINS_NS
]
