"""Ranks that decode together, of which one comes late to every collective.

main: eight ranks, 25 steps of 16 layers; kernels of a layer take 100 us, 140 on rank 5; an all-
reduce takes 20 us more. Seven ranks wait 640 us a step. Clocks differ by up to 3.5 s.

twin: ranks take turns in being late by as much.

two: two ranks; two_even: neither is late. host: rank 1 of two launches each step 900 us late.
even: eight ranks with little noise. missing: rank 5 was not recorded, so nobody can say whom the
others wait for. cut: the file of rank 2 ends in the middle; the rest still tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cases._build import expect, silent
from cases._ranks import traces
from cases.g3_launch_bound import ALL

if TYPE_CHECKING:
    from pathlib import Path

OTHERS = [rule for rule in ALL if rule != "decode.straggler-rank"]
AHEAD = (0.0, 1_700.0, 3_500_000.0, 12.5, 880.0, 2_100_000.0, 64.0, 9_000.0)


def _slow(rank: int, step: int) -> float:
    return 140.0 if rank == 5 else 100.0


def main(folder: Path) -> None:
    """Rank 5."""
    for one in traces(8, 25, _slow, 20, offsets=AHEAD):
        one.write(folder)


def twin(folder: Path) -> None:
    """Each in its turn."""
    late = lambda rank, step: 140.0 if rank == step % 8 else 100.0  # noqa: E731
    for one in traces(8, 24, late, 20, offsets=AHEAD):
        one.write(folder)


def two(folder: Path) -> None:
    """Rank 0."""
    late = lambda rank, _: 150.0 if rank == 0 else 120.0  # noqa: E731
    for one in traces(2, 30, late, 12, offsets=(0.0, -45_000.0), wall=True):
        one.write(folder)


def two_even(folder: Path) -> None:
    """Both alike."""
    noise = lambda rank, step: 120.0 + (rank * 7 + step * 5) % 4  # noqa: E731
    for one in traces(2, 30, noise, 12, offsets=(0.0, 77.0)):
        one.write(folder)


def host(folder: Path) -> None:
    """Late launches of rank 1."""
    for one in traces(
        2, 30, lambda _r, _s: 110.0, 15, offsets=(0.0, 5_000.0),
        host=lambda rank, _: 900.0 if rank == 1 else 0.0,
    ):  # fmt: skip
        one.write(folder)


def even(folder: Path) -> None:
    """Noise."""
    noise = lambda rank, step: 100.0 + (rank * 13 + step * 29) % 6  # noqa: E731
    for one in traces(8, 20, noise, 18, offsets=AHEAD):
        one.write(folder)


def missing(folder: Path) -> None:
    """Seven of eight."""
    for one in traces(8, 25, _slow, 20, offsets=AHEAD):
        if one.rank != 5:
            one.write(folder)


def cut(folder: Path) -> None:
    """The tail of one file is lost."""
    for one in traces(8, 25, _slow, 20, offsets=AHEAD):
        one.write(folder, cut=20_000 if one.rank == 2 else None)


def _found(steps: int, ms: float, *said: str) -> dict[str, object]:
    found = expect("decode.straggler-rank", "decode", steps, ms, "ms", must_not=OTHERS)
    return found | {"said": list(said)}


HOST = [rule for rule in OTHERS if rule != "decode.host-bound"]
CUT = [rule for rule in OTHERS if rule != "trust.truncated"]
CASES = {
    "main": (main, _found(24, 16 * 0.040, "rank 5") | {"told": [3_500_000e3]}),
    "twin": (twin, silent(ALL)),
    "two": (two, _found(29, 16 * 0.030, "rank 0")),
    "two_even": (two_even, silent(ALL)),
    # The device of rank 1 waits for its host, and the others for it.
    "host": (host, _found(29, 0.9, "rank 1") | {"must_not": HOST}),
    "even": (even, silent(ALL)),
    "missing": (missing, silent([r for r in ALL if r != "trust.truncated"])),
    "cut": (cut, _found(22, 0.64, "rank 5") | {"must_not": CUT}),
}
