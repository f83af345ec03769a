"""The case: one DuckDB file that holds what every source said, and where each row came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from analyzer.contract.tables import CONTRACT_VERSION, TABLES
from analyzer.contract.types import Batch, Resume
from analyzer.errors import AnalyzerError
from analyzer.store._conform import conform, problem_table
from analyzer.store._group import Group, span
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
_CHILD_TABLES = ("chunk", "prompt_block", "request_tag")
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
    ("gpu_sample", "time_ns", "time_ns", "TRUE"),
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

    def known_sources(self) -> list[KnownSource]:
        """Every source, for the question whether a file is new, known or has grown."""
        return list(self.catalog.sources.values())

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
        self, row: Mapping[str, Any], known: KnownSource | None = None
    ) -> Iterator[FileWriter]:
        """One file in one transaction: all of it is stored, or nothing.

        ``known`` is the source that has grown; without a resume point its rows are replaced.
        """
        if known is not None:
            self.begin()
        try:
            writer = FileWriter(self, row, known)
            yield writer
            writer.finish()
        except BaseException:
            self._end("ROLLBACK")
            raise
        self._end("COMMIT")
        self.catalog.add(writer.source())
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
            for name, tables in group.tables.items():
                self.insert(name, pa.concat_tables(tables, promote_options="permissive"))
            self._end("COMMIT")
        except BaseException as error:
            self._end("ROLLBACK")
            for source_id in group.sources:
                self.catalog.forget(source_id)
                self.lost[source_id] = str(error)
            raise


class FileWriter:
    """Appends the batches of one file and keeps its account."""

    def __init__(self, case: Case, row: Mapping[str, Any], known: KnownSource | None) -> None:
        self._case = case
        self._row = dict(row)
        self._counts: Counter[str] = Counter()
        self._ignored: Counter[str] = Counter()
        self._assumed: list[str] = []
        self._resume: Resume | None = None
        self._waiting: dict[str, list[pa.Table]] = {}
        self.rows = 0
        self.span: tuple[int | None, int | None] = (None, None)
        """First and last time the source tells, once it is finished."""
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
        self._counts.update(records=known.resume.records, used=used)
        notes = run(
            "SELECT kind, note, records FROM source_note WHERE source_id = ?", [self.source_id]
        )
        self._ignored.update({note: n for kind, note, n in notes if kind == "ignored"})
        self._assumed += [note for kind, note, _ in notes if kind == "assumed"]
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

    def append(self, batch: Batch) -> None:
        """Store one batch; raises where it breaks the contract or its account does not add up."""
        problems = len({problem.record for problem in batch.problems})
        ignored = sum(batch.ignored.values())
        if batch.records != batch.used + ignored + problems:
            msg = (
                f"reader {self._row['reader']} lost count in {self._row['path']}: {batch.records} "
                f"records, {batch.used} used, {ignored} ignored, {problems} problems"
            )
            raise AnalyzerError(msg, "this is a bug in the reader; please report it")
        self._counts.update(records=batch.records, used=batch.used)
        self._ignored.update(batch.ignored)
        self._assumed += [note for note in batch.assumed if note not in self._assumed]
        self._resume = batch.resume or self._resume
        for name, table in batch.tables.items():
            self._insert(name, table)
        if batch.problems:
            self._insert("problem", problem_table(batch.problems))

    def _insert(self, name: str, table: pa.Table) -> None:
        if table.num_rows == 0:
            return
        waiting = self._waiting.setdefault(name, [])
        waiting.append(conform(name, table, str(self._row["reader"])))
        self.rows += table.num_rows if name != "problem" else 0
        if sum(one.num_rows for one in waiting) >= _INSERT_ROWS:
            self._case.begin()
            rows = pa.concat_tables(self._waiting.pop(name), promote_options="permissive")
            whole = rows.num_rows // _ROW_GROUP * _ROW_GROUP
            self._case.insert(name, rows.slice(0, whole), self.source_id)
            self._waiting[name] = [rows.slice(whole)]

    def finish(self) -> None:
        """Hand over what still waits, the source row and its notes."""
        tables = {
            name: pa.concat_tables(some, promote_options="permissive")
            for name, some in self._waiting.items()
        }
        self._waiting = {}
        if self._case.begun:
            for name, rows in tables.items():
                self._case.insert(name, rows, self.source_id)
            self.span = self._span()
        else:
            self.span = span(tables)
        account = self._account_rows(*self.span)
        if self._case.begun:
            for name, rows in account.items():
                self._case.insert(name, rows)
        else:
            self._case.group.add(self.source_id, tables | account)

    def _account_rows(self, first: int | None, last: int | None) -> dict[str, pa.Table]:
        ignored = sum(self._ignored.values())
        records, used = self._counts["records"], self._counts["used"]
        self._row |= {
            "source_id": self.source_id,
            "records": records,
            "used": used,
            "ignored": ignored,
            "problems": records - used - ignored,
            "first_ns": first,
            "last_ns": last,
            "resume": dump_resume(self._resume) if self._resume else None,
        }
        self._resume = None
        source = pa.Table.from_pylist([self._row], schema=TABLES["source"])
        notes = [
            {"source_id": self.source_id, "kind": "ignored", "note": note, "records": n}
            for note, n in sorted(self._ignored.items())
        ] + [
            {"source_id": self.source_id, "kind": "assumed", "note": note, "records": records}
            for note in self._assumed
        ]
        told = pa.Table.from_pylist(notes, schema=TABLES["source_note"])
        return {"source": source, "source_note": told}

    def source(self) -> KnownSource:
        """It, once it is finished."""
        row = self._row
        return KnownSource(
            self.source_id, row["path"], row["sha256"], row["bytes"], row["reader"], row["resume"]
        )

    def account(self) -> dict[str, int]:
        """records, used, ignored, problems so far."""
        ignored = sum(self._ignored.values())
        records, used = self._counts["records"], self._counts["used"]
        return {
            "records": records, "used": used, "ignored": ignored,
            "problems": records - used - ignored,
        }  # fmt: skip

    def _span(self) -> tuple[int | None, int | None]:
        parts = " UNION ALL ".join(
            f"SELECT min({first}) AS a, max({last}) AS b FROM {table} "
            f"WHERE source_id = {self.source_id} AND {when}"
            for table, first, last, when in _TIMES
        )
        ((first, last),) = self._case.run(f"SELECT min(a), max(b) FROM ({parts})")
        return first, last


# -- opening ------------------------------------------------------------------------------------


def open_case(path: str | Path, *, write: bool = False) -> Case:
    """Open a case. To read one it must exist; to write, it is created where it does not.

    Raises :class:`AnalyzerError` where the file is missing, locked, no case, or of another
    contract version.
    """
    path = Path(path)
    if not write and not path.exists():
        raise AnalyzerError(f"no case at {path}", f"analyze --db {path} ingest PATH... makes one")
    check_place(path, write=write)
    fresh = not path.exists()
    try:
        # In this order: DuckDB takes a spill folder after the seal, but no seal after the folder.
        config = ({} if write else _SEALED) | limits(path)
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
