"""Decode steps whose kernels end before the next one is launched.

main: 40 steps of 9.0 ms, 180 launches each, one every 50 us; a kernel takes 15 us and begins 8 us
after its launch. Busy 2.7 ms, gaps 6.3 ms a step.

twin: the same kernels, replayed by one graph launch a step of 2.9 ms.

phases: vLLM's annotations; one step in ten is a prefill of 60 ms without a gap, which is no part
of it. pieces: 30 graphs of 6 kernels a step, launched every 240 us. unmarked: no annotation; a
sampling kernel ends each step. ranks: four ranks, each by itself. stacked: host threads were
slowed by the profiler, so the finding is suspected.

queued: eager too, but launched long before the device is ready: no gap. slow_kernels: 180 launches
that take as long as their kernels. few: two steps tell nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cases._build import expect, silent
from cases._traces import ARGMAX, ATTENTION, GEMM, NORM, Trace, eager, replay

if TYPE_CHECKING:
    from pathlib import Path

ALL = [
    "decode.launch-bound", "decode.host-bound", "decode.communication-bound",
    "decode.straggler-rank", "decode.slow-kernel", "trust.graph-coverage", "trust.truncated",
]  # fmt: skip


def _names(count: int, dur: float) -> list[tuple[str, float]]:
    """Layers of four kernels; the last one samples."""
    layer = (GEMM, ATTENTION, NORM, GEMM)
    return [*((layer[k % 4], dur) for k in range(count - 1)), (ARGMAX, dur)]


def _eager(
    trace: Trace,
    steps: int,
    every: float,
    count: int = 180,
    dur: float = 15.0,
    *,
    marked: bool = True,
) -> None:
    for k in range(steps):
        at = 5_000 + k * count * every
        if marked:
            trace.annotation(f"step_{k}", at - 4, count * every - 6)
        eager(trace, at, _names(count, dur), every)


def main(folder: Path) -> None:
    """Eager."""
    trace = Trace()
    _eager(trace, 40, 50)
    trace.write(folder)


def twin(folder: Path) -> None:
    """Replayed."""
    trace = Trace()
    for k in range(40):
        trace.annotation(f"step_{k}", 5_000 + k * 2_900, 2_880)
        replay(trace, 5_010 + k * 2_900, _names(180, 15))
    trace.write(folder)


def phases(folder: Path) -> None:
    """Steps of the engine, with prompts between."""
    trace, at = Trace(wall=True), 900_000.0
    for k in range(50):
        prompt = k % 10 == 3
        name = (
            f"execute_context_1({4096})_generation_0(0)"
            if prompt
            else "execute_context_0(0)_generation_12(12)"
        )
        begin = at
        if prompt:
            at = eager(trace, at, [(GEMM, 600)] * 100, 50) + 30
        else:
            eager(trace, at, _names(180, 15), 50)
            at += 9_000
        trace.annotation(name, begin - 5, at - begin - 10)
    trace.write(folder)


def pieces(folder: Path) -> None:
    """Graphs between eager pieces."""
    trace = Trace()
    for k in range(30):
        at = 3_000 + k * 7_200
        trace.annotation(f"step_{k}", at - 5, 7_180)
        for piece in range(30):
            replay(trace, at + piece * 240, _names(6, 12), lag=10)
    trace.write(folder)


def unmarked(folder: Path) -> None:
    """What repeats is a step."""
    trace = Trace()
    _eager(trace, 25, 60, count=140, dur=12, marked=False)
    trace.write(folder)


def ranks(folder: Path) -> None:
    """Each by itself."""
    for rank in range(4):
        trace = Trace(rank=rank, world=4, offset_us=rank * 170)
        _eager(trace, 12, 44, count=120, dur=14)
        trace.write(folder)


def stacked(folder: Path) -> None:
    """With Python stacks."""
    trace = Trace()
    _eager(trace, 20, 80)
    trace.events.append(
        {"ph": "X", "cat": "python_function", "name": "model.py(7): forward", "pid": 9, "tid": 9,
         "ts": 5_000, "dur": 9_000, "args": {"Python id": 1}}
    )  # fmt: skip
    trace.write(folder)


def queued(folder: Path) -> None:
    """The host is ahead of the device."""
    trace = Trace()
    for k in range(30):
        trace.annotation(f"step_{k}", 2_000 + k * 4_560, 2_000)
    free = 0.0
    for k in range(30):
        for j, (name, dur) in enumerate(_names(150, 30)):
            called = 2_010 + k * 4_560 + j * 8
            free = max(free + 0.4, called + 8)
            trace.kernel(name, free, dur, trace.launch(called, dur=5))
            free += dur
    trace.write(folder)


def slow_kernels(folder: Path) -> None:
    """Launches as long as kernels."""
    trace = Trace()
    _eager(trace, 30, 50, dur=47)
    trace.write(folder)


def few(folder: Path) -> None:
    """Two."""
    trace = Trace()
    _eager(trace, 2, 50)
    trace.write(folder)


def _found(steps: int, ms: float) -> dict[str, object]:
    return expect("decode.launch-bound", "decode", steps, ms, "ms", must_not=ALL[1:])


CASES = {
    "main": (main, _found(40, 6.3) | {"told": [2.7e6, 9.0e6, 180, 0.7]}),
    "twin": (twin, silent(ALL)),
    "phases": (phases, _found(45, 6.3)),
    "pieces": (pieces, _found(30, 7.2 - 30 * 0.072) | {"told": [30]}),
    "unmarked": (unmarked, _found(25, 140 * 0.048)),
    "ranks": (ranks, _found(48, 120 * 0.030)),
    "stacked": (stacked, _found(20, 180 * 0.065)),
    "queued": (queued, silent(ALL)),
    "slow_kernels": (slow_kernels, silent(ALL)),
    "few": (few, silent(ALL)),
}
