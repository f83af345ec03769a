"""Traces that are not whole: what they hold still counts, and what they cannot tell is not told.

main: the file of one rank ends in the middle of an event.

twin: the same rank, whole.

dropped: the profiler logged that it lost 1,200 records. kernels: a third of the eager launches
have no kernel. hang: one kernel of 4 s in a trace of 5 s. absent: ranks 2 and 3 of four were not
recorded.

unjoined: two of two ranks that do not communicate, of a job that tells four: nothing hangs on the
rest.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cases._build import expect, silent
from cases._ranks import traces
from cases._traces import GEMM, NORM, Trace, replay
from cases.g3_launch_bound import ALL

if TYPE_CHECKING:
    from pathlib import Path

OTHERS = [rule for rule in ALL if rule != "trust.truncated"]


def _steps(trace: Trace, steps: int = 50) -> Trace:
    for k in range(steps):
        trace.annotation(f"step_{k}", 9_000 + k * 5_000, 4_990)
        replay(trace, 9_010 + k * 5_000, [(GEMM, 60.0), (NORM, 39.0)] * 50, lag=10)
    return trace


def main(folder: Path) -> None:
    """Killed while it was written."""
    _steps(Trace()).write(folder, cut=9_000)


def twin(folder: Path) -> None:
    """Whole."""
    _steps(Trace()).write(folder)


def dropped(folder: Path) -> None:
    """By its own word."""
    _steps(Trace()).write(folder)
    path = folder / "rank0.pt.trace.json"
    told = json.loads(path.read_text("utf-8")) | {"WARNING": ["Dropped 1200 activity records"]}
    path.write_text(json.dumps(told), encoding="utf-8")


def kernels(folder: Path) -> None:
    """Every third one is lost."""
    trace = Trace()
    for k in range(40):
        at = 7_000 + k * 3_000
        trace.annotation(f"step_{k}", at, 2_990)
        for j in range(60):
            correlation = trace.launch(at + 5 + j * 48)
            if (k + j) % 3:
                trace.kernel(GEMM, at + 15 + j * 48, 46, correlation)
    trace.write(folder)


def hang(folder: Path) -> None:
    """A kernel that never came back."""
    trace = _steps(Trace(), 190)
    trace.kernel("spin", 965_000, 4_000_000, trace.launch(960_000))
    trace.write(folder)


def absent(folder: Path) -> None:
    """Half of the ranks."""
    for one in traces(4, 20, lambda _r, _s: 100.0, 12):
        if one.rank < 2:
            one.write(folder)


def unjoined(folder: Path) -> None:
    """Replicas."""
    for rank in range(2):
        _steps(Trace(rank=rank, world=4)).write(folder)


def _found(traces_touched: int, ranks: float) -> dict[str, object]:
    return expect("trust.truncated", "none", traces_touched, ranks, "ranks", must_not=OTHERS)


CASES = {
    "main": (main, _found(1, 1)),
    "twin": (twin, silent(ALL)),
    "dropped": (dropped, _found(1, 1)),
    "kernels": (kernels, _found(1, 1)),
    "hang": (hang, _found(1, 1)),
    "absent": (absent, _found(1, 2)),
    "unjoined": (unjoined, silent(ALL)),
}
