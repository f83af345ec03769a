"""SQLite files of strangers: opened read-only as they lie there, and scanned into Arrow.

A scan hands columns of whole numbers and of bytes from SQLite to Arrow in batches, through ADBC: it
takes a fifth of the processor time that rows of Python take, or less.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from analyzer.contract.types import Batch, Problem
from analyzer.readers._file import InputFile

MAGIC = b"SQLite format 3\x00"
EARLY = "it is shorter than its header says"
_BATCH_ROWS = 65_536
_KNOWN = (
    "malformed", "not a database", "disk I/O", "no such column", "no such table", "no tables",
    "too big",
)  # fmt: skip


# A schema may be a stranger's: no function of it runs, and damaged pages are noticed.
_GUARDS = ("PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON", "PRAGMA query_only = ON")
# Nothing can be written here; but only where a schema could be, SQLite opens what ends too early.
_SHORT = "PRAGMA writable_schema = ON"


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


def opened(path: Path, *, short: bool = False) -> sqlite3.Connection:
    """A connection that changes nothing; text comes as bytes.

    With ``short``, a database that ends too early is read as far as it goes: :func:`ends_early`.
    """
    database = sqlite3.connect(_uri(path), uri=True)
    database.text_factory = bytes
    for guard in (*_GUARDS, _SHORT) if short else _GUARDS:
        database.execute(guard)
    return database


def _uri(path: Path) -> str:
    # Immutable: no lock, no journal and nothing beside the file is looked at or made.
    return f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"


def told(error: Exception) -> str:
    """SQLite's own words, without what it quotes of the file."""
    return next((words for words in _KNOWN if words in str(error)), type(error).__name__)


def ends_early(path: Path) -> bool:
    """Whether a database is shorter than its header says."""
    with path.open("rb") as stream:
        head = stream.read(100)
    page, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    # Versions of long ago did not keep the number of pages.
    kept = head[24:28] == head[92:96]
    return kept and pages * (65_536 if page == 1 else page) > path.stat().st_size


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


def named(column: str) -> str:
    """SQL of a column's name."""
    return '"' + column.replace('"', '""') + '"'


def blob(column: str, most: int) -> str:
    """SQL of a column of text as bytes, cut after ``most`` characters; NULL becomes empty."""
    return f"CAST(coalesce(substr({named(column)}, 1, {most}), '') AS BLOB)"


def scan(
    path: Path, cells: Mapping[str, str], rest: str, text: frozenset[str] = frozenset()
) -> Iterator[pa.RecordBatch]:
    """Batches of ``SELECT cells rest``, given as name -> SQL; the order of rows must be certain.

    Columns are of whole numbers, and any other cell is NULL; those in ``text`` are :func:`blob`.
    """
    kinds = {name: pa.binary() if name in text else pa.int64() for name in cells}
    schema, done = pa.schema(list(kinds.items())), 0
    try:
        for batch in _batches(path, f"SELECT {', '.join(cells.values())} {rest}", schema):
            yield batch
            done += batch.num_rows
    except sqlite3.DatabaseError:
        # To ask each cell for its type takes half as long again; so only where one differs.
        strict = [sql if name in text else _whole(sql) for name, sql in cells.items()]
        for batch in _batches(path, f"SELECT {', '.join(strict)} {rest}", schema):
            if batch.num_rows > done:
                yield batch.slice(done)
            done = max(0, done - batch.num_rows)


def _whole(sql: str) -> str:
    return f"CASE typeof({sql}) WHEN 'integer' THEN {sql} END"


def _batches(path: Path, select: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    # Not for every command: it takes 40 ms.
    from adbc_driver_sqlite import dbapi

    try:
        with closing(dbapi.connect(_uri(path))) as database, closing(database.cursor()) as cursor:
            for guard in (*_GUARDS, _SHORT):
                cursor.execute(guard)
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": _BATCH_ROWS})
            cursor.execute(select)
            for batch in cursor.fetch_record_batch():
                if batch.num_rows:
                    # The first rows decide on the types, for all that follow.
                    if batch.schema.types != schema.types:
                        raise sqlite3.DatabaseError("cells of another type")
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
    except (dbapi.Error, pa.ArrowException, OSError) as error:
        # What goes wrong after the first batch is an OSError.
        raise sqlite3.DatabaseError(str(error)) from None
