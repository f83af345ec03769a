"""The case: one DuckDB file that holds what every source said, and where each row came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from analyzer.contract.tables import CONTRACT_VERSION, TABLES
from analyzer.contract.types import Batch
from analyzer.errors import AnalyzerError
from analyzer.store._gather import Gathered
from analyzer.store._group import Group
from analyzer.store._limits import limits
from analyzer.store._place import check_place
from analyzer.store._room import no_room
from analyzer.store.catalog import Catalog, KnownSource
from analyzer.store.resume import dump_resume

_TYPES = {
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.decimal128(18, 9): "DECIMAL(18,9)",
    pa.decimal128(38, 12): "DECIMAL(38,12)",
}
_CHILD_TABLES = ("chunk", "prompt_block", "prompt_part", "request_tag")
_ACCOUNT_TABLES = ("source", "source_note", "source_length")
YEAR_ASSUMED = "was taken, the newest that fits"
"""How a reader ends the note on a year that nothing else in the case supports."""

_ROW_GROUP = 122_880
_INSERT_ROWS = 2 * _ROW_GROUP
"""DuckDB compresses a whole row group once, and what is added to a part of one again and again."""
# A query may come from anybody: it reads this case and nothing else, no file and no network.
_SEALED = {"enable_external_access": "false", "lock_configuration": "true"}
_TIMES = (
    ("request", "start_ns", "start_ns + coalesce(e2e_ns, 0)", "coalesce(clock, 'wall') = 'wall'"),
    ("engine_sample", "time_ns", "time_ns", "clock = 'wall'"),
    ("engine_step", "time_ns", "time_ns", "clock = 'wall'"),
    ("engine_event", "time_ns", "time_ns", "TRUE"),
    ("client_tick", "time_ns", "time_ns", "TRUE"),
    ("gpu_sample", "time_ns", "time_ns", "coalesce(clock, 'wall') = 'wall'"),
    ("gpu_trace", "start_ns", "start_ns + coalesce(dur_ns, 0)", "clock = 'wall'"),
)


class Case:
    """An open case file. Use :func:`open_case`."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection) -> None:
        self.path = path
        self.connection = connection
        self.group = Group()
        self.lost: dict[int, str] = {}
        """Sources that were read, but could not be stored, and why."""
        self.begun = False
        """A file has a transaction to itself."""

    def close(self) -> None:
        """Store what waits, and release the file."""
        try:
            self.flush()
        finally:
            self.connection.close()

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of one statement. DuckDB 2 refuses the next one while a result is unread."""
        if self.group.sources:
            self.flush()  # what was read before is there
        try:
            return self.connection.execute(sql, list(parameters)).fetchall()
        except duckdb.Error as error:
            raise no_room(self.path, error) or error from None

    # -- reading --------------------------------------------------------------------------------

    @cached_property
    def catalog(self) -> Catalog:
        """Read once: nobody else writes to an open case."""
        rows = self.run(
            "SELECT source_id, path, sha256, bytes, reader, resume FROM source ORDER BY source_id"
        )
        shorter = self.run("SELECT sha256 FROM source_length")
        return Catalog((KnownSource(*row) for row in rows), (sha for (sha,) in shorter))

    def knows(self, sha256: str) -> bool:
        """Whether these very bytes were read, in this or an earlier, shorter form of a file."""
        return sha256 in self.catalog.hashes

    def reference_ns(self) -> int | None:
        """A time told by the dated sources (the middle of all they span), or None."""
        ((first, last),) = self.run(
            "SELECT min(first_ns), max(last_ns) FROM source WHERE first_ns IS NOT NULL "
            "AND source_id NOT IN (SELECT source_id FROM source_note WHERE note LIKE ?)",
            [f"%{YEAR_ASSUMED}%"],
        )
        return None if first is None else int((first + last) // 2)

    # -- writing --------------------------------------------------------------------------------

    def insert(
        self,
        name: str,
        incoming: pa.Table,  # noqa: ARG002 - see below
        source_id: int | None = None,
    ) -> None:
        """Append rows that conform to the contract; columns that they lack become NULL."""
        # DuckDB finds ``incoming`` by its name in this frame. A view of it, made and dropped, would
        # hold its rows in memory until the transaction of the whole file ends.
        source = "" if source_id is None else f", {source_id} AS source_id"
        sql = f"INSERT INTO {name} BY NAME SELECT *{source} FROM incoming"
        try:
            self.connection.execute(sql).fetchall()
        except duckdb.Error as error:
            raise no_room(self.path, error) or error from None

    @contextmanager
    def file(
        self,
        row: Mapping[str, Any],
        known: KnownSource | None = None,
        gathered: Gathered | None = None,
        begin: bytes | None = None,
    ) -> Iterator[FileWriter]:
        """One file in one transaction: all of it is stored, or nothing.

        ``known`` is the source that has grown; without a resume point its rows are replaced.
        ``gathered`` holds what was read of the file already, ``begin`` its first bytes.
        """
        if known is not None:
            self.begin()
        try:
            writer = FileWriter(self, row, known, gathered)
            yield writer
            writer.finish()
        except BaseException:
            self._end("ROLLBACK")
            raise
        self._end("COMMIT")
        self.catalog.add(writer.source(begin))
        if self.group.full:
            self.flush()

    def begin(self) -> None:
        """A transaction for one file alone, whose rows do not fit into memory or replace others."""
        if not self.begun:
            self.run("BEGIN TRANSACTION")
            self.begun = True

    def _end(self, how: str) -> None:
        if self.begun:
            self.begun = False
            self.run(how)

    def flush(self) -> None:
        """Store the small files that wait, in one piece; raises where they cannot be."""
        group, self.group = self.group, Group()
        if not group.sources:
            return
        self.begin()
        try:
            for name, rows in group.tables():
                self.insert(name, rows)
            self._end("COMMIT")
        except BaseException as error:
            self._end("ROLLBACK")
            for source_id in group.sources:
                self.catalog.forget(source_id)
                self.lost[source_id] = str(error)
            raise


class FileWriter:
    """Appends the batches of one file and keeps its account."""

    def __init__(
        self,
        case: Case,
        row: Mapping[str, Any],
        known: KnownSource | None,
        gathered: Gathered | None = None,
    ) -> None:
        self._case = case
        self._row = dict(row)
        self.gathered = gathered or Gathered(str(row["path"]), str(row["reader"]))
        self.span: tuple[int | None, int | None] = (None, None)
        """First and last time the source tells, once it is finished."""
        self.in_part = 0
        """Records with a problem that gave a request all the same, once it is finished."""
        if known is None:
            self.source_id = case.catalog.next_id
            return
        self.source_id = known.source_id
        self._continue(known)

    def _continue(self, known: KnownSource) -> None:
        """Take back what the end of the shorter file told for the time being."""
        run = self._case.run
        run(
            "INSERT INTO source_length VALUES (?, ?, ?)",
            [self.source_id, known.bytes, known.sha256],
        )
        if known.resume is None:
            for table in TABLES:
                if table != "source_length":
                    run(f"DELETE FROM {table} WHERE source_id = ?", [self.source_id])
            return
        ((records, used),) = run(
            "SELECT records, used FROM source WHERE source_id = ?", [self.source_id]
        )
        again = records - known.resume.records
        ((had_problem,),) = run(
            "SELECT count(DISTINCT record) FROM problem WHERE source_id = ? AND record > ?",
            [self.source_id, known.resume.records],
        )
        used -= again - had_problem
        gathered = self.gathered
        gathered.counts.update(records=known.resume.records, used=used)
        notes = run(
            "SELECT kind, note, records FROM source_note WHERE source_id = ?", [self.source_id]
        )
        gathered.ignored.update({note: n for kind, note, n in notes if kind == "ignored"})
        gathered.assumed += [note for kind, note, _ in notes if kind == "assumed"]
        for table in TABLES:
            if table in _ACCOUNT_TABLES:
                continue
            # Chunks, tags and doubts of open requests are told once, with their final numbers.
            told_once = (*_CHILD_TABLES, "problem")
            provisional = () if table in told_once else known.resume.provisional
            run(
                f"DELETE FROM {table} WHERE source_id = ? AND (record > ? OR record IN "
                "(SELECT unnest(CAST(? AS BIGINT[]))))",
                [self.source_id, known.resume.records, list(provisional)],
            )
        for table in ("source", "source_note"):
            run(f"DELETE FROM {table} WHERE source_id = ?", [self.source_id])

    def told(self, **row: Any) -> None:  # noqa: ANN401 - columns of the source row
        """What is known of the source only now that it was read."""
        self._row |= row

    def append(self, batch: Batch) -> None:
        """Take one batch; raises where it breaks the contract or its account does not add up."""
        self.gathered.append(batch)
        for name in list(self.gathered.tables):
            if self.gathered.waiting(name) >= _INSERT_ROWS:
                self._case.begin()
                rows = self.gathered.pop(name)
                whole = rows.num_rows // _ROW_GROUP * _ROW_GROUP
                self._case.insert(name, rows.slice(0, whole), self.source_id)
                self.gathered.tables[name] = [rows.slice(whole)]

    def finish(self) -> None:
        """Hand over what still waits, the source row and its notes."""
        self.gathered.end()
        tables = {name: self.gathered.pop(name) for name in list(self.gathered.tables)}
        if self._case.begun:
            for name, rows in tables.items():
                self._case.insert(name, rows, self.source_id)
            self.span, self.in_part = self._span(), self._in_part()
        else:
            self.span, self.in_part = self.gathered.span, self.gathered.in_part
        account = self._account_rows(*self.span)
        if self._case.begun:
            for name, told in account.items():
                self._case.insert(name, pa.Table.from_pylist(told, schema=TABLES[name]))
        else:
            self._case.group.add(self.source_id, tables, account)

    def _account_rows(self, first: int | None, last: int | None) -> dict[str, list[dict[str, Any]]]:
        gathered = self.gathered
        account = gathered.account()
        self._row |= {
            "source_id": self.source_id,
            **account,
            "first_ns": first,
            "last_ns": last,
            "resume": dump_resume(gathered.resume) if gathered.resume else None,
        }
        gathered.resume = None
        notes = [
            {"source_id": self.source_id, "kind": "ignored", "note": note, "records": n}
            for note, n in sorted(gathered.ignored.items())
        ] + [
            {
                "source_id": self.source_id, "kind": "assumed", "note": note,
                "records": account["records"],
            }
            for note in gathered.assumed
        ]  # fmt: skip
        return {"source": [self._row], "source_note": notes}

    def source(self, begin: bytes | None) -> KnownSource:
        """It, once it is finished."""
        row = self._row
        return KnownSource(
            self.source_id, row["path"], row["sha256"], row["bytes"], row["reader"], row["resume"],
            begin,
        )  # fmt: skip

    def _span(self) -> tuple[int | None, int | None]:
        parts = " UNION ALL ".join(
            f"SELECT min({first}) AS a, max({last}) AS b FROM {table} "
            f"WHERE source_id = {self.source_id} AND {when}"
            for table, first, last, when in _TIMES
        )
        ((first, last),) = self._case.run(f"SELECT min(a), max(b) FROM ({parts})")
        return first, last

    def _in_part(self) -> int:
        if not (self.gathered.rows and self.gathered.account()["problems"]):
            return 0
        ((count,),) = self._case.run(
            "SELECT count(DISTINCT p.record) FROM problem AS p JOIN request AS r "
            "ON p.source_id = r.source_id AND p.record = r.record WHERE p.source_id = ?",
            [self.source_id],
        )
        return int(count)


# -- opening ------------------------------------------------------------------------------------

_BESIDE = 5
"""Cases of the same folder that are named where the one asked for does not exist."""


def open_case(path: str | Path, *, write: bool = False) -> Case:
    """Open a case. To read one it must exist; to write, it is created where it does not.

    Raises :class:`AnalyzerError` where the file is missing, locked, no case, or of another
    contract version.
    """
    path = Path(path)
    if not write and not path.exists():
        beside = sorted(other.name for other in path.parent.glob("*.duckdb"))[:_BESIDE]
        others = f"; --db names another: {', '.join(beside)}" if beside else ""
        made = f"analyze --db {path} ingest PATH... makes one"
        raise AnalyzerError(f"no case at {path}", f"{made}{others}")
    check_place(path, write=write)
    fresh = not path.exists()
    try:
        # In this order: DuckDB takes a spill folder after the seal, but no seal after the folder.
        config = ({} if write else _SEALED) | limits(path, write=write)
        connection = duckdb.connect(str(path), read_only=not write, config=dict(config))
    except duckdb.Error as error:
        if "could not set lock" in str(error).lower():
            raise AnalyzerError(
                f"{path} is in use by another process", "wait for it to end, or use another --db"
            ) from None
        if fresh:  # what the next run would take for a damaged case
            path.unlink(missing_ok=True)
        other = AnalyzerError(f"{path} cannot be opened", str(error).splitlines()[0])
        raise no_room(path, error) or other from None
    case = Case(path, connection)
    try:
        _prepare(case, write=write)
    except BaseException:
        case.close()
        raise
    return case


def _prepare(case: Case, *, write: bool) -> None:
    run = case.run
    tables = {name for (name,) in run("SELECT table_name FROM duckdb_tables()")}
    if "analyze_meta" in tables:
        if run("SELECT contract_version FROM analyze_meta") != [(CONTRACT_VERSION,)]:
            raise AnalyzerError(
                f"{case.path} was written by another version of analyze",
                "ingest the logs again into a new --db",
            )
    elif tables or not write:
        raise AnalyzerError(f"{case.path} is a DuckDB file, but no case", "use another --db")
    else:
        # In one piece: a process killed in between must leave an empty file, not half a case.
        run("BEGIN TRANSACTION")
        run("CREATE TABLE analyze_meta AS SELECT ? AS contract_version", [CONTRACT_VERSION])
        for name, schema in TABLES.items():
            columns = ", ".join(
                f"{f.name} {_TYPES[f.type]}{'' if f.nullable else ' NOT NULL'}" for f in schema
            )
            run(f"CREATE TABLE {name} ({columns})")
        run("COMMIT")
