"""Short requests wait behind one large prompt, and those that only look like it.

main: every minute a prompt of 40,000 tokens; whoever comes while it is in work starts as it ends.

equals: as many waits, but all prompts are as large: they wait for each other's work.

beside: the same large prompts, in chunks beside which the others start at once.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, Served, startup_lines, status_lines
from cases._build import MS, at, expect, mean_seconds, silent, spans, write_case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODEL = "ochre-14b"
T0 = at("2026-05-05T06:40:00Z")
STEP = 16 * MS
_NOT = [
    "queue.admission-limit", "queue.saturation", "queue.mislabelled", "queue.imbalance",
    "network.slow", "decode.output-growth",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Numbers of one variant."""

    seed: int
    every_ns: int
    large_at: tuple[int, ...]
    """Seconds at which a large prompt comes."""
    large_tokens: int
    large_ns: int
    short_tokens: tuple[int, int] = (300, 700)
    blocks: bool = True
    cadence_ns: int | None = None
    last_steps_ns: int = 120 * MS
    """So long before its end the others join."""


def _served(shape: Shape) -> list[Served]:
    rng = random.Random(shape.seed)
    made, busy = [], []
    for k, second in enumerate(shape.large_at):
        start = T0 + second * NS
        busy.append((start + 3 * MS, start + 3 * MS + shape.large_ns))
        made.append(
            Served(
                request_id=f"book-{k}",
                arrived_ns=start,
                queue_ns=2 * MS,
                prefill_ns=shape.large_ns,
                decode_ns=49 * STEP,
                prompt_tokens=shape.large_tokens,
                output_tokens=50,
                before_ns=MS,
                after_ns=MS,
            )
        )
    moment, end, k = T0, T0 + (shape.large_at[-1] + 30) * NS, 0
    while moment < end:
        moment += round(shape.every_ns * rng.uniform(0.5, 1.5))
        k += 1
        prompt, tokens = rng.randint(*shape.short_tokens), rng.randint(40, 90)
        until = max((b for a, b in busy if a <= moment < b), default=0) - shape.last_steps_ns
        wait = max(0, until - moment) if shape.blocks else 0
        made.append(
            Served(
                request_id=f"ask-{k:04d}",
                arrived_ns=moment,
                queue_ns=2 * MS + wait,
                prefill_ns=30 * MS + prompt * 30_000,
                decode_ns=(tokens - 1) * STEP,
                prompt_tokens=prompt,
                output_tokens=tokens,
                before_ns=MS,
                after_ns=MS,
            )
        )
    return sorted(made, key=lambda one: one.arrived_ns)


def _write(folder: Path, served: list[Served], cadence_ns: int | None) -> None:
    files = {"spans.jsonl": spans(served)}
    if cadence_ns:
        files["vllm.log"] = startup_lines(
            T0 - 90 * NS, model=MODEL, capacity_tokens=500_000, arguments={"max_num_seqs": 128}
        ) + status_lines(
            served, first_ns=T0, last_ns=max(one.last_token_ns for one in served),
            every_ns=cadence_ns, capacity_tokens=500_000,
        )  # fmt: skip
    write_case(folder, files, MODEL)


def _writer(shape: Shape) -> Callable[[Path], None]:
    return lambda folder: _write(folder, _served(shape), shape.cadence_ns)


def _expected(shape: Shape) -> dict[str, object]:
    waits = [one.queue_ns for one in _served(shape)]
    long = [
        one.queue_ns
        for one in _served(shape)
        if one.queue_ns >= 102 * MS and one.queue_ns >= 0.2 * one.ttft_ns
    ]
    assert len(long) < len(waits) / 2
    return expect("queue.head-of-line", "queue", len(long), mean_seconds(long), "s", must_not=_NOT)


MAIN = Shape(
    seed=1, every_ns=350 * MS, large_at=(20, 80, 140), large_tokens=40_000, large_ns=5_000 * MS,
    cadence_ns=NS,
)  # fmt: skip
SHAPES = {
    "main": MAIN,
    "spans_only": Shape(
        seed=2, every_ns=500 * MS, large_at=(15, 60, 100, 170), large_tokens=24_000,
        large_ns=3_300 * MS,
    ),
    "slow_log": Shape(
        seed=3, every_ns=220 * MS, large_at=(30, 90), large_tokens=90_000, large_ns=9_000 * MS,
        cadence_ns=10 * NS, last_steps_ns=400 * MS,
    ),
    "one_only": Shape(
        seed=4, every_ns=150 * MS, large_at=(25,), large_tokens=60_000, large_ns=2_500 * MS,
        short_tokens=(100, 2_000),
    ),
    "rare": Shape(
        seed=5, every_ns=1_200 * MS, large_at=tuple(range(20, 620, 60)), large_tokens=32_000,
        large_ns=4_000 * MS, cadence_ns=5 * NS,
    ),
    "fast_engine": Shape(
        seed=6, every_ns=60 * MS, large_at=(10, 30, 50), large_tokens=120_000, large_ns=1_400 * MS,
        cadence_ns=2 * NS, last_steps_ns=60 * MS,
    ),
}  # fmt: skip


def _equals(folder: Path) -> None:
    """Twelve prompts of 40,000 tokens, one after the other."""
    served, free = [], T0
    for k in range(30):
        arrived = T0 + k * 2_000 * MS
        start = max(arrived + 3 * MS, free)
        free = start + 2_600 * MS
        served.append(
            Served(
                request_id=f"book-{k}",
                arrived_ns=arrived,
                queue_ns=start - arrived - MS,
                prefill_ns=2_600 * MS,
                decode_ns=39 * STEP,
                prompt_tokens=40_000 + 100 * k,
                output_tokens=40,
                before_ns=MS,
                after_ns=MS,
            )
        )
    _write(folder, served, NS)


def _beside(folder: Path) -> None:
    _write(folder, _served(Shape(**(MAIN.__dict__ | {"blocks": False}))), NS)


CASES = {name: (_writer(shape), _expected(shape)) for name, shape in SHAPES.items()} | {
    "equals": (
        _equals,
        silent(["queue.head-of-line", "queue.admission-limit", "queue.mislabelled"]),
    ),
    "beside": (_beside, silent(["queue.head-of-line", *_NOT])),
}
