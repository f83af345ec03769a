"""Ranks that decode together: kernels, then an all-reduce that ends on all of them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cases._traces import ALL_REDUCE, ATTENTION, GEMM, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LAYERS = 16


def traces(
    ranks: int,
    steps: int,
    compute: Callable[[int, int], float],
    transfer: float,
    *,
    offsets: Sequence[float] = (),
    host: Callable[[int, int], float] = lambda _rank, _step: 0.0,
    hidden: float = 0.0,
    wall: bool = False,
) -> list[Trace]:
    """One trace a rank, times in microseconds.

    ``compute``: kernels of a layer, by rank and step. ``host``: how late the rank launches a step.
    ``hidden``: kernels on another stream beside each all-reduce.
    """
    made = [
        Trace(
            rank=r, world=ranks, wall=wall, offset_us=offsets[r % len(offsets)] if offsets else 0.0
        )
        for r in range(ranks)
    ]
    ready = 1_000_000.0
    for k in range(steps):
        begun = [ready + 30 + host(r, k) for r in range(ranks)]
        graphs = []
        for r, trace in enumerate(made):
            graphs.append(trace.launch(begun[r] - 15, graph=True))
        free = list(begun)
        for _ in range(LAYERS):
            for r, trace in enumerate(made):
                took = compute(r, k)
                trace.kernel(ATTENTION, free[r], took * 0.3, graphs[r])
                trace.kernel(GEMM, free[r] + took * 0.3, took * 0.7, graphs[r])
                free[r] += took
            last = max(free)
            for r, trace in enumerate(made):
                trace.kernel(ALL_REDUCE, free[r], last + transfer - free[r], graphs[r], stream=20)
                if hidden:
                    trace.kernel(GEMM, free[r] + 0.1, hidden, graphs[r], stream=7)
            free = [last + max(transfer, hidden + 0.2)] * ranks
        for r, trace in enumerate(made):
            trace.annotation(f"step_{k}", ready, free[r] - ready - 10)
        ready = max(free)
    return made
