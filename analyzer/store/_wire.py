"""Hands what was read of several files from one process to another, the rows of all at once."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from analyzer.store._gather import Gathered, joined

Rows = tuple[dict[str, bytes], list[dict[str, int]]]
"""The rows of all files by table, as Arrow writes them; how many of them are whose."""


def packed(files: Sequence[Gathered]) -> Rows:
    """The rows of files that are read to their end, which are no longer in them then."""
    rows: dict[str, list[pa.Table]] = {}
    counts: list[dict[str, int]] = []
    for one in files:
        counts.append({name: table.num_rows for name, (table,) in one.tables.items()})
        for name, (table,) in one.tables.items():
            rows.setdefault(name, []).append(table)
        one.tables.clear()
    return {name: _written(joined(tables)) for name, tables in rows.items()}, counts


def unpacked(files: Sequence[Gathered], rows: Rows) -> None:
    """Give each its rows back."""
    written, counts = rows
    tables = {name: pa.ipc.open_stream(data).read_all() for name, data in written.items()}
    at = dict.fromkeys(tables, 0)
    for one, mine in zip(files, counts, strict=True):
        for name, count in mine.items():
            one.tables[name] = [tables[name].slice(at[name], count)]
            at[name] += count


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    table = table.combine_chunks()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data
