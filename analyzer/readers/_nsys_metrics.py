"""GPU metrics that Nsight Systems samples (``--gpu-metrics-devices``), as ``gpu_sample`` rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from analyzer.contract.types import Batch
from analyzer.readers._nsys_facts import Rows
from analyzer.readers._sqlite import scan
from analyzer.readers._times import DURATIONS, TIMES

_BEFORE = "samples before the session began, or without a metric that is kept"
_METRICS = {
    "memory_read": re.compile(
        r"^(?:DRAM|VRAM) Read (?:Bandwidth|Throughput)|^DRAM Read", re.IGNORECASE
    ),
    "memory_write": re.compile(r"^(?:DRAM|VRAM) Write", re.IGNORECASE),
    "sm_active_ratio": re.compile(r"^SMs? Active", re.IGNORECASE),
    "tensor_active_ratio": re.compile(r"^Tensor Active", re.IGNORECASE),
    "gpu_used_ratio": re.compile(r"^GR Active", re.IGNORECASE),
    "sm_clock_hz": re.compile(r"^(?:GPC|SYS|SM) Clock", re.IGNORECASE),
}


def metric_rows(
    rows: Rows, path: Path, columns: dict[str, frozenset[str]], base_ns: int | None, before: int
) -> Iterator[Batch]:
    """One row a device and moment; percent become ratios."""
    if not {"timestamp", "typeId", "metricId", "value"} <= columns.get("GPU_METRICS", frozenset()):
        return
    wanted: dict[str, list[tuple[int, int]]] = {}
    for kind, metric, name in rows("TARGET_INFO_GPU_METRICS", ("typeId", "metricId", "metricName")):
        text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
        for column, pattern in _METRICS.items():
            if isinstance(kind, int) and isinstance(metric, int) and pattern.search(text):
                wanted.setdefault(column, []).append((kind, metric))
    if not wanted:
        return
    cells = {"time": "timestamp", "device": "typeId & 255", "rows": "count(*)"}
    for column, pairs in wanted.items():
        fits = " OR ".join(f"(typeId = {kind} AND metricId = {metric})" for kind, metric in pairs)
        # Whole numbers only, as all columns of a scan: thousandths of a percent, or of a MHz.
        cells[column] = f"CAST(round(max(CASE WHEN {fits} THEN value * 1000.0 END)) AS INTEGER)"
    groups = "timestamp, typeId & 255"
    for raw in scan(path, cells, f"FROM GPU_METRICS GROUP BY {groups} ORDER BY {groups}"):
        if raw.num_rows:
            batch, before = _batch(raw, base_ns, before)
            yield batch


def _batch(raw: pa.RecordBatch, base_ns: int | None, before: int) -> tuple[Batch, int]:
    columns = {name: raw.column(name) for name in raw.schema.names}
    counts = columns.pop("rows")
    total = pc.sum(counts).as_py()
    first = pc.add(pc.subtract(pc.cumulative_sum(counts), counts), before + 1)
    times = columns.pop("time")
    sane = pc.and_(
        pc.greater_equal(times, 0), pc.less(times, (TIMES if base_ns == 0 else DURATIONS).stop)
    )
    told = [column for name, column in columns.items() if name != "device"]
    some = pc.is_valid(pc.coalesce(*told))
    keep = pc.fill_null(pc.and_(sane, some), False)  # noqa: FBT003
    scaled = {
        n: pc.divide(pc.cast(c, pa.float64()), 1000.0) for n, c in columns.items() if n != "device"
    }
    ratios = {name: pc.divide(c, 100.0) for name, c in scaled.items() if name != "sm_clock_hz"}
    reads, writes = ratios.pop("memory_read", None), ratios.pop("memory_write", None)
    if reads is not None and writes is not None:
        ratios["memory_busy_ratio"] = pc.add(reads, writes)
    table = {
        "record": first, "time_ns": pc.add(times, base_ns) if base_ns else times,
        "clock": pa.array(["relative" if base_ns is None else "wall"] * raw.num_rows),
        "device": columns["device"],
    } | {name: _ratio(column) for name, column in ratios.items()}  # fmt: skip
    if "sm_clock_hz" in scaled:
        table["sm_clock_hz"] = pc.multiply(scaled["sm_clock_hz"], 1e6)
    kept = pa.table(table).filter(keep)
    used = pc.sum(counts.filter(keep)).as_py() or 0
    ignored = {_BEFORE: total - used} if total > used else {}
    rows = {"gpu_sample": kept} if kept.num_rows else {}
    return Batch(rows, total, used, ignored), before + total


def _ratio(values: pa.Array) -> pa.Array:
    inside = pc.and_(pc.greater_equal(values, 0.0), pc.less_equal(values, 1.0))
    return pc.if_else(pc.fill_null(inside, False), values, pa.scalar(None, pa.float64()))  # noqa: FBT003
