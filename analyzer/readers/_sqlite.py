"""SQLite files of strangers: opened read-only as they lie there, and scanned into Arrow.

A scan hands columns of whole numbers and of bytes from SQLite to Arrow in batches, through ADBC
where it is installed (a quarter of the processor time), else through the standard library.
"""

from __future__ import annotations

import importlib
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from analyzer.contract.types import Batch, Problem
from analyzer.readers._file import InputFile

MAGIC = b"SQLite format 3\x00"
_BATCH_ROWS = 65_536
_KNOWN = (
    "malformed", "not a database", "disk I/O", "no such column", "no such table", "no tables",
    "too big",
)  # fmt: skip


# A schema may be a stranger's: no function of it runs, and damaged pages are noticed.
_GUARDS = ("PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON", "PRAGMA query_only = ON")


@contextmanager
def on_disk(file: InputFile) -> Iterator[Path]:
    """A path SQLite can open: the file's own, or a copy of what it unpacks to."""
    if file.packing == "plain":
        yield file.path
        return
    with tempfile.TemporaryDirectory(prefix="analyze-") as folder:
        copy = Path(folder) / "copy.db"
        with copy.open("wb") as out:
            for block in file.blocks():
                out.write(block)
        yield copy


def opened(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing; text comes as bytes."""
    database = sqlite3.connect(_uri(path), uri=True)
    database.text_factory = bytes
    for guard in _GUARDS:
        database.execute(guard)
    return database


def _uri(path: Path) -> str:
    # Immutable: no lock, no journal and nothing beside the file is looked at or made.
    return f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"


def told(error: Exception) -> str:
    """SQLite's own words, without what it quotes of the file."""
    return next((words for words in _KNOWN if words in str(error)), type(error).__name__)


def read_database(
    file: InputFile, wanted: str, damaged: str, rows: Callable[[InputFile], Iterator[Batch]]
) -> Iterator[Batch]:
    """What ``rows`` gives of a file that is a database, as far as it can be read.

    ``wanted`` says that it is none; ``damaged`` that it broke off, with ``why`` for SQLite's words.
    """
    if not file.head.data.startswith(MAGIC):
        yield Batch(records=1, problems=(Problem(1, wanted),)) if file.head.data else Batch()
        return
    done = 0
    try:
        for batch in rows(file):
            done += batch.records
            yield batch
    except (sqlite3.Error, OverflowError, UnicodeError, pa.ArrowException) as error:
        yield Batch(records=1, problems=(Problem(done + 1, damaged.format(why=told(error))),))


def tables(database: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """Real tables with their columns; views and virtual tables are left out."""
    names = database.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND upper(sql) LIKE 'CREATE TABLE%'"
    ).fetchall()
    found = {}
    for (name,) in names:
        text = name.decode("utf-8", "replace")
        rows = database.execute("SELECT name FROM pragma_table_info(?)", (text,)).fetchall()
        found[text] = frozenset(row[0].decode("utf-8", "replace") for row in rows)
    return found


def whole(column: str) -> str:
    """SQL of a column whose cells are whole numbers; any other cell is NULL."""
    name = '"' + column.replace('"', '""') + '"'
    return f"CASE typeof({name}) WHEN 'integer' THEN {name} END"


def blob(column: str, most: int) -> str:
    """SQL of a column of text as bytes, cut after ``most`` characters; NULL becomes empty."""
    name = '"' + column.replace('"', '""') + '"'
    return f"CAST(coalesce(substr({name}, 1, {most}), '') AS BLOB)"


def scan(
    path: Path, select: str, names: Sequence[str], text: frozenset[str] = frozenset()
) -> Iterator[pa.RecordBatch]:
    """Batches of a SELECT made of :func:`whole` and, for the columns in ``text``, :func:`blob`."""
    schema = pa.schema([(name, pa.binary() if name in text else pa.int64()) for name in names])
    adbc = _adbc()
    if adbc is None:
        yield from _plain(path, select, schema)
        return
    try:
        with closing(adbc.connect(_uri(path))) as database, closing(database.cursor()) as cursor:
            for guard in _GUARDS:
                cursor.execute(guard)
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": _BATCH_ROWS})
            cursor.execute(select)
            for batch in cursor.fetch_record_batch():
                columns = zip(batch.columns, schema.types, strict=True)
                yield pa.RecordBatch.from_arrays([c.cast(t) for c, t in columns], schema=schema)
    except adbc.Error as error:
        raise sqlite3.DatabaseError(str(error)) from None


@cache
def _adbc() -> Any:  # noqa: ANN401 - a module without types
    try:
        return importlib.import_module("adbc_driver_sqlite.dbapi")
    except ImportError:
        return None


def _plain(path: Path, select: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with closing(opened(path)) as database:
        cursor = database.execute(select)
        while rows := cursor.fetchmany(_BATCH_ROWS):
            columns = zip(*rows, strict=True)
            arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
