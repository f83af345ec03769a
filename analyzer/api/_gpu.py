"""What profiler traces say of devices, and a window of one written down for Perfetto."""

from __future__ import annotations

from pathlib import Path

from analyzer.api._opened import opened
from analyzer.contract.devices import Devices
from analyzer.contract.types import Filters, Table
from analyzer.questions import gpu as devices
from analyzer.questions.gpu_window import window
from analyzer.report import chrome_trace
from analyzer.report.files import may_write, write_parts
from analyzer.report.values import quantity


def gpu(
    db: str, filters: Filters | None = None, *, table: str = "", top: int = 20
) -> Devices | Table:
    """Where device time went, and whether the traces can tell.

    ``table``: ``steps``, ``classes``, ``ranks`` or ``trust`` alone; ``top`` is of steps (0 = all).
    """
    with opened(db, filters) as engine:
        devices.require_trace(engine, filters, quantity)
        if table == "steps":
            return devices.steps(engine, top)
        alone = {"classes": devices.classes, "ranks": devices.ranks, "trust": devices.trust}
        return alone[table](engine) if table else devices.devices(engine)


def write_gpu_window(
    db: str, path: str | Path, asked: tuple[str, int, int], *, force: bool = False
) -> Table:
    """Write a window of the traces as chrome-trace JSON; a path in ``.gz`` is compressed.

    ``asked``: ``wall`` and two moments in ns since 1970, or ``offset`` and two times in ns since
    the traces' first event.
    """
    may_write(path, force=force)
    with opened(db) as engine:
        devices.require_trace(engine, None, quantity)
        some = window(engine, asked)
        written = write_parts(
            path,
            chrome_trace.parts(
                some.traces, some.places, some.events, base_ns=some.first_ns, wall=some.is_wall
            ),
        )
    row = {
        "path": str(written),
        "events": some.count,
        "ranks": len(some.traces),
        "start_ns": some.since_ns if some.is_wall else None,
        "offset_ns": some.since_ns - some.begun_ns,
        "dur_ns": some.until_ns - some.since_ns,
    }
    notes = ["Open it at ui.perfetto.dev, or a copy of that."]
    if some.silent:
        notes.append(f"No event in that window: {', '.join(some.silent)}.")
    return Table("analyze.gpu.export", (row,), tuple(notes))
