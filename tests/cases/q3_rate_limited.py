"""Attempts that a limit turns away, and failures that are none of it.

main: every fourth operation meets 429 once or twice and waits for its next attempt.

failing: the same attempts fail with 500.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, openai_usage, request_record
from cases._build import MS, at, expect, silent, write_case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODEL = "umber-70b"
T0 = at("2026-06-02T15:00:00Z")
_NOT = [
    "queue.admission-limit", "queue.saturation", "queue.mislabelled", "queue.imbalance",
    "queue.head-of-line", "network.slow", "prefill.long-prompt",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Numbers of one variant."""

    seed: int
    count: int
    every: int
    status: int = 429
    vantage: str = "client"
    linked_by: str = "operation_id"
    """operation_id or payload_hash: what the attempts of one operation share."""
    asks: bool = True
    """retry-after is told."""
    most: int = 2


def _lines(shape: Shape) -> tuple[list[str], list[int]]:
    rng = random.Random(shape.seed)
    lines, waits = [], []
    for k in range(shape.count):
        moment = T0 + 4 * NS * k + rng.randint(0, 500) * MS
        tries = rng.randint(1, shape.most) if k % shape.every == 1 else 0
        for attempt in range(1, tries + 2):
            refused = attempt <= tries
            took = rng.randint(8, 40) * MS if refused else rng.randint(1_500, 4_000) * MS
            asked = rng.randint(1, 6)
            fields: dict[str, object] = {shape.linked_by: f"op-{k:04d}", "model": MODEL}
            if shape.linked_by == "operation_id":
                fields["attempt"] = attempt
            if refused:
                fields |= {"status": shape.status}
                if shape.asks:
                    fields["retry_after_s"] = asked
            else:
                fields |= {"status": 200, "usage": openai_usage(900, 150)}
            lines.append(
                request_record(
                    f"r-{k:04d}-{attempt}",
                    vantage=shape.vantage,
                    started_ns=moment,
                    durations_ns={"e2e": took},
                    **fields,
                )
            )
            if refused:
                pause = took + asked * NS + rng.randint(10, 300) * MS
                waits.append(pause)
                moment += pause
    return lines, waits


def _writer(shape: Shape) -> Callable[[Path], None]:
    return lambda folder: write_case(folder, {"attempts.jsonl": _lines(shape)[0]}, MODEL)


def _expected(shape: Shape) -> dict[str, object]:
    waits = _lines(shape)[1]
    return expect(
        "queue.rate-limited", "queue", len(waits), sum(waits) / NS, "s", must_not=_NOT,
        may=["errors.rate"],
    )  # fmt: skip


SHAPES = {
    "main": Shape(seed=1, count=60, every=4),
    "once": Shape(seed=2, count=90, every=9, most=1),
    "overloaded": Shape(seed=3, count=50, every=3, status=529, most=4),
    "not_asked": Shape(seed=4, count=70, every=5, asks=False),
    "by_payload": Shape(seed=5, count=64, every=6, linked_by="payload_hash", most=3),
    "gateway": Shape(seed=6, count=120, every=7, vantage="gateway"),
}
FAILING = Shape(seed=7, count=60, every=4, status=500, asks=False)
ODD_ONE = Shape(seed=8, count=60, every=30, most=1)

CASES = {name: (_writer(shape), _expected(shape)) for name, shape in SHAPES.items()} | {
    "failing": (_writer(FAILING), silent(["queue.rate-limited", *_NOT], may=["errors.rate"])),
    "odd_one": (_writer(ODD_ONE), silent(["queue.rate-limited", *_NOT])),
}
