"""Nsight Systems exports in SQLite (``nsys export --type sqlite``), of all schema versions.

The columns of each table are looked up first: exports differ from version to version, tables
without rows are left out, and people cut exports down.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analyzer.contract.types import Batch, Problem
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
    MAGIC,
    blob,
    on_disk,
    opened,
    read_database,
    scan,
    tables,
    whole,
)

_OURS = re.compile(
    rb"CREATE TABLE [`\"\[]?(?:CUPTI_ACTIVITY_\w+|NVTX_EVENTS|TARGET_INFO_GPU|ANALYSIS_DETAILS)"
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

    def rows(self, table: str, columns: tuple[str, ...]) -> Iterable[tuple[Any, ...]]:
        """A small table; columns it lacks are NULL, and a table that is not there is empty."""
        known = self.columns.get(table)
        if not known or not known & set(columns):
            return []
        cells = ", ".join(f'"{one}"' if one in known else "NULL" for one in columns)
        return self.database.execute(
            f'SELECT {cells} FROM "{table}" LIMIT {_MOST_SMALL}'
        ).fetchall()

    def names(self, ids: Iterable[int]) -> dict[int, str]:
        """Strings by their ids; each is looked up once."""
        missing = [one for one in ids if one not in self.strings]
        if missing and {"id", "value"} <= self.columns.get("StringIds", frozenset()):
            for at in range(0, len(missing), _MOST_IDS):
                some = ", ".join(str(one) for one in missing[at : at + _MOST_IDS])
                found = self.database.execute(
                    f"SELECT id, substr(value, 1, {_MOST_NAME}) FROM StringIds WHERE id IN ({some})"
                ).fetchall()
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
                cells = self.database.execute(f'SELECT DISTINCT globalPid FROM "{source.table}"')
                found |= {one >> 24 & 0xFFFFFF for (one,) in cells if isinstance(one, int)}
        return tuple(sorted(found))

    def overhead(self) -> dict[int, int]:
        """Time that the profiler says it took of each process."""
        total: Counter[int] = Counter()
        for table in ("CUPTI_ACTIVITY_KIND_OVERHEAD", "PROFILER_OVERHEAD"):
            if {"start", "end", "globalTid", "overheadType"} <= self.columns.get(
                table, frozenset()
            ):
                cells = self.database.execute(
                    f'SELECT globalTid >> 24 & 16777215, sum(CAST("end" AS REAL) - start) '
                    f'FROM "{table}" '
                    f'WHERE "end" > start AND overheadType IN ({PROFILER}) GROUP BY 1'
                ).fetchall()
                total.update({
                    pid: round(ns) for pid, ns in cells
                    if isinstance(pid, int) and isinstance(ns, float) and 0 <= ns < _MOST_NS
                })  # fmt: skip
        return dict(total)

    def telling(self, table: str) -> list[int]:
        """Ids of the names of calls that launch, copy or await something."""
        cells = self.database.execute(f'SELECT DISTINCT nameId FROM "{table}"').fetchall()
        ids = [one for (one,) in cells if isinstance(one, int)]
        names = self.names(ids)
        return [one for one in ids if TELLING.search(names.get(one, ""))]

    def extent(self, table: str) -> tuple[int, bool]:
        """Rows of a table, and whether a row's own number says which of them it is."""
        rows, low, high = self.database.execute(
            f'SELECT count(*), min(rowid), max(rowid) FROM "{table}"'
        ).fetchone()
        return rows, bool(rows) and low == 1 and high == rows


def _select(
    export: _Export, source: Source, *, numbered: bool
) -> tuple[str, list[str], str | None]:
    """The SELECT of a table, its columns, and why rows are left out by it already."""
    known = export.columns[source.table]
    names = [name for name in source.columns if name in known]
    cells = [blob(n, _MOST_RANGE) if n == "text" else whole(n) for n in names]
    if numbered:
        names, cells = [*names, "record"], [*cells, "rowid"]
    where, why = "", None
    if source.kind == "runtime" and "nameId" in known and numbered:
        ids = ", ".join(str(one) for one in export.telling(source.table))
        where, why = f'WHERE nameId IN ({ids}) OR "end" - start >= {LONG_NS}', SHORT_CALLS
    if source.kind == "annotation" and "text" in known and numbered:
        words = " OR ".join(f"instr(coalesce(text, ''), '{one}') > 0" for one in OPERATOR)
        where = f'WHERE "end" - start >= {LONG_NS} OR "end" IS NULL OR NOT ({words})'
        why = SMALL
    return f'SELECT {", ".join(cells)} FROM "{source.table}" {where}', names, why


def _events(export: _Export, facts: Told, base: int) -> Iterator[Batch]:
    """Batches of all tables; ``base`` counts the records before."""
    for source in SOURCES:
        known = export.columns.get(source.table, frozenset())
        if not {"start", "end"} <= known:
            continue
        rows, numbered = export.extent(source.table)
        select, names, why = _select(export, source, numbered=numbered)
        met = 0
        for raw in scan(export.path, select, names, frozenset(("text",)) & set(names)):
            if not raw.num_rows:
                continue
            if numbered:
                records = pc.add(raw.column("record"), base)
            else:
                records = pa.array(range(base + met + 1, base + met + raw.num_rows + 1), pa.int64())
            met += raw.num_rows
            yield batch_of(source, raw, records, facts)
        if why and rows > met:
            yield Batch(records=rows - met, ignored={why: rows - met})
        base += rows


def _database(file: InputFile) -> Iterator[Batch]:
    with on_disk(file) as path, closing(opened(path)) as database:
        export = _Export(path, database, tables(database))
        if not any(source.table in export.columns for source in SOURCES):
            yield Batch(records=1, problems=(Problem(1, _NOTHING),))
            return
        facts = facts_of(export.rows)
        facts.overhead_ns.update(export.overhead())
        rank = rank_of({}, file.name)
        shared = Told(export.names, facts.base_ns, export.pids(), rank.number)
        counted: Counter[str] = Counter()
        yield Batch(tables_of(deployment=deployment_rows(facts)), records=1, used=1)
        for batch in _events(export, shared, 1):
            counted["records"] += batch.records
            yield batch
        yield from metric_rows(
            export.rows, path, export.columns, facts.base_ns, counted["records"] + 1
        )
        yield _last(facts, shared, trace_rows(facts, shared, rank))


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
