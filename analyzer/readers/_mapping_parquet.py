"""Reads Parquet batch by batch into columns of cells; row numbers count from 1."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyarrow import parquet

from analyzer.contract.types import Problem
from analyzer.readers._file import InputFile
from analyzer.readers._mapping import Plan
from analyzer.readers._mapping_cells import NESTED
from analyzer.readers._mapping_rows import Chunk

_ROWS = 50_000
_MOST_ROWS_A_BYTE = 1_000
_REPAIR = (
    "its directory stands at its end, so a cut or damaged Parquet file cannot be read on from "
    "here: write it or copy it again"
)


def parquet_chunks(file: InputFile, plan: Plan) -> Iterator[Chunk]:
    """The rows, and one problem where the file is damaged."""
    done = 0
    try:
        if file.packing != "plain":
            yield _stop(0, f"Parquet inside {file.packing}: unpack it first")
            return
        with file.open_raw() as stream:
            table = parquet.ParquetFile(stream)
            if table.metadata.num_rows > _MOST_ROWS_A_BYTE * max(1_000, file.size):
                yield _stop(0, f"{table.metadata.num_rows:,} rows in so few bytes cannot be a log")
                return
            roots = list(dict.fromkeys(_root(name, table.schema_arrow) for name in plan.theirs))
            for batch in table.iter_batches(
                _ROWS, columns=[root for root in roots if root], use_threads=False
            ):
                yield _chunk(batch, done, plan)
                done += batch.num_rows
    except (pa.ArrowException, OSError, ValueError) as error:
        yield _stop(done, f"cannot be read ({type(error).__name__}): {_REPAIR}")


def _stop(done: int, reason: str) -> Chunk:
    return Chunk(pl.DataFrame(), 1, [Problem(done + 1, reason)])


def _root(name: str, schema: pa.Schema) -> str:
    """The column that holds a field; empty where the file has none."""
    if name in schema.names:
        return name
    root = name.partition(".")[0]
    return root if root in schema.names else ""


def _chunk(batch: pa.RecordBatch, done: int, plan: Plan) -> Chunk:
    records = pl.int_range(done + 1, done + batch.num_rows + 1, eager=True)
    columns = {name: _cells(batch, name) for name in plan.theirs}
    return Chunk(pl.DataFrame({"record": records} | columns), batch.num_rows)


def _cells(batch: pa.RecordBatch, name: str) -> pl.Series:
    root = _root(name, batch.schema)
    if not root:
        return pl.Series([None] * batch.num_rows, dtype=pl.String)
    array = batch.column(root)
    if root != name:
        for part in name.split(".")[1:]:
            if not pt.is_struct(array.type) or array.type.get_field_index(part) < 0:
                return pl.Series([None] * batch.num_rows, dtype=pl.String)
            array = pc.struct_field(array, part)
    try:
        return _series(array)
    except (pa.ArrowException, ValueError):
        return _nothing(array)


def _series(array: pa.Array) -> pl.Series:
    """Integers and booleans as they are, lists as they are, everything else as exact text."""
    kind = array.type
    if pt.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if pt.is_list(kind) or pt.is_large_list(kind):
        return pl.Series(array.to_pylist(), dtype=pl.Object)
    if pt.is_boolean(kind):
        return _polars(array)
    if pt.is_date(kind):
        array = array.cast(pa.timestamp("s"))
    if pt.is_duration(kind) or (pt.is_integer(kind) and not pt.is_uint64(kind)):
        return _polars(array.cast(pa.int64()))
    if pt.is_floating(kind):  # its shortest exact text, which Polars writes and Arrow does not
        return _polars(array.cast(pa.float64()) if kind == pa.float16() else array).cast(pl.String)
    if pt.is_struct(kind) or pt.is_map(kind) or pt.is_null(kind):
        return _nothing(array)
    return _polars(array.cast(pa.string()))


def _polars(array: pa.Array) -> pl.Series:
    series = pl.from_arrow(array)
    assert isinstance(series, pl.Series)  # noqa: S101 - an array gives no frame
    return series


def _nothing(array: pa.Array) -> pl.Series:
    """What no single value can be made of is a bad cell, what is not there is not told."""
    return pl.Series(
        [NESTED if one else None for one in array.is_valid().to_pylist()], dtype=pl.String
    )
