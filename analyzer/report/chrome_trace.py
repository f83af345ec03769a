"""Events of a profiler trace as chrome-trace JSON, in the layout of PyTorch's profiler.

Perfetto (ui.perfetto.dev) opens it, and our own reader reads it back to the same rows, except that
a graph told as a whole comes back as a kernel. Several ranks share a file as they do in a merged
trace: the process of an event is its rank's label and number.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Row = Mapping[str, Any]

_CATEGORIES = {
    "kernel": "kernel",
    # A whole replay keeps its device busy; no category of the format says that it is a graph.
    "graph": "kernel",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "sync": "cuda_sync",
    "gpu_annotation": "gpu_user_annotation",
    "runtime": "cuda_runtime",
    "graph_launch": "cuda_runtime",
    "annotation": "user_annotation",
    "cpu_op": "cpu_op",
}
_DEVICE = frozenset({"kernel", "graph", "memcpy", "memset", "sync", "gpu_annotation"})
_LAUNCHED = frozenset({"kernel", "graph", "memcpy", "memset"})
_ARGS = (
    ("External id", "external_id"), ("device", "device"), ("stream", "stream"),
    ("correlation", "correlation"), ("bytes", "bytes"), ("graph id", "graph_id"),
    ("graph node id", "graph_node"), ("Collective name", "collective"),
    ("In msg nelems", "collective_elements"), ("dtype", "collective_dtype"),
    ("Process Group Name", "collective_group"), ("Group size", "collective_ranks"),
)  # fmt: skip


def parts(
    traces: Sequence[Row],
    places: Iterable[Row],
    events: Iterable[Sequence[Row]],
    *,
    base_ns: int,
    wall: bool,
) -> Iterator[bytes]:
    """The document, piece by piece; it is valid JSON once all pieces are there.

    ``base_ns``: what times are counted from; only wall time says so in the file.
    """
    labels = _labels(traces)
    head = _head(traces, several=len(traces) > 1)
    if wall:
        head["baseTimeNanoseconds"] = base_ns
    yield (json.dumps(head, indent=2)[:-2] + ',\n  "traceEvents": [').encode()
    lead = "\n"
    for row in _names(traces, places, labels):
        yield f"{lead}  {json.dumps(row)}".encode()
        lead = ",\n"
    zero = base_ns if wall else 0
    for some in events:
        text = ",\n".join(_event(row, labels.get(row["rank_key"], ""), zero) for row in some)
        if text:
            yield f"{lead}{text}".encode()
            lead = ",\n"
    yield b"\n  ]\n}\n"


def _labels(traces: Sequence[Row]) -> dict[int, str]:
    """What an event's process starts with: nothing where the file holds one rank."""
    if len(traces) < 2:
        return {row["rank_key"]: "" for row in traces}
    out: dict[int, str] = {}
    for row in traces:
        name = f"trace {row['rank_key']}" if row["rank"] is None else str(row["place"])
        out[row["rank_key"]] = f"capture {row['capture']} {name} " if row["capture"] > 1 else (
            f"{name} "
        )  # fmt: skip
    return out


def _head(traces: Sequence[Row], *, several: bool) -> dict[str, Any]:
    head: dict[str, Any] = {"schemaVersion": 1}
    devices = sorted({str(row["device_name"]) for row in traces if row["device_name"]})
    head["deviceProperties"] = [{"id": at, "name": name} for at, name in enumerate(devices)]
    info = {
        "rank": None if several or not traces else traces[0]["rank"],
        "world_size": max((row["world_size"] or 0 for row in traces), default=0) or None,
    }
    info = {key: value for key, value in info.items() if value is not None}
    if info:
        head["distributedInfo"] = info
    maker = "hip" if any(row["vendor"] == "amd" for row in traces) else "cuda"
    for what in ("runtime", "driver"):
        told = next((row[f"{what}_version"] for row in traces if row[f"{what}_version"]), None)
        if told:
            head[f"{maker}_{what}_version"] = told
    return head | {"displayTimeUnit": "ms"}


def _names(
    traces: Sequence[Row], places: Iterable[Row], labels: Mapping[int, str]
) -> Iterator[dict[str, Any]]:
    """Rows that name processes and streams."""
    ranks = {row["rank_key"]: str(row["place"]) for row in traces}
    seen = set()
    for row in places:
        label, rank = labels.get(row["rank_key"], ""), ranks.get(row["rank_key"], "")
        on_device = row["pid"] is None
        number = row["device"] if on_device else row["pid"]
        what = f"device {number}" if on_device else f"host process {number}"
        pid = _pid(label, number)
        if pid not in seen:
            seen.add(pid)
            yield _meta("process_name", pid, 0, f"{rank} {what}")
        if on_device and row["stream"] is not None:
            yield _meta("thread_name", pid, row["stream"], f"stream {row['stream']}")


def _meta(name: str, pid: int | str, tid: int, value: str) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": {"name": value}}


def _pid(label: str, number: int | None) -> int | str:
    whole = -1 if number is None else number
    return f"{label}{whole}" if label else whole


def _event(row: Row, label: str, zero: int) -> str:
    """One event, and the arrow from a launch to what it launched."""
    kind = row["kind"]
    on_device = kind in _DEVICE
    pid = _pid(label, row["device"] if on_device else row["pid"])
    tid = row["stream"] if on_device else row["tid"]
    place = f'"pid": {json.dumps(pid)}, "tid": {-1 if tid is None else tid}'
    at = f'"ts": {_us(row["start_ns"] - zero)}'
    dur = "" if row["dur_ns"] is None else f', "dur": {_us(row["dur_ns"])}'
    args = {key: row[name] for key, name in _ARGS if row[name] is not None}
    for key, name in (("grid", "grid_blocks"), ("block", "block_threads")):
        if row[name] is not None:
            args[key] = [row[name], 1, 1]
    category = _CATEGORIES.get(kind, "cpu_op")
    text = (
        f'  {{"ph": "X", "cat": "{category}", "name": {_quoted(row["name"] or "")}, '
        f'{place}, {at}{dur}, "args": {json.dumps(args)}}}'
    )
    if row["correlation"] is None or not (kind in _LAUNCHED or category == "cuda_runtime"):
        return text
    number = f"{label}{row['correlation']}" if label else row["correlation"]
    ends = '"ph": "s"' if category == "cuda_runtime" else '"ph": "f", "bp": "e"'
    return (
        f'{text},\n  {{{ends}, "id": {json.dumps(number)}, {place}, {at}, '
        '"cat": "ac2g", "name": "ac2g"}'
    )


def _us(ns: int) -> str:
    """Microseconds with all three decimals: nothing is rounded."""
    sign, whole = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{whole // 1000}.{whole % 1000:03d}"


@lru_cache(maxsize=4096)
def _quoted(name: str) -> str:
    """A name as JSON, without a bare quote inside: readers that look for one see none."""
    return '"' + json.dumps(name)[1:-1].replace('\\"', "\\u0022") + '"'
