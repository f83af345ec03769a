"""Nsight Systems exports in SQLite (``nsys export --type sqlite``), of all schema versions.

The columns of each table are looked up first: exports differ from version to version, tables
without rows are left out, and people cut exports down.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analyzer.contract.types import Batch, Problem
from analyzer.readers._fast_ahead import ahead_of
from analyzer.readers._file import Head, InputFile
from analyzer.readers._gpu_rows import LONG_NS, SHORT_CALLS, TELLING
from analyzer.readers._kineto_facts import rank_of
from analyzer.readers._nsys_facts import (
    GRAPHS,
    NO_CLOCK,
    PROFILER,
    Facts,
    deployment_rows,
    facts_of,
    trace_rows,
)
from analyzer.readers._nsys_metrics import metric_rows
from analyzer.readers._nsys_rows import (
    OPERATOR,
    SMALL,
    SOURCES,
    Source,
    Told,
    batch_of,
)  # fmt: skip
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import tables_of
from analyzer.readers._sqlite import (
    EARLY,
    MAGIC,
    blob,
    ends_early,
    named,
    on_disk,
    opened,
    read_database,
    scan,
    tables,
    told,
)

_OURS = re.compile(
    rb"CREATE TABLE [`\"\[]?"
    rb"(?:CUPTI_ACTIVITY_\w+|NVTX_EVENTS|TARGET_INFO_\w+|ANALYSIS_(?:DETAILS|FILE))"
)
_WANTED = "not a SQLite database: `nsys export --type sqlite FILE.nsys-rep` makes one"
_DAMAGED = (
    "the database is damaged or cut off ({why}): export it again with `nsys export --type sqlite`; "
    "`sqlite3 FILE .recover | sqlite3 new.sqlite` saves what can be read"
)
_NOTHING = (
    "no tables of device activity: record with `nsys profile --trace=cuda,nvtx` and export again"
)
_MOST_NAME = 2_000
_MOST_RANGE = 500
_MOST_NS = 1e17
_MOST_SMALL = 10_000
"""Rows read of a table that has a handful."""
_MOST_IDS = 500
"""Ids in one look-up; SQLite takes no more than a thousand."""
_TEXT = frozenset(("text",))
_EXTENT = ("count(*)", "min(rowid)", "max(rowid)")
_Raw = tuple[Source, pa.RecordBatch, pa.Array]
"""Rows of a table as they are, and the number of each as a record."""


def probe(head: Head) -> Claim:
    """SQLite whose head defines tables of an Nsight Systems export."""
    if not head.data.startswith(MAGIC):
        return Claim(0, "not a SQLite database")
    if b"CREATE TABLE" in head.data and _OURS.search(head.data):
        return Claim(1, "")
    return Claim(0.3, "a SQLite database without CUPTI_ACTIVITY_KIND_... tables at its head")


@dataclass
class _Export:
    """One database, open; what is small in it is read at once."""

    path: Path
    database: sqlite3.Connection
    columns: dict[str, frozenset[str]]
    strings: dict[int, str] = field(default_factory=dict)
    damage: str = ""
    """What kept all of it from being read, tables of events aside."""

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows; none where they are damaged."""
        try:
            return self.database.execute(sql).fetchall()
        except sqlite3.DatabaseError as error:
            self.damage = told(error)
            return []

    def rows(self, table: str, columns: tuple[str, ...]) -> Iterable[tuple[Any, ...]]:
        """A small table; columns it lacks are NULL, and a table that is not there is empty."""
        known = self.columns.get(table)
        if not known or not known & set(columns):
            return []
        cells = ", ".join(f'"{one}"' if one in known else "NULL" for one in columns)
        return self.ask(f'SELECT {cells} FROM "{table}" LIMIT {_MOST_SMALL}')

    def names(self, ids: Iterable[int]) -> dict[int, str]:
        """Strings by their ids; each is looked up once."""
        missing = [one for one in ids if one not in self.strings]
        if missing and {"id", "value"} <= self.columns.get("StringIds", frozenset()):
            for at in range(0, len(missing), _MOST_IDS):
                some = ", ".join(str(one) for one in missing[at : at + _MOST_IDS])
                found = self.ask(
                    f"SELECT id, substr(value, 1, {_MOST_NAME}) FROM StringIds WHERE id IN ({some})"
                )
                self.strings.update(
                    (key, value.decode("utf-8", "replace"))
                    for key, value in found if isinstance(value, bytes)
                )  # fmt: skip
        return self.strings

    def pids(self) -> tuple[int, ...]:
        """Processes that used a device; their order is their rank."""
        found: set[int] = set()
        for source in SOURCES:
            if source.on_device and "globalPid" in self.columns.get(source.table, ()):
                asked = f'SELECT DISTINCT globalPid FROM "{source.table}"'
                with suppress(sqlite3.DatabaseError):  # told when its rows are read
                    for (one,) in self.database.execute(asked):
                        if isinstance(one, int):
                            found.add(one >> 24 & 0xFFFFFF)
        return tuple(sorted(found))

    def overhead(self) -> dict[int, int]:
        """Time that the profiler says it took of each process."""
        total: Counter[int] = Counter()
        for table in ("CUPTI_ACTIVITY_KIND_OVERHEAD", "PROFILER_OVERHEAD"):
            if {"start", "end", "globalTid", "overheadType"} <= self.columns.get(
                table, frozenset()
            ):
                cells = self.ask(
                    f'SELECT globalTid >> 24 & 16777215, sum(CAST("end" AS REAL) - start) '
                    f'FROM "{table}" '
                    f'WHERE "end" > start AND overheadType IN ({PROFILER}) GROUP BY 1'
                )
                total.update({
                    pid: round(ns) for pid, ns in cells
                    if isinstance(pid, int) and isinstance(ns, float) and 0 <= ns < _MOST_NS
                })  # fmt: skip
        return dict(total)

    def extent(self, table: str) -> tuple[int, bool]:
        """Rows of a table, and whether a row's own number says which of them it is."""
        # Asked for together, each row would be looked at.
        asked = (f'(SELECT {one} FROM "{table}")' for one in _EXTENT)
        rows, low, high = self.database.execute(f"SELECT {', '.join(asked)}").fetchone()
        own = "rowid" not in map(str.lower, self.columns[table])
        return rows, own and bool(rows) and low == 1 and high == rows


def _left(export: _Export, source: Source) -> tuple[str, str, int]:
    """Which rows of a table are read, as SQL, why not the others, and how many there are."""
    known = export.columns[source.table]
    named_there = {"id", "value"} <= export.columns.get("StringIds", frozenset())
    if source.kind == "runtime" and "nameId" in known and named_there:
        words = " OR ".join(f"instr(value, '{one}')" for one in TELLING.pattern.split("|"))
        telling = f"nameId IN (SELECT id FROM StringIds WHERE {words})"
        where, why = f'{telling} OR "end" - start >= {LONG_NS}', SHORT_CALLS
    elif source.kind == "annotation" and "text" in known:
        words = " OR ".join(f"instr(text, '{one}')" for one in OPERATOR)
        where = f'"end" - start >= {LONG_NS} OR "end" IS NULL OR ({words}) IS NOT TRUE'
        why = SMALL
    else:
        return "", "", 0
    # Records are counted before any is left out, so only where a row tells its number.
    rows, dense = export.extent(source.table)
    return (f"WHERE {where}", why, rows) if dense else ("", "", rows)


def _table(export: _Export, source: Source, base: int) -> Generator[_Raw | Batch, None, int]:
    """Batches of one table; ``base`` records came before it, and it returns how many by its end."""
    known = export.columns[source.table]
    cells = {
        name: blob(name, _MOST_RANGE) if name == "text" else named(name)
        for name in source.columns
        if name in known and not (name == "shortName" and "demangledName" in known)
    }
    where, why, rows, met, last = "", "", 0, 0, base
    with suppress(sqlite3.DatabaseError):  # told by the scan, which gives what comes before it
        where, why, rows = _left(export, source)
    if where:
        cells["record"] = "rowid"
    try:
        for raw in scan(export.path, cells, f'FROM "{source.table}" {where}', _TEXT & set(cells)):
            places = range(last + 1, last + raw.num_rows + 1)
            records = pc.add(raw.column("record"), base) if where else pa.array(places)
            met, last = met + raw.num_rows, records[-1].as_py()
            yield source, raw, records
    except sqlite3.DatabaseError as error:
        yield _damaged(last + 1, told(error))
        return max(base + rows, last + 1)
    if why and rows > met:
        yield Batch(records=rows - met, ignored={why: rows - met})
    return base + max(rows, met)


def _scanned(path: Path, columns: dict[str, frozenset[str]]) -> Generator[_Raw | Batch]:
    """Batches of all tables of events, what was left in them, and what is damaged."""
    with closing(opened(path, short=True)) as database:
        export, records = _Export(path, database, columns), 1
        for source in SOURCES:
            if {"start", "end"} <= columns.get(source.table, frozenset()):
                records = yield from _table(export, source, records)


def _database(file: InputFile) -> Iterator[Batch]:
    with on_disk(file) as path, closing(opened(path, short=True)) as database:
        export = _Export(path, database, tables(database))
        export.damage = EARLY if ends_early(path) else ""
        if not any(source.table in export.columns for source in SOURCES):
            yield Batch(records=1, problems=(Problem(1, _NOTHING),))
            return
        facts = facts_of(export.rows)
        facts.overhead_ns.update(export.overhead())
        rank = rank_of({}, file.name)
        shared = Told(export.names, facts.base_ns, export.pids(), rank.number)
        records = 1
        yield Batch(tables_of(deployment=deployment_rows(facts)), records=records, used=records)
        for raw in ahead_of(_scanned(path, export.columns)):
            batch = raw if isinstance(raw, Batch) else batch_of(*raw, shared)
            shared.ended &= batch is not raw or not batch.problems
            records += batch.records
            yield batch
        try:
            for batch in metric_rows(export.rows, path, export.columns, facts.base_ns, records):
                records += batch.records
                yield batch
        except sqlite3.DatabaseError as error:
            export.damage = told(error)
        if export.damage:
            shared.ended = False
            yield _damaged(records + 1, export.damage)
        yield _last(facts, shared, trace_rows(facts, shared, rank))


def _damaged(record: int, why: str) -> Batch:
    return Batch(records=1, problems=(Problem(record, _DAMAGED.format(why=why)),))


def _last(facts: Facts, shared: Told, rows: list[dict[str, Any]]) -> Batch:
    assumed = [NO_CLOCK] if facts.base_ns is None else []
    if any(seen.kinds["graph"] for seen in shared.seen.values()):
        assumed.append(GRAPHS)
    return Batch(tables_of(gpu_trace=rows), assumed=tuple(assumed))


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - one shape for all
    """One ``gpu_event`` a row of the activity tables, and one ``gpu_trace`` a process."""
    return read_database(file, _WANTED, _DAMAGED, _database)


READER = Reader(
    title="Nsight Systems export, SQLite",
    record_unit="row",
    gives=("gpu_event", "gpu_trace", "gpu_sample", "deployment"),
    probe=probe,
    read=read,
    docs="https://docs.nvidia.com/nsight-systems/UserGuide/index.html (nsys export)",
    cannot="kernels inside CUDA graphs, unless recorded with --cuda-graph-trace=node; ranks: "
    "processes are numbered by their ids; calls under 100 us that launch, copy and await nothing; "
    "NVTX marks; command lines and environments, which are never read",
    enable="nsys profile --trace=cuda,nvtx --cuda-graph-trace=node -o run CMD; "
    "nsys export --type sqlite run.nsys-rep",
    checked_against="exports of schema 3.24.14 and 3.25.0 (two H100, one RTX 3080) and a reduced "
    "one; older columns and CUPTI_ACTIVITY_KIND_GRAPH_TRACE after NVIDIA's documentation",
    facts=(
        ("graphs", "a replay recorded as a whole is one event of kind graph"),
        ("processes", "each process that used a device is a rank, in the order of process ids"),
        ("bandwidth", "the device's memory bandwidth is told and becomes a deployment row"),
    ),
    undated=True,
)
