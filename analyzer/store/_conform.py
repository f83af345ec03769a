"""Tables of a reader, held to the contract."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa

from analyzer.contract.tables import TABLES
from analyzer.contract.types import Problem
from analyzer.errors import AnalyzerError


def conform(name: str, table: pa.Table, reader: str) -> pa.Table:
    """The table in the contract's types; anything else is the reader's mistake."""
    schema = TABLES[name]
    unknown = set(table.column_names) - set(schema.names)
    if unknown:
        msg = f"reader {reader} gave table {name} an unknown column {', '.join(sorted(unknown))}"
        raise AnalyzerError(msg, "this is a bug in the reader; please report it")
    for field in schema:
        if field.nullable or field.name == "source_id":
            continue
        told = field.name in table.column_names
        empty = table.column(field.name).null_count if told else table.num_rows
        if empty:
            msg = f"reader {reader} left {name}.{field.name} empty in {empty} rows"
            raise AnalyzerError(msg, "this is a bug in the reader; please report it")
    return table.cast(pa.schema([schema.field(one) for one in table.column_names]))


def problem_table(problems: tuple[Problem, ...]) -> pa.Table:
    """Problems as rows."""
    fields = [f for f in TABLES["problem"] if f.name != "source_id"]
    return pa.Table.from_pylist([asdict(p) for p in problems], schema=pa.schema(fields))
