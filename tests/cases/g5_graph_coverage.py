"""Graph launches whose kernels the profiler did not record.

main: 120 launches, and the first three have their 60 kernels: 2.5 % are covered. The device looks
98 % idle; in the steps that are recorded it is busy for 92 %.

twin: all of them have their kernels, and the device is as busy.

partial: of the later two thirds every replay lost half of its kernels. ranks: one of two ranks
lost its kernels. unmarked: no annotations. none: not one kernel.

edges: two of 120 at the end have none. eager: there are no graphs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cases._build import expect, silent
from cases._traces import GEMM, NORM, Trace, eager, replay
from cases.g3_launch_bound import ALL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OTHERS = [rule for rule in ALL if rule != "trust.graph-coverage"]


def _steps(
    trace: Trace, kernels: Callable[[int], int], steps: int = 120, *, marked: bool = True
) -> None:
    for k in range(steps):
        at = 30_000 + k * 12_000
        if marked:
            trace.annotation(f"step_{k}", at, 11_950)
        names = [(GEMM if j % 2 else NORM, 184.0) for j in range(kernels(k))]
        replay(trace, at + 50, names, lag=60)


def main(folder: Path) -> None:
    """The buffer was full."""
    trace = Trace()
    _steps(trace, lambda k: 60 if k < 3 else 0)
    trace.write(folder)


def twin(folder: Path) -> None:
    """All recorded."""
    trace = Trace()
    _steps(trace, lambda _: 60)
    trace.write(folder)


def partial(folder: Path) -> None:
    """Half of each replay."""
    trace = Trace()
    _steps(trace, lambda k: 60 if k % 12 < 8 else 30)
    trace.write(folder)


def ranks(folder: Path) -> None:
    """One of two."""
    for rank in range(2):
        trace = Trace(rank=rank, world=2)
        _steps(trace, lambda k, rank=rank: 60 if k < 10 or not rank else 0, 50)
        trace.write(folder)


def unmarked(folder: Path) -> None:
    """Launches are enough to see it."""
    trace = Trace()
    _steps(trace, lambda k: 60 if k % 20 == 0 else 0, 100, marked=False)
    trace.write(folder)


def none(folder: Path) -> None:
    """Only the host was recorded."""
    trace = Trace()
    _steps(trace, lambda _: 0, 40)
    trace.write(folder)


def edges(folder: Path) -> None:
    """The capture ended before these ran."""
    trace = Trace()
    _steps(trace, lambda k: 60 if k < 118 else 0)
    trace.write(folder)


def eager_steps(folder: Path) -> None:
    """Every launch has its kernel."""
    trace = Trace()
    for k in range(40):
        trace.annotation(f"step_{k}", 9_000 + k * 3_000, 2_990)
        eager(trace, 9_005 + k * 3_000, [(GEMM, 29.0)] * 100, 10)
    trace.write(folder)


def _found(lost: int, share: float) -> dict[str, object]:
    return expect("trust.graph-coverage", "none", lost, share, "ratio", must_not=OTHERS)


CASES = {
    "main": (main, _found(117, 3 / 120) | {"told": [0.92, 120]}),
    "twin": (twin, silent(ALL)),
    "partial": (partial, _found(40, 80 / 120)),
    "ranks": (
        ranks,
        _found(40, 10 / 50) | {"must_not": [r for r in OTHERS if r != "trust.truncated"]},
    ),
    "unmarked": (unmarked, _found(95, 5 / 100)),
    "none": (none, silent(OTHERS)),
    "edges": (edges, silent(ALL)),
    "eager": (eager_steps, silent(ALL)),
}
