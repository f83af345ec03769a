"""JSON Lines whose records give rows of their own: alike lines fast, all others one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa

from analyzer.contract.tables import TABLES
from analyzer.readers._fast_kinds import Kind
from analyzer.readers._fast_shapes import INDEX, LINE, Shape, Shapes, Strange
from analyzer.readers._file import Lines
from analyzer.readers._rows import table_of

Tables = dict[str, pl.DataFrame]
One = Callable[[str], dict[str, list[dict[str, Any]]] | None]
"""Rows of one line as the reader tells them by itself, as record 1; None where it has doubts."""


@dataclass(frozen=True)
class Fast:
    """How a reader takes lines of one shape.

    ``tables(shape, values)``: the rows; their ``record`` is a column of the values.
    ``sound(shape)`` is true where the values are what they seem; the others are read one by one.
    """

    fields: Mapping[str, Kind]
    tables: Callable[[Shape, pl.DataFrame], Tables]
    sound: Callable[[Shape], pl.Expr]
    known: frozenset[str] = frozenset()
    """Every field there is, where a key that is none of them shall be told."""

    def shapes(self, one: One) -> Shapes:
        """The shapes of a file, none learned yet."""
        return Shapes(self.fields, partial(self.trusted, one), self.sound)

    def trusted(self, one: One, shape: Shape, line: str) -> bool:
        """A shape is trusted once its first line gave the same rows both ways."""
        told = one(line)
        if told is None:
            return False
        values = shape.read(pl.DataFrame({INDEX: [0], LINE: [line]}))
        if not values.select(self.sound(shape)).item():
            return True  # nothing to compare: this line is read by itself
        tables = self.tables(shape, values.with_columns(record=pl.lit(1, pl.Int64)))
        fast = {name: contracted(name, frame) for name, frame in tables.items()}
        slow = {name: table_of(name, rows) for name, rows in told.items() if rows}
        return _rows_of(fast) == _rows_of(slow)

    def read(
        self, block: Lines, shapes: Shapes, keys: set[str] | None = None
    ) -> tuple[dict[str, list[pa.Table]], list[Strange]]:
        """Rows of the alike lines, whose ``keys`` are added, and the others."""
        found, strange = shapes.split(block)
        tables: dict[str, list[pa.Table]] = {}
        for shape, values in found:
            if keys is not None:
                keys |= outer(shape)
            numbered = values.with_columns(record=pl.col(INDEX).cast(pl.Int64) + block.first_record)
            for name, frame in self.tables(shape, numbered).items():
                if frame.height:
                    tables.setdefault(name, []).append(contracted(name, frame))
        return tables, strange


def outer(shape: Shape) -> set[str]:
    """Keys of the object itself, without those of the objects in it."""
    return {key.partition(".")[0] for key in shape.keys}


def in_order(name: str, tables: Iterable[pa.Table]) -> pa.Table:
    """Rows of one table from several hands, as the file tells them."""
    some = list(tables)
    if len(some) == 1:
        return some[0]
    frames = [pl.DataFrame(pl.from_arrow(one)) for one in some]
    whole = pl.concat(frames, how="diagonal_relaxed").sort("record", maintain_order=True)
    return contracted(name, whole)


def contracted(name: str, frame: pl.DataFrame) -> pa.Table:
    """Columns of the contract's types; those that nothing is told in are left out."""
    table = frame.select(
        name for name in frame.columns if frame[name].null_count() < frame.height
    ).to_arrow()
    schema = TABLES[name]
    return table.cast(pa.schema([schema.field(column) for column in table.column_names]))


def _rows_of(tables: Mapping[str, pa.Table]) -> dict[str, list[dict[str, Any]]]:
    return {
        name: [
            {column: value for column, value in row.items() if value is not None}
            for row in table.to_pylist()
        ]
        for name, table in tables.items()
        if table.num_rows
    }
