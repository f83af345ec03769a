"""AMD's ``rocpd`` databases, what ``rocprofv3`` writes by default since ROCm 7.

Each process has its own set of tables, told apart by the end of their names. Two layouts: times
and places stand in the rows, or rows point to tables of time stamps and tracks.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analyzer.contract.types import Batch, Problem
from analyzer.readers._file import Head, InputFile
from analyzer.readers._gpu_rows import (
    LONG_NS,
    NO_TIME,
    RELATIVE,
    SHORT_CALLS,
    TELLING,
    Extent,
    trace_batch,
)
from analyzer.readers._kineto_facts import rank_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import COUNTS, clean
from analyzer.readers._sqlite import (
    EARLY,
    MAGIC,
    ends_early,
    on_disk,
    opened,
    read_database,
    scan,
    tables,
)
from analyzer.readers._times import DURATIONS

_OURS = re.compile(
    rb"CREATE TABLE (?:IF NOT EXISTS\s+)?[`\"\[]?rocpd_(?:metadata|string|info_node)"
)
_NAME = re.compile(r"(rocpd_[a-z_]+?)(?:_?([0-9a-f]{8}(?:_[0-9a-f]{4}){3}_[0-9a-f]{12}))?")
_WANTED = "not a SQLite database"
_DAMAGED = (
    "the database is damaged or cut off ({why}): `sqlite3 FILE .recover | sqlite3 new.db` saves "
    "what can be read"
)
_MOST_NAME, _MOST_SMALL, _MOST_IDS = 2_000, 10_000, 500
_MARKERS = re.compile(r"MARKER", re.IGNORECASE)
_SIZES = tuple(f"{kind}_size_{axis}" for kind in ("grid", "workgroup") for axis in "xyz")
_WHOLE = pa.int64()


def probe(head: Head) -> Claim:
    """SQLite whose head defines tables of rocpd."""
    if not head.data.startswith(MAGIC):
        return Claim(0, _WANTED)
    return (
        Claim(1, "") if _OURS.search(head.data) else Claim(0.3, "a SQLite database without rocpd")
    )


@dataclass
class _Process:
    """The tables of one process: plain name -> real name, and that one's columns."""

    database: sqlite3.Connection
    tables: dict[str, str]
    columns: dict[str, frozenset[str]]
    rank: int | None = None
    names: dict[tuple[str, int], str] = field(default_factory=dict)
    extent: Extent = field(default_factory=Extent)

    def has(self, table: str, *columns: str) -> bool:
        """Whether a table is there with these columns."""
        return set(columns) <= self.columns.get(self.tables.get(table, ""), frozenset())

    def devices(self) -> tuple[dict[int, int], set[str]]:
        """Row of an agent -> number of the device among devices, and what they are called."""
        if not self.has("rocpd_info_agent", "id", "type", "type_index"):
            return {}, set()
        name = "product_name" if self.has("rocpd_info_agent", "product_name") else "NULL"
        rows = self.database.execute(
            f'SELECT id, type_index, {name} FROM "{self.tables["rocpd_info_agent"]}" '
            f"WHERE type = 'GPU' LIMIT {_MOST_SMALL}"
        ).fetchall()
        known = [(key, place, name) for key, place, name in rows if isinstance(key, int)]
        words = {n.decode("utf-8", "replace") for _, _, n in known if isinstance(n, bytes) and n}
        return {key: place for key, place, _ in known if isinstance(place, int)}, words

    def words(self, table: str, column: str, ids: Iterable[int]) -> dict[int, str]:
        """Texts of a table by their ids; each is looked up once."""
        wanted = list(ids)
        missing = [one for one in wanted if (table, one) not in self.names]
        if self.has(table, "id", column):
            for at in range(0, len(missing), _MOST_IDS):
                some = ", ".join(str(one) for one in missing[at : at + _MOST_IDS])
                rows = self.database.execute(
                    f'SELECT id, substr("{column}", 1, {_MOST_NAME}) FROM "{self.tables[table]}" '
                    f"WHERE id IN ({some})"
                ).fetchall()
                for key, text in rows:
                    if isinstance(key, int) and isinstance(text, bytes):
                        self.names[table, key] = clean(text.decode("utf-8", "replace"))
        return {one: self.names[table, one] for one in wanted if (table, one) in self.names}


def _select(
    process: _Process, table: str, cells: tuple[str, ...]
) -> tuple[dict[str, str], str] | None:
    """What to scan for one kind of record in either layout; None where the table is not there."""
    own = process.columns.get(process.tables.get(table, ""), frozenset())
    pointed = {"start_id", "end_id"} <= own and process.has("rocpd_timestamp", "id", "value")
    if not own or not ({"start", "end"} <= own or pointed):
        return None
    joins, places = [f'"{process.tables[table]}" AS e'], {}
    if pointed:
        for name in ("start", "end"):
            joins.append(
                f'LEFT JOIN "{process.tables["rocpd_timestamp"]}" AS t_{name} '
                f"ON t_{name}.id = e.{name}_id"
            )
            places[name] = f"t_{name}.value"
    if "track_id" in own and process.has("rocpd_track", "id"):
        joins.append(f'LEFT JOIN "{process.tables["rocpd_track"]}" AS k ON k.id = e.track_id')
        places |= {
            name: f"k.{name}"
            for name in ("pid", "tid", "agent_id", "queue_id", "stream_id")
            if process.has("rocpd_track", name)
        }
    if "event_id" in own and process.has("rocpd_event", "id"):
        joins.append(f'LEFT JOIN "{process.tables["rocpd_event"]}" AS v ON v.id = e.event_id')
        for name in ("correlation_id", "stack_id", "category_id"):
            if process.has("rocpd_event", name):
                places[name] = f"v.{name}"
    places |= {name: f'e."{name}"' for name in cells if name in own}
    told = {name: places[name] for name in cells if name in places}
    return told, f"FROM {' '.join(joins)} ORDER BY e.id"


_KINDS = {
    "kernel": (
        "rocpd_kernel_dispatch",
        ("kernel_id", "agent_id", "queue_id", "stream_id", *_SIZES),
    ),
    "memcpy": (
        "rocpd_memory_copy",
        ("name_id", "dst_agent_id", "src_agent_id", "stream_id", "size"),
    ),
    "runtime": ("rocpd_region", ("name_id", "pid", "tid", "category_id")),
}
_SHARED = ("start", "end", "stack_id", "correlation_id")


def _events(process: _Process, path: Path, base: int) -> Iterator[Batch]:
    devices, _ = process.devices()
    for kind, (table, cells) in _KINDS.items():
        found = _select(process, table, (*_SHARED, *cells))
        if found is None:
            continue
        for raw in scan(path, *found):
            if raw.num_rows:
                records = pa.array(range(base + 1, base + raw.num_rows + 1), _WHOLE)
                base += raw.num_rows
                columns = dict(zip(raw.schema.names, raw.columns, strict=True))
                yield _batch(process, kind, columns, records, devices)


def _column(columns: dict[str, pa.Array], *names: str) -> pa.Array:
    some = [columns[name] for name in names if name in columns]
    rows = len(next(iter(columns.values())))
    return pc.coalesce(*some) if some else pa.nulls(rows, _WHOLE)


def _batch(
    process: _Process, kind: str, columns: dict[str, pa.Array], records: pa.Array,
    devices: dict[int, int],
) -> Batch:  # fmt: skip
    start, end = columns["start"], columns["end"]
    dur = pc.subtract(end, start)
    fits = pc.and_(_within(start, DURATIONS), _within(dur, DURATIONS))
    problems = tuple(Problem(n, NO_TIME) for n in records.filter(pc.invert(fits)).to_pylist())
    kinds, names = _named(process, kind, columns)
    keep, ignored = fits, {}
    if kind == "runtime":
        telling = [
            bool(TELLING.search(n or "")) or k == "annotation"
            for k, n in zip(kinds, names, strict=True)
        ]
        wanted = pc.or_(pa.array(telling), pc.fill_null(pc.greater_equal(dur, LONG_NS), False))  # noqa: FBT003
        keep = pc.and_(fits, wanted)
        short = (pc.sum(pc.and_(fits, pc.invert(wanted))).as_py()) or 0
        ignored = {SHORT_CALLS: short} if short else {}
    table = pa.table(
        {
            "record": records, "rank": pa.array([process.rank] * len(records), _WHOLE),
            "kind": pa.array(kinds, pa.string()), "name": pa.array(names, pa.string()),
            "start_ns": start, "dur_ns": dur,
            # A launch and what it launched share the stack of their event.
            "correlation": _column(columns, "stack_id", "correlation_id"),
        }
        | _places(kind, columns, devices)
    ).filter(keep)  # fmt: skip
    for one, begin, length in zip(
        *(table[n].to_pylist() for n in ("kind", "start_ns", "dur_ns")), strict=True
    ):
        process.extent.take(one, begin, length)
    rows = {"gpu_event": table} if table.num_rows else {}
    return Batch(rows, len(records), table.num_rows, ignored, problems)


def _places(
    kind: str, columns: dict[str, pa.Array], devices: dict[int, int]
) -> dict[str, pa.Array]:
    if kind == "runtime":
        return {name: columns[name] for name in ("pid", "tid") if name in columns}
    ends = ("agent_id",) if kind == "kernel" else ("dst_agent_id", "src_agent_id")
    told = [
        pa.array([devices.get(one) for one in columns[end].to_pylist()], _WHOLE)
        for end in ends if end in columns
    ]  # fmt: skip
    rows = len(columns["start"])
    found = {"stream": _column(columns, "stream_id", "queue_id")}
    found["device"] = pc.coalesce(*told) if told else pa.nulls(rows, _WHOLE)
    if "size" in columns:
        found["bytes"] = _counted(columns["size"])
    if all(size in columns for size in _SIZES):
        axes = [columns[size] for size in _SIZES]
        one = pa.scalar(1, _WHOLE)
        blocks = [pc.max_element_wise(axis, one) for axis in axes[3:]]
        counts = [
            pc.divide(pc.add(i, pc.subtract(b, one)), b)
            for i, b in zip(axes[:3], blocks, strict=True)
        ]
        found["grid_blocks"] = _counted(pc.multiply(pc.multiply(counts[0], counts[1]), counts[2]))
        found["block_threads"] = _counted(pc.multiply(pc.multiply(axes[3], axes[4]), axes[5]))
    return found


def _named(
    process: _Process, kind: str, columns: dict[str, pa.Array]
) -> tuple[list[str], list[str | None]]:
    """Kind and name of each record."""
    if kind == "kernel":
        shown = process.has("rocpd_info_kernel_symbol", "display_name")
        table, column, ids = (
            "rocpd_info_kernel_symbol",
            "display_name" if shown else "kernel_name",
            "kernel_id",
        )
    else:
        table, column, ids = "rocpd_string", "string", "name_id"
    keys = _column(columns, ids).to_pylist()
    words = process.words(table, column, {key for key in keys if key is not None})
    names = [words.get(key) for key in keys]
    if kind == "memcpy":
        way = [
            None if n is None else n if n.startswith("MEMORY_COPY") else f"MEMORY_COPY_{n}"
            for n in names
        ]
        return [kind] * len(keys), way
    if kind != "runtime":
        return [kind] * len(keys), names
    groups = _column(columns, "category_id").to_pylist()
    labels = process.words("rocpd_string", "string", {key for key in groups if key is not None})
    marks = {key for key, label in labels.items() if _MARKERS.search(label)}
    kinds = [
        "annotation"
        if group in marks
        else "graph_launch"
        if "GraphLaunch" in (name or "")
        else kind
        for group, name in zip(groups, names, strict=True)
    ]
    return kinds, names


def _within(values: pa.Array, limits: Any) -> pa.Array:  # noqa: ANN401 - Limits
    inside = pc.and_(pc.greater_equal(values, limits.start), pc.less(values, limits.stop))
    return pc.fill_null(inside, False)  # noqa: FBT003


def _counted(values: pa.Array) -> pa.Array:
    return pc.if_else(_within(values, COUNTS), values, pa.scalar(None, _WHOLE))


def _processes(database: sqlite3.Connection) -> list[_Process]:
    known = tables(database)
    groups: dict[str, dict[str, str]] = {}
    for name in known:
        match = _NAME.fullmatch(name)
        if match:
            groups.setdefault(match[2] or "", {})[match[1]] = name
    return [_Process(database, some, known) for _, some in sorted(groups.items())]


def _database(file: InputFile) -> Iterator[Batch]:
    rank, base = rank_of({}, file.name), 0
    with on_disk(file) as path, closing(opened(path, short=True)) as database:
        processes = _processes(database)
        for place, process in enumerate(processes):
            several = len(processes) > 1
            process.rank = place if several else rank.number
            for batch in _events(process, path, base):
                base += batch.records
                yield batch
            devices, words = process.devices()
            row = process.extent.row(
                rank=process.rank, rank_source="process" if several else rank.source, vendor="amd",
                profiler="rocprofv3", devices=len(devices) or None,
                device_name=next(iter(words)) if len(words) == 1 else None,
                ended=not ends_early(path),
            )  # fmt: skip
            yield trace_batch(row, RELATIVE)
        if ends_early(path):
            problem = Problem(base + 1, _DAMAGED.format(why=EARLY))
            yield Batch(records=1, problems=(problem,))


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - one shape for all
    """``gpu_event`` rows of dispatches, copies and regions, and ``gpu_trace``."""
    return read_database(file, _WANTED, _DAMAGED, _database)


READER = Reader(
    title="rocpd database (rocprofv3 of ROCm 7)",
    record_unit="row",
    gives=("gpu_event", "gpu_trace"),
    probe=probe,
    read=read,
    docs="https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/ (rocpd output format)",
    cannot="wall time: it counts from the machine's start; calls under 100 us that launch, copy "
    "and await nothing; counters, allocations and samples; command lines and environments, which "
    "are never read",
    enable="rocprofv3 --kernel-trace --memory-copy-trace --hip-runtime-trace --marker-trace -- CMD",
    checked_against="both layouts of AMD's schema (version 3), without a database of a real run",
    undated=True,
)
