"""Tables of a reader, held to the contract."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache

import pyarrow as pa

from analyzer.contract.tables import TABLES
from analyzer.contract.types import Problem
from analyzer.errors import AnalyzerError

_REQUIRED = {
    name: [f.name for f in schema if not f.nullable and f.name != "source_id"]
    for name, schema in TABLES.items()
}


def conform(name: str, table: pa.Table, reader: str) -> pa.Table:
    """The table in the contract's types; anything else is the reader's mistake."""
    unknown, right = _schema(name, table.schema)
    if unknown:
        msg = f"reader {reader} gave table {name} an unknown column {', '.join(unknown)}"
        raise AnalyzerError(msg, "this is a bug in the reader; please report it")
    for column in _REQUIRED[name]:
        told = column in table.column_names
        empty = table.column(column).null_count if told else table.num_rows
        if empty:
            msg = f"reader {reader} left {name}.{column} empty in {empty} rows"
            raise AnalyzerError(msg, "this is a bug in the reader; please report it")
    # A cast of nothing takes as long as reading a small file, and so does a dictionary of names
    # that is written out.
    given = [_plain(one) for one in table.schema.types]
    return table if given == right else table.cast(_named(name, table))


def _plain(kind: pa.DataType) -> pa.DataType:
    """A dictionary of texts is as good as the texts."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


@lru_cache(1024)
def _schema(name: str, given: pa.Schema) -> tuple[list[str], list[pa.DataType]]:
    """Columns that the contract does not know, and the types it wants for the others."""
    schema = TABLES[name]
    unknown = sorted(set(given.names) - set(schema.names))
    return unknown, [schema.field(one).type for one in given.names if one not in unknown]


def _named(name: str, table: pa.Table) -> pa.Schema:
    return pa.schema([TABLES[name].field(one) for one in table.column_names])


def problem_table(problems: tuple[Problem, ...]) -> pa.Table:
    """Problems as rows."""
    fields = [f for f in TABLES["problem"] if f.name != "source_id"]
    return pa.Table.from_pylist([asdict(p) for p in problems], schema=pa.schema(fields))
