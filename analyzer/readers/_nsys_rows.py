"""Rows of the contract from the tables of an Nsight Systems export, a batch at a time.

SQLite, Parquet and Arrow exports have the same tables with the same columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analyzer.contract.types import Batch, Problem
from analyzer.readers._gpu_rows import LONG_NS, NO_TIME, SHORT_CALLS, TELLING, Extent
from analyzer.readers._rows import COUNTS, clean
from analyzer.readers._times import DURATIONS, TIMES, Limits

OPERATOR = (", op_id = ", ", seq = ")
"""What torch's own NVTX ranges (emit_nvtx) have after the operator's name."""
SMALL = "operators of torch under 100 us"
MARKS = "NVTX marks, categories and domains: no ranges"
OPEN = "NVTX ranges without an end"
UNTIMED = "replays of graphs whose times were not collected"
_ONE = "\0"
_VERSION = re.compile(r"(?:_v\d+|_ptsz|_ptds)+$")
_RANGES = (59, 60, 65, 70, 71)
"""push and pop, start and end; the last ones from NVTXT files."""
_COPIES = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD",
    9: "HtoH", 10: "PtoP", 11: "HtoD unified", 12: "DtoH unified", 13: "DtoD unified",
}  # fmt: skip
_SYNCS = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
_MEMORY = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device Static"}
_NO_STREAM = 2**32 - 1
_UNKNOWN = 63
_SMALL = Limits(0, _UNKNOWN)
_WHOLE = pa.int64()
_NO = pa.scalar(False)  # noqa: FBT003

ON_DEVICE = (
    "start",
    "end",
    "deviceId",
    "streamId",
    "correlationId",
    "globalPid",
    "graphId",
    "graphNodeId",
)
_ON_HOST = ("start", "end", "globalTid")
_SIZES = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
_CUPTI = "CUPTI_ACTIVITY_KIND_"


@dataclass(frozen=True)
class Source:
    """One table of an export: what its rows are, and which of its columns are read."""

    table: str
    kind: str
    columns: tuple[str, ...]

    @property
    def on_device(self) -> bool:
        """Whether a device did it, and no thread."""
        return "globalTid" not in self.columns


SOURCES = (
    Source(f"{_CUPTI}KERNEL", "kernel", (*ON_DEVICE, "demangledName", "shortName", *_SIZES)),
    Source(f"{_CUPTI}MEMCPY", "memcpy", (*ON_DEVICE, "bytes", "copyKind", "srcKind", "dstKind")),
    Source(f"{_CUPTI}MEMSET", "memset", (*ON_DEVICE, "bytes", "memKind")),
    Source(f"{_CUPTI}GRAPH_TRACE", "graph", ON_DEVICE),
    Source(f"{_CUPTI}SYNCHRONIZATION", "sync", (*ON_DEVICE, "syncType")),
    Source(f"{_CUPTI}RUNTIME", "runtime", (*_ON_HOST, "correlationId", "nameId")),
    Source("NVTX_EVENTS", "annotation", (*_ON_HOST, "eventType", "textId", "text")),
)  # fmt: skip


@dataclass
class Told:
    """What holds for all rows: names by id, wall time of zero, and processes that used a device."""

    names: Callable[[Iterable[int]], dict[int, str]]
    base_ns: int | None = None
    pids: tuple[int, ...] = ()
    rank: int | None = None
    """The rank of the only process, where the file's name tells it."""
    seen: dict[int, Extent] = field(default_factory=dict)
    ended: bool = True
    """No table was damaged."""


def pid_of(ids: pa.Array) -> pa.Array:
    """The process in a serialized global id."""
    return pc.bit_wise_and(pc.shift_right(ids, 24), 0xFFFFFF)


def batch_of(source: Source, raw: pa.RecordBatch, records: pa.Array, told: Told) -> Batch:
    """Rows of one batch of a table; columns that an export lacks are not in ``raw``."""
    columns = {n: raw.column(n) for n in raw.schema.names}
    keep, ignored = _wanted(source, columns, told)
    if keep is not None:
        columns = {name: column.filter(keep) for name, column in columns.items()}
        records = records.filter(keep)
    starts, durs = _times(columns, told.base_ns)
    fits = pc.and_(_within(starts, TIMES if told.base_ns else DURATIONS), _within(durs, DURATIONS))
    problems: tuple[Problem, ...] = ()
    if not pc.all(fits, min_count=0).as_py():
        lost = records.filter(pc.invert(fits)).to_pylist()
        problems = tuple(Problem(record, NO_TIME) for record in lost)
        columns = {name: column.filter(fits) for name, column in columns.items()}
        records, starts, durs = records.filter(fits), starts.filter(fits), durs.filter(fits)
    ids = _column(columns, "globalPid" if source.on_device else "globalTid", len(records))
    pids = pid_of(ids)
    table = pa.table(
        {"record": records, "rank": _ranks(pids, told), "start_ns": starts, "dur_ns": durs}
        | _common(source, columns, pids, ids)
        | _NAMES[source.kind](columns, len(records), told)
    )
    _note(source, table, pids, told)
    rows = {"gpu_event": table} if table.num_rows else {}
    total = table.num_rows + len(problems) + sum(ignored.values())
    return Batch(rows, total, table.num_rows, ignored, problems)


def _column(columns: dict[str, pa.Array], name: str, rows: int) -> pa.Array:
    return columns[name] if name in columns else pa.nulls(rows, _WHOLE)


def _within(values: pa.Array, limits: Any) -> pa.Array:  # noqa: ANN401 - Limits
    inside = pc.and_(pc.greater_equal(values, limits.start), pc.less(values, limits.stop))
    return pc.fill_null(inside, _NO)


def _counts(values: pa.Array) -> pa.Array:
    return pc.if_else(_within(values, COUNTS), values, pa.scalar(None, _WHOLE))


def _times(columns: dict[str, pa.Array], base_ns: int | None) -> tuple[pa.Array, pa.Array]:
    starts, ends = columns["start"], columns["end"]
    durs = pc.subtract(ends, starts)
    # What is far beyond any trace must not wrap around to look like a moment.
    sane = _within(starts, TIMES if base_ns == 0 else DURATIONS)
    starts = pc.if_else(sane, starts, pa.scalar(None, _WHOLE))
    return (pc.add(starts, base_ns) if base_ns else starts), durs


def _wanted(
    source: Source, columns: dict[str, pa.Array], told: Told
) -> tuple[pa.Array | None, dict[str, int]]:
    """Which rows are read, and why the others are not; None where all are."""
    if source.kind == "graph":
        untimed = pc.fill_null(pc.less_equal(columns["end"], columns["start"]), _NO)
        return _but(untimed, UNTIMED)
    if source.kind == "runtime":
        called = _column(columns, "nameId", len(columns["start"]))
        ids = pc.unique(called).drop_null().to_pylist()
        names = told.names(ids)
        telling = [i for i in ids if TELLING.search(names.get(i, ""))]
        known = pc.is_in(called, pa.array(telling, _WHOLE))
        return _but(pc.and_(pc.invert(known), _short(columns)), SHORT_CALLS)
    if source.kind != "annotation":
        return None, {}
    ranges = pc.is_in(columns["eventType"], pa.array(_RANGES, _WHOLE))
    mark = pc.invert(ranges) if "eventType" in columns else pc.is_null(columns["start"])
    unended = pc.and_(pc.invert(mark), pc.is_null(columns["end"]))
    small = pc.and_(pc.and_(pc.invert(mark), _operators(columns, told)), _short(columns))
    ignored = {MARKS: mark, OPEN: unended, SMALL: small}
    counts = {why: pc.sum(rows).as_py() or 0 for why, rows in ignored.items()}
    keep = pc.invert(pc.or_(pc.or_(mark, unended), small))
    return keep, {why: count for why, count in counts.items() if count}


def _but(rows: pa.Array, why: str) -> tuple[pa.Array | None, dict[str, int]]:
    count = pc.sum(rows).as_py() or 0
    return (pc.invert(rows), {why: count}) if count else (None, {})


def _short(columns: dict[str, pa.Array]) -> pa.Array:
    durs = pc.subtract(columns["end"], columns["start"])
    return pc.fill_null(pc.less(durs, LONG_NS), _NO)


def _texts(columns: dict[str, pa.Array], told: Told) -> pa.DictionaryArray:
    """Texts of NVTX ranges, given with the range or registered before."""
    rows = len(columns["start"])
    ids = _column(columns, "textId", rows)
    registered = _named(ids, told)
    if "text" not in columns:
        return registered
    text = columns["text"]
    given = text.dictionary_encode() if not pa.types.is_dictionary(text.type) else text
    words = [_operator(_text(one)) for one in given.dictionary.to_pylist()]
    own = pa.DictionaryArray.from_arrays(given.indices, pa.array(words, pa.string()))
    if ids.null_count != rows:
        own = pc.coalesce(
            own.dictionary_decode(), registered.dictionary_decode()
        ).dictionary_encode()
    return own


def _text(value: Any) -> str | None:  # noqa: ANN401 - bytes or str
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return clean(text) if isinstance(text, str) and text else None


def _operator(text: str | None) -> str | None:
    """An operator's name alone, but for a mark that it is one: each call has its own number."""
    for one in OPERATOR if text else ():
        if text and one in text:
            return f"{text.partition(one)[0]}{_ONE}"
    return text


def _operators(columns: dict[str, pa.Array], told: Told) -> pa.Array:
    texts = _texts(columns, told)
    words = [(word or "").endswith(_ONE) for word in texts.dictionary.to_pylist()]
    return pc.fill_null(pa.array(words, pa.bool_()).take(texts.indices), _NO)


def _named(
    ids: pa.Array, told: Told, change: Callable[[str], str] | None = None
) -> pa.DictionaryArray:
    """Strings in the place of their ids."""
    coded = ids.dictionary_encode()
    numbers = coded.dictionary.to_pylist()
    names = told.names(n for n in numbers if n is not None)
    words = [names.get(n) for n in numbers]
    if change:
        words = [change(word) if word else None for word in words]
    return pa.DictionaryArray.from_arrays(coded.indices, pa.array(words, pa.string()))


def _ranks(pids: pa.Array, told: Told) -> pa.Array:
    if len(told.pids) < 2:
        return pa.array([told.rank] * len(pids), _WHOLE)
    return pc.cast(pc.index_in(pids, pa.array(told.pids, _WHOLE)), _WHOLE)


def _common(
    source: Source, columns: dict[str, pa.Array], pids: pa.Array, ids: pa.Array
) -> dict[str, pa.Array]:
    rows = len(pids)
    found = {"correlation": _column(columns, "correlationId", rows)}
    if not source.on_device:
        return found | {"pid": pids, "tid": pc.bit_wise_and(ids, 0xFFFFFF)}
    stream, node = _column(columns, "streamId", rows), _column(columns, "graphNodeId", rows)
    none = pa.scalar(None, _WHOLE)
    node = pc.if_else(pc.fill_null(pc.equal(node, 0), True), none, node)  # noqa: FBT003
    # A node's number holds its graph's in the upper half.
    graph = pc.coalesce(_column(columns, "graphId", rows), pc.shift_right(node, 32))
    graph = pc.if_else(pc.fill_null(pc.equal(graph, 0), True), none, graph)  # noqa: FBT003
    found |= {
        "device": _column(columns, "deviceId", rows), "graph_id": graph, "graph_node": node,
        "stream": pc.if_else(pc.fill_null(pc.equal(stream, _NO_STREAM), True), none, stream),  # noqa: FBT003
    }  # fmt: skip
    if "bytes" in columns:
        found["bytes"] = _counts(columns["bytes"])
    for name, axes in (("grid_blocks", _SIZES[:3]), ("block_threads", _SIZES[3:])):
        if all(axis in columns for axis in axes):
            x, y, z = (columns[axis] for axis in axes)
            found[name] = _counts(pc.multiply(pc.multiply(x, y), z))
    return found


def _kernels(columns: dict[str, pa.Array], rows: int, told: Told) -> dict[str, Any]:
    # The short name of CUTLASS code is `Kernel2` or `device_kernel` for all of it.
    ids = columns.get("demangledName", columns.get("shortName", pa.nulls(rows, _WHOLE)))
    return {"kind": _same("kernel", rows), "name": _named(ids, told)}


def _same(word: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([word]))


def _copies(columns: dict[str, pa.Array], rows: int, _told: Told) -> dict[str, Any]:
    kinds = [_column(columns, name, rows) for name in ("copyKind", "srcKind", "dstKind")]
    # One number for the three of them: there are few, and each is named once.
    known = [pc.if_else(_within(k, _SMALL), k, pa.scalar(_UNKNOWN, _WHOLE)) for k in kinds]
    packed = pc.add(pc.multiply(pc.add(pc.multiply(known[0], 64), known[1]), 64), known[2])
    coded = packed.dictionary_encode()
    names = [_copy_name(n // 4096, n // 64 % 64, n % 64) for n in coded.dictionary.to_pylist()]
    return {
        "kind": _same("memcpy", rows),
        "name": pa.DictionaryArray.from_arrays(coded.indices, pa.array(names, pa.string())),
    }


def _copy_name(kind: int, source: int, target: int) -> str:
    way = _COPIES.get(kind)
    ends = [_MEMORY.get(source), _MEMORY.get(target)]
    between = f" ({ends[0]} -> {ends[1]})" if all(ends) else ""
    return f"Memcpy {way}{between}" if way else f"Memcpy{between}"


def _sets(_columns: dict[str, pa.Array], rows: int, _told: Told) -> dict[str, Any]:
    return {"kind": _same("memset", rows), "name": _same("Memset", rows)}


def _graphs(_columns: dict[str, pa.Array], rows: int, _told: Told) -> dict[str, Any]:
    return {"kind": _same("graph", rows), "name": _same("CUDA graph", rows)}


def _syncs(columns: dict[str, pa.Array], rows: int, _told: Told) -> dict[str, Any]:
    names = [_SYNCS.get(one or 0) for one in _column(columns, "syncType", rows).to_pylist()]
    return {"kind": _same("sync", rows), "name": pa.array(names, pa.string()).dictionary_encode()}


def _calls(columns: dict[str, pa.Array], rows: int, told: Told) -> dict[str, Any]:
    names = _named(_column(columns, "nameId", rows), told, lambda name: _VERSION.sub("", name))
    kinds = [
        "graph_launch" if "GraphLaunch" in (n or "") else "runtime"
        for n in names.dictionary.to_pylist()
    ]
    # An empty dictionary entry stands where a call has no name.
    kind = pa.array([*kinds, "runtime"]).take(pc.fill_null(names.indices, len(kinds)))
    return {"kind": kind.dictionary_encode(), "name": names}


def _ranges(columns: dict[str, pa.Array], rows: int, told: Told) -> dict[str, Any]:
    names = _texts(columns, told)
    operators = _operators(columns, told) if rows else pa.array([], pa.bool_())
    kind = pc.if_else(operators, "cpu_op", "annotation")
    words = [
        None if one is None else one.removesuffix(_ONE) for one in names.dictionary.to_pylist()
    ]
    plain = pa.DictionaryArray.from_arrays(names.indices, pa.array(words, pa.string()))
    return {"kind": kind.dictionary_encode(), "name": plain}


_NAMES: dict[str, Callable[[dict[str, pa.Array], int, Told], dict[str, Any]]] = {
    "kernel": _kernels, "memcpy": _copies, "memset": _sets, "graph": _graphs, "sync": _syncs,
    "runtime": _calls, "annotation": _ranges,
}  # fmt: skip


def _note(source: Source, table: pa.Table, pids: pa.Array, told: Told) -> None:
    if not table.num_rows:
        return
    ends = pc.add(table["start_ns"], table["dur_ns"])
    several = len(told.pids) > 1
    for pid in told.pids if several else (0,):
        starts, last, kinds = table["start_ns"], ends, table["kind"]
        if several:
            mine = pc.fill_null(pc.equal(pids, pid), _NO)
            starts, last = starts.filter(mine), last.filter(mine)
            kinds = kinds.filter(mine) if source.kind == "runtime" else kinds
        if not len(starts):
            continue
        seen = told.seen.setdefault(pid, Extent())
        first, end = pc.min(starts).as_py(), pc.max(last).as_py()
        seen.first = first if seen.first is None else min(seen.first, first)
        seen.last = end if seen.last is None else max(seen.last, end)
        if source.kind == "runtime":
            counted = pc.value_counts(kinds.combine_chunks().dictionary_decode())
            seen.kinds.update({one["values"]: one["counts"] for one in counts_of(counted)})
        else:
            seen.kinds[source.kind] += len(starts)


def counts_of(counted: pa.Array) -> list[dict[str, Any]]:
    """Values and how often they came."""
    found: list[dict[str, Any]] = counted.to_pylist()
    return found
