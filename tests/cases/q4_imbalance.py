"""One replica, route or tenant waits while others for the same model have room.

main: three replicas, one of which gets six of ten requests and runs four at a time.

even: the same load over all three alike, each of them short of places.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyzer.simulate.writers import (
    NS,
    Served,
    llm_span,
    openai_usage,
    request_record,
    startup_lines,
    status_lines,
)
from cases._build import MS, at, expect, fifo_waits, mean_seconds, silent, write_case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODEL = "slate-24b"
T0 = at("2026-02-17T20:30:00Z")
STEP = 15 * MS
_NOT = [
    "queue.admission-limit", "queue.saturation", "queue.mislabelled", "queue.head-of-line",
    "network.slow", "prefill.long-prompt", "decode.output-growth",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Numbers of one variant."""

    seed: int
    count: int
    every_ns: int
    shares: dict[str, float]
    """Name -> share of the requests."""
    slots: int = 4
    by: str = "deployment"
    """What tells them apart: deployment (spans), route or a tag."""
    log: bool = False
    idle_from: int | None = None
    """From this request on all go to the first."""


def _served(shape: Shape) -> list[tuple[str, Served]]:
    rng = random.Random(shape.seed)
    moment, made = T0, []
    for k in range(shape.count):
        moment += round(shape.every_ns * rng.uniform(0.3, 1.7))
        name = rng.choices(list(shape.shares), list(shape.shares.values()))[0]
        if shape.idle_from is not None and k >= shape.idle_from:
            name = next(iter(shape.shares))
        made.append((name, k, moment, rng.randint(500, 900), rng.randint(80, 140)))
    served = []
    for name in shape.shares:
        mine = [one for one in made if one[0] == name]
        decodes = [(one[4] - 1) * STEP for one in mine]
        waits = fifo_waits([one[2] for one in mine], [40 * MS + d for d in decodes], shape.slots)
        for (_, k, start, prompt, tokens), decode, wait in zip(mine, decodes, waits, strict=True):
            one = Served(
                request_id=f"i-{k:04d}", arrived_ns=start, queue_ns=2 * MS + wait,
                prefill_ns=40 * MS, decode_ns=decode, prompt_tokens=prompt, output_tokens=tokens,
                before_ns=MS, after_ns=MS,
            )  # fmt: skip
            served.append((name, one))
    return sorted(served, key=lambda one: one[1].arrived_ns)


def _record(shape: Shape, name: str, one: Served) -> str:
    told: dict[str, object] = {"tags": {"tenant": name}} if shape.by == "tenant" else {}
    if shape.by == "route":
        told = {"route": name}
    return request_record(
        one.request_id, vantage="gateway", started_ns=one.arrived_ns + one.before_ns, model=MODEL,
        durations_ns={
            "queue": one.queue_ns, "prefill": one.prefill_ns, "decode": one.decode_ns,
            "ttft": one.queue_ns + one.prefill_ns,
            "e2e": one.queue_ns + one.prefill_ns + one.decode_ns,
        },
        usage=openai_usage(one.prompt_tokens, one.output_tokens), status=200, **told,
    )  # fmt: skip


def _writer(shape: Shape) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        served = _served(shape)
        if shape.by != "deployment":
            lines = [_record(shape, name, one) for name, one in served]
            write_case(folder, {"gateway.jsonl": lines}, MODEL)
            return
        files = {"spans.jsonl": [llm_span(one, service=name) for name, one in served]}
        for name in shape.shares if shape.log else ():
            mine = [one for which, one in served if which == name]
            files[f"{name}.log"] = startup_lines(
                T0 - 60 * NS, model=MODEL, capacity_tokens=300_000,
                arguments={"max_num_seqs": shape.slots},
            ) + status_lines(
                mine, first_ns=T0, last_ns=served[-1][1].last_token_ns, every_ns=2 * NS,
                capacity_tokens=300_000,
            )  # fmt: skip
        write_case(folder, files, MODEL)

    return write


def _expected(shape: Shape) -> dict[str, object]:
    first = next(iter(shape.shares))
    long = [
        one.queue_ns
        for name, one in _served(shape)
        if name == first and one.queue_ns >= 102 * MS and one.queue_ns >= 0.2 * one.ttft_ns
    ]
    return expect("queue.imbalance", "queue", len(long), mean_seconds(long), "s", must_not=_NOT)


SHAPES = {
    "main": Shape(
        seed=1, count=260, every_ns=300 * MS, shares={"pod-a": 6, "pod-b": 2, "pod-c": 2}, log=True,
    ),
    "spans_only": Shape(
        seed=2, count=300, every_ns=420 * MS, shares={"pod-x": 8, "pod-y": 2}, slots=4,
    ),
    "drained": Shape(
        seed=3, count=240, every_ns=350 * MS, shares={"pod-1": 5, "pod-2": 5}, slots=4,
        idle_from=120, log=True,
    ),
    "route": Shape(
        seed=4, count=220, every_ns=500 * MS, shares={"east": 9, "west": 2}, slots=3, by="route",
    ),
    "tenant": Shape(
        seed=5, count=260, every_ns=350 * MS, shares={"acme": 8, "birch": 2, "cedar": 2}, slots=3,
        by="tenant",
    ),
    "many_pods": Shape(
        seed=6, count=500, every_ns=130 * MS,
        shares={"pod-0": 5, "pod-1": 2, "pod-2": 2, "pod-3": 2, "pod-4": 2}, slots=5,
    ),
}  # fmt: skip
EVEN = Shape(
    seed=7, count=300, every_ns=120 * MS, shares={"pod-a": 1, "pod-b": 1, "pod-c": 1}, slots=3,
    log=True,
)  # fmt: skip
ROOM = Shape(seed=8, count=200, every_ns=600 * MS, shares={"pod-a": 6, "pod-b": 3}, slots=40)

CASES = {name: (_writer(shape), _expected(shape)) for name, shape in SHAPES.items()} | {
    "even": (_writer(EVEN), silent(["queue.imbalance", "queue.mislabelled", "queue.head-of-line"])),
    "room": (_writer(ROOM), silent(["queue.imbalance", *_NOT])),
}
