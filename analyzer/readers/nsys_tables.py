"""Nsight Systems exports as a folder of Parquet or Arrow files, one a table.

The tables refer to each other, so the folder is one trace: it is read with its first table of
events, and every other file of it only says that it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
from pyarrow import ipc, parquet

from analyzer.contract.types import Batch, Problem
from analyzer.readers._file import Head, InputFile
from analyzer.readers._kineto_facts import rank_of
from analyzer.readers._nsys_facts import GRAPHS, NO_CLOCK, deployment_rows, facts_of, trace_rows
from analyzer.readers._nsys_rows import SOURCES, Told, batch_of, pid_of
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import tables_of
from analyzer.readers._sqlite import on_disk

_PARQUET, _ARROW = b"PAR1", b"ARROW1"
_ENDINGS = (".parquet", ".arrow", ".feather", ".ipc")
_EVENTS = tuple(source.table for source in SOURCES)
_OTHERS = ("StringIds", "NVTX_", "CUPTI_", "TARGET_INFO_", "META_DATA_", "ENUM_", "ANALYSIS_",
           "PROCESSES", "ProcessStreams", "ThreadNames", "DIAGNOSTIC_EVENT", "PROFILER_OVERHEAD",
           "CUDA_", "GPU_", "CUBLAS_", "CUDNN_", "OSRT_", "SCHED_", "COMPOSITE_", "SAMPLING_",
           "GENERIC_", "NETWORK_", "NIC_", "UVM_", "OPENGL_", "VULKAN_", "MPI_")  # fmt: skip
_BESIDE = "a table of an export: read together with its table of events"
_ALONE = "no table of events lies beside it: ingest the whole folder of the export"
_NO_STRINGS = (
    "StringIds is not beside it, so kernels have no names: ingest the folder of the export as it "
    "is, not single files of it or an archive"
)
_DAMAGED = "cannot be read ({why}): export it again with `nsys export --type parquetdir`"
_BATCH_ROWS = 65_536
_MOST_SMALL = 2_000_000


def probe(head: Head) -> Claim:
    """A Parquet or Arrow file named as a table of an export."""
    if not head.data.startswith((_PARQUET, _ARROW)):
        return Claim(0, "neither Parquet nor Arrow")
    table = _table(head.path)
    if table in _EVENTS or table.startswith(_OTHERS):
        return Claim(1, "")
    return Claim(0.2, "its name is none of a table of Nsight Systems")


def _table(path: str) -> str:
    return PurePosixPath(path.rpartition("!")[2]).name.partition(".")[0]


@dataclass
class _Folder:
    """The files of an export, by table."""

    files: dict[str, Path]
    strings: dict[int, str] = field(default_factory=dict)

    def names(self, ids: Iterable[int]) -> dict[int, str]:
        """All strings: they were read at once."""
        _ = ids
        return self.strings

    def rows(self, table: str, columns: tuple[str, ...]) -> Iterable[tuple[Any, ...]]:
        """A small table; columns it lacks are None, and a table that is not there is empty."""
        found: list[tuple[Any, ...]] = []
        for batch in self.batches(table, columns):
            cells = [
                batch.column(one).to_pylist()
                if one in batch.schema.names
                else [None] * batch.num_rows
                for one in columns
            ]
            found += zip(*cells, strict=True)
            if len(found) > _MOST_SMALL:
                break
        return found

    def batches(self, table: str, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a table, with those of ``columns`` that it has."""
        path = self.files.get(table)
        if path is None:
            return
        with path.open("rb") as stream:
            if stream.read(4) == _PARQUET:
                file = parquet.ParquetFile(path)
                some = [name for name in columns if name in file.schema_arrow.names]
                yield from file.iter_batches(_BATCH_ROWS, columns=some, use_threads=False)
                return
        with pa.memory_map(str(path)) as source:
            reader = ipc.open_file(source)
            some = [name for name in columns if name in reader.schema.names]
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number).select(some)
                # What a file says of where its texts lie is not to be believed.
                batch.validate(full=True)
                yield batch


def _beside(file: InputFile, own: Path) -> _Folder:
    found = {_table(file.name): own}
    if own == file.path:
        for path in sorted(own.parent.iterdir()):
            if path.suffix in _ENDINGS:
                found.setdefault(_table(path.name), path)
    return _Folder(found)


def _numbers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Whole numbers as int64, texts as bytes or strings, whatever the export chose."""
    columns, names = [], []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        whole = pa.types.is_integer(column.type) or pa.types.is_null(column.type)
        if whole:
            columns.append(column.cast(pa.int64(), safe=False))
        elif name == "text" and (
            pa.types.is_string(column.type)
            or pa.types.is_binary(column.type)
            or pa.types.is_dictionary(column.type)
        ):
            columns.append(
                column.cast(pa.binary())
                if not pa.types.is_dictionary(column.type)
                else column.dictionary_decode().cast(pa.binary())
            )
        else:
            continue
        names.append(name)
    return pa.RecordBatch.from_arrays(columns, names=names)


def _pids(folder: _Folder) -> tuple[int, ...]:
    found: set[int] = set()
    for source in SOURCES:
        if source.on_device:
            for batch in folder.batches(source.table, ("globalPid",)):
                if batch.num_columns:
                    found |= set(
                        pid_of(batch.column(0).cast(pa.int64(), safe=False)).unique().to_pylist()
                    )
    return tuple(sorted(found - {None}))


def _trace(file: InputFile, folder: _Folder) -> Iterator[Batch]:
    facts = facts_of(folder.rows)
    for key, value in folder.rows("StringIds", ("id", "value")):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        if isinstance(key, int) and isinstance(text, str):
            folder.strings[key] = text[:2_000]
    rank = rank_of({}, file.name)
    told = Told(folder.names, facts.base_ns, _pids(folder), rank.number)
    yield Batch(tables_of(deployment=deployment_rows(facts)), records=1, used=1)
    base = 2
    for source in SOURCES:
        for batch in folder.batches(source.table, source.columns):
            raw = _numbers(batch)
            if raw.num_rows and {"start", "end"} <= set(raw.schema.names):
                records = pa.array(range(base, base + raw.num_rows), pa.int64())
                base += raw.num_rows
                yield batch_of(source, raw, records, told)
    assumed = [NO_CLOCK] if facts.base_ns is None else []
    if any(seen.kinds["graph"] for seen in told.seen.values()):
        assumed.append(GRAPHS)
    if not folder.strings:
        assumed.append(_NO_STRINGS)
    yield Batch(tables_of(gpu_trace=trace_rows(facts, told, rank)), assumed=tuple(assumed))


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - one shape for all
    """All events of the folder with its first table; of the other files nothing."""
    if not file.head.data:
        yield Batch()
        return
    done = 0
    with ExitStack() as stack:
        try:
            own = stack.enter_context(on_disk(file))
            folder = _beside(file, own)
            first = next((table for table in _EVENTS if table in folder.files), None)
            if first != _table(file.name):
                why = _BESIDE if first else _ALONE
                yield Batch(records=1, ignored={why: 1})
                return
            for batch in _trace(file, folder):
                done += batch.records
                yield batch
        except (pa.ArrowException, OSError, ValueError, OverflowError, KeyError) as error:
            problem = Problem(done + 1, _DAMAGED.format(why=type(error).__name__))
            yield Batch(records=1, problems=(problem,))


READER = Reader(
    title="Nsight Systems export, folder of Parquet or Arrow files",
    record_unit="row",
    gives=("gpu_event", "gpu_trace", "deployment"),
    probe=probe,
    read=read,
    docs="https://docs.nvidia.com/nsight-systems/UserGuide/index.html (nsys export)",
    cannot="what nsys_sqlite cannot; sampled GPU metrics; the profiler's own overhead; names of "
    "kernels where the files are not in one folder",
    enable="nsys export --type parquetdir run.nsys-rep, then ingest the folder",
    checked_against="folders made from the tables of a real SQLite export; no folder written by "
    "nsys itself was at hand",
    facts=(("one trace", "the folder is read with its first table of events, as one source"),),
    undated=True,
)
