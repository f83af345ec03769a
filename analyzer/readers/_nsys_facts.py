"""What an Nsight Systems export says of itself: clock, devices, losses, overhead.

It also holds the command line and the environment of the process. Those are never read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from analyzer.readers._gpu_rows import Extent
from analyzer.readers._kineto_facts import Rank
from analyzer.readers._nsys_rows import Told
from analyzer.readers._rows import clean, int_or_none
from analyzer.readers._times import DURATIONS, TIMES

Rows = Callable[[str, tuple[str, ...]], Iterable[tuple[Any, ...]]]
"""Rows of a small table: (table, columns) -> cells; nothing where the export lacks it."""
GRAPHS = (
    "replays of CUDA graphs are told as one event each, their kernels are not: record with "
    "--cuda-graph-trace=node to see them"
)
NO_CLOCK = "the export does not say when the session began: its times are relative"
_LOST = re.compile(r"drop|lost|missing|might not have been collected|not all", re.IGNORECASE)
_COUNT = re.compile(r"(\d[\d,]{0,14})")
_FULL = re.compile(
    r"buffer.{0,40}(?:full|exhaust)|out of (?:memory|space)|stopped early", re.IGNORECASE
)
_WARNING, _ERROR = 2, 3
_MOST_RATE = 10**14
PROFILER = "3, 4, 5"
"""Kinds of overhead that are the profiler's; loading modules is the program's own."""


@dataclass
class Facts:
    """Of the whole export."""

    product: str | None
    schema: str | None
    base_ns: int | None
    gpus: list[tuple[str | None, int | None]]
    devices: int | None
    errors: int | None
    dropped: int | None
    full: bool | None
    overhead_ns: dict[int, int] = field(default_factory=dict)
    """By process."""


def facts_of(rows: Rows) -> Facts:
    """From the small tables of an export."""
    export = {
        _text(name): _text(value) for name, value in rows("META_DATA_EXPORT", ("name", "value"))
    }
    errors, dropped, full, told = 0, None, False, False
    for severity, words in rows("DIAGNOSTIC_EVENT", ("severity", "text")):
        told = True
        text = _text(words) or ""
        errors += severity == _ERROR
        if severity in (_WARNING, _ERROR) and _LOST.search(text):
            count = _COUNT.search(text)
            dropped = (dropped or 0) + (int(count[1].replace(",", "")) if count else 0) or None
            # Lost, and nobody says how many.
            full = full or count is None
        full = full or bool(severity in (_WARNING, _ERROR) and _FULL.search(text))
    gpus = [
        (_text(name), _rate(rate))
        for name, rate in rows("TARGET_INFO_GPU", ("name", "memoryBandwidth"))
    ]
    seen = {gpu for (gpu,) in rows("TARGET_INFO_CUDA_DEVICE", ("gpuId",)) if gpu is not None}
    return Facts(
        export.get("EXPORT_PRODUCT_VERSION"), export.get("EXPORT_SCHEMA_VERSION"),
        _base(export, rows), gpus, len(seen) or len(gpus) or None, errors if told else None,
        dropped, full if told else None,
    )  # fmt: skip


def _base(export: dict[str | None, str | None], rows: Rows) -> int | None:
    """Wall time of the export's zero; 0 where its times are wall times already."""
    if (export.get("EXPORT_PARAM_TIME_NORMALIZE") or "").lower() == "true":
        return 0
    for (epoch,) in rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",)):
        if isinstance(epoch, int) and epoch in TIMES:
            shift = export.get("EXPORT_PARAM_TIME_SHIFT") or "0"
            moved = epoch - (int(shift) if re.fullmatch(r"-?\d{1,18}", shift) else 0)
            return moved if moved in TIMES else None
    return None


def _text(value: Any) -> str | None:  # noqa: ANN401
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return clean(text)[:200] if isinstance(text, str) and text else None


def _rate(value: Any) -> int | None:  # noqa: ANN401
    number = int_or_none(value)
    return number if number is not None and 0 < number < _MOST_RATE else None


def trace_rows(facts: Facts, told: Told, rank: Rank) -> list[dict[str, Any]]:
    """One row a process that used a device."""
    names = {name for name, _ in facts.gpus if name}
    common = {
        "record": 1, "world_size": None, "device_name": names.pop() if len(names) == 1 else None,
        "devices": facts.devices, "vendor": "nvidia", "profiler": "nsys",
        "schema_version": facts.schema, "clock": "relative" if facts.base_ns is None else "wall",
        "base_ns": facts.base_ns or None, "resolution_ns": 1, "ended": told.ended, "stacks": None,
        "dropped_records": facts.dropped, "stopped_early": facts.full or None,
        "errors": facts.errors,
    }  # fmt: skip
    if len(told.pids) < 2:
        seen = told.seen.get(0, Extent())
        return [
            common
            | {"rank": rank.number, "rank_source": rank.source}
            | _extent(seen)
            | {"overhead_ns": sum(facts.overhead_ns.values()) or None}
        ]
    found = []
    for place, pid in enumerate(told.pids):
        one = {"rank": place, "rank_source": "process", "overhead_ns": facts.overhead_ns.get(pid)}
        found.append(common | one | _extent(told.seen.get(pid, Extent())))
    return found


def _extent(seen: Extent) -> dict[str, Any]:
    dur = seen.last - seen.first if seen.first is not None and seen.last is not None else None
    return {
        "start_ns": seen.first, "dur_ns": dur if dur in DURATIONS else None,
        "device_events": sum(seen.kinds[kind] for kind in ("kernel", "memcpy", "memset", "graph")),
        "launches": seen.kinds["runtime"] + seen.kinds["graph_launch"],
        "graph_launches": seen.kinds["graph_launch"],
    }  # fmt: skip


def deployment_rows(facts: Facts) -> list[dict[str, Any]]:
    """Devices and their memory bandwidth, which no other trace format tells."""
    rates = {(name, rate) for name, rate in facts.gpus if name and rate}
    if len(rates) != 1:
        return []
    name, rate = rates.pop()
    return [{"record": 1, "gpu": name, "memory_bandwidth_bytes_per_s": float(rate or 0)}]
