"""What ``make test`` leaves to ``make test-deep``: the rest of a family of alike cases.

A family is every cut of every sample, every command in every format, every variant of a generated
case. The fast suite takes a fixed part of each, so that every reader and every play is touched; the
tests marked ``deep`` take the whole family. ``pytest -m ""`` runs both.
"""

from __future__ import annotations

from zlib import crc32

import pytest

deep = pytest.mark.deep

thorough = pytest.mark.parametrize(
    "thorough", [False, pytest.param(True, marks=deep)], ids=["some", "all"]
)
"""For a test that loops by itself: a few rounds in the fast suite, all of them in the deep one."""


def unless(fast: object) -> tuple[pytest.MarkDecorator, ...]:
    """The marks of a parameter: none where it belongs to the fast suite."""
    return () if fast else (deep,)


def one_in(many: int, name: str) -> bool:
    """The same names each time, one of so many; a new name moves no other."""
    return crc32(name.encode()) % many == 0


def telling_cuts(data: bytes) -> list[int]:
    """Where a file is cut to tell most: at its ends, around records, within records and letters."""
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    some = {ends[i] for i in (0, len(ends) // 2, -1)} if ends else set()
    cuts = {0, 1, len(data) // 2, len(data) - 1} | {at + by for at in some for by in (-1, 0, 1)}
    if ends:
        start = ends[-2] if len(ends) > 1 else 0
        cuts.add((start + ends[-1]) // 2)
    cuts.update([at for at, byte in enumerate(data) if 0x80 <= byte < 0xC0][:1])
    return sorted(cut for cut in cuts if 0 <= cut < len(data))


def some_of(count: int, fast: int) -> list[object]:
    """Seeds, the first of them in the fast suite."""
    return [pytest.param(seed, marks=unless(seed < fast)) for seed in range(count)]
