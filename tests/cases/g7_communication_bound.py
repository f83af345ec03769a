"""Decode steps that are mostly transfer between GPUs.

main: four ranks, 30 steps of 16 layers; kernels of a layer take 90 us, its all-reduce 70 us: 1.12
ms of 3.7 ms a step.

twin: the same all-reduce beside kernels of 70 us on another stream.

two: over PCIe, 160 us beside 140. alone: one of four ranks was recorded, and waiting cannot be
told from transfer.

short: 14 us of 104. waiting: the all-reduce is short, and one rank keeps the others waiting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cases._build import expect, silent
from cases._ranks import traces
from cases.g3_launch_bound import ALL

if TYPE_CHECKING:
    from pathlib import Path

OTHERS = [rule for rule in ALL if rule != "decode.communication-bound"]


def main(folder: Path) -> None:
    """Slow links."""
    for one in traces(4, 30, lambda _r, _s: 90.0, 70, offsets=(0, 640, -90_000, 7)):
        one.write(folder)


def twin(folder: Path) -> None:
    """Hidden."""
    for one in traces(4, 30, lambda _r, _s: 90.0, 70, hidden=69.0, offsets=(0, 640, -90_000, 7)):
        one.write(folder)


def two(folder: Path) -> None:
    """Over PCIe."""
    for one in traces(2, 20, lambda _r, _s: 140.0, 160, offsets=(0, 3_000), wall=True):
        one.write(folder)


def alone(folder: Path) -> None:
    """The other three are not there."""
    traces(4, 30, lambda _r, _s: 90.0, 70)[1].write(folder)


def short(folder: Path) -> None:
    """Fast links."""
    for one in traces(4, 30, lambda _r, _s: 90.0, 14, offsets=(0, 640, -90_000, 7)):
        one.write(folder)


def waiting(folder: Path) -> None:
    """Not the links."""
    late = lambda rank, _: 150.0 if rank == 3 else 90.0  # noqa: E731
    for one in traces(4, 30, late, 14, offsets=(0, 640, -90_000, 7)):
        one.write(folder)


def _found(steps: int, ms: float) -> dict[str, object]:
    return expect("decode.communication-bound", "decode", steps, ms, "ms", must_not=OTHERS)


CASES = {
    "main": (main, _found(120, 1.12)),
    "twin": (twin, silent(ALL)),
    "two": (two, _found(40, 2.56)),
    "alone": (alone, silent([rule for rule in ALL if rule != "trust.truncated"])),
    "short": (short, silent(ALL)),
    "waiting": (
        waiting,
        expect("decode.straggler-rank", "decode", 29, 0.96, "ms",
               must_not=[r for r in ALL if r != "decode.straggler-rank"]),
    ),
}  # fmt: skip
