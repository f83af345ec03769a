"""Time booked as queue although nobody was ahead: only one kind of requests shows it.

main: every fifth request asks for a schema nobody asked for before; its grammar is compiled while
the plain ones that come later are served at once.

alike: the same waits, but they fall on whoever comes while all places are taken, whatever its kind.

others: the same schema compiled once only, JSON on every call, tools, a client's own hold, requests
one at a time, and spans of the engine with the kinds in the client's stream alone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyzer.simulate.writers import (
    NS,
    Served,
    openai_usage,
    request_record,
    startup_lines,
    status_lines,
)
from cases._build import MS, answer, at, expect, fifo_waits, silent, spans, write_case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODEL = "teal-8b"
T0 = at("2026-04-14T11:20:00Z")
STEP = 14 * MS
_NOT = [
    "queue.admission-limit", "queue.saturation", "queue.head-of-line", "queue.imbalance",
    "queue.rate-limited", "prefill.long-prompt", "network.slow", "decode.output-growth",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Numbers of one variant."""

    seed: int
    count: int
    every_ns: int
    compile_ns: int
    kind: Callable[[int], dict[str, object]]
    """Fields of the n-th request that tell its kind; none for a plain one."""
    waits: Callable[[int], bool]
    tokens: int = 120
    log: bool = False
    streams: bool = False
    """The client's stream tells the kinds, the engine's spans the times."""


def _served(shape: Shape) -> list[Served]:
    rng = random.Random(shape.seed)
    moment, made = T0, []
    for k in range(shape.count):
        moment += round(shape.every_ns * rng.uniform(0.6, 1.4))
        wait = round(shape.compile_ns * rng.uniform(0.9, 1.1)) if shape.waits(k) else 0
        prompt, tokens = rng.randint(500, 900), rng.randint(shape.tokens - 20, shape.tokens + 20)
        made.append(
            Served(
                request_id=f"q-{k:04d}",
                arrived_ns=moment,
                queue_ns=2 * MS + wait,
                prefill_ns=prompt * 60_000,
                decode_ns=(tokens - 1) * STEP,
                prompt_tokens=prompt,
                output_tokens=tokens,
                before_ns=MS,
                after_ns=MS,
            )
        )
    return made


def _record(one: Served, **kind: object) -> str:
    return request_record(
        one.request_id, vantage="engine", started_ns=one.arrived_ns + one.before_ns,
        ended_ns=one.last_token_ns, model=MODEL, status=200,
        durations_ns={
            "queue": one.queue_ns, "prefill": one.prefill_ns, "decode": one.decode_ns,
            "ttft": one.queue_ns + one.prefill_ns,
            "e2e": one.queue_ns + one.prefill_ns + one.decode_ns,
        },
        usage=openai_usage(one.prompt_tokens, one.output_tokens), **kind,
    )  # fmt: skip


def _lines(one: Served, kind: dict[str, object]) -> list[str]:
    chunks: list[tuple[int, str | None, int]] = [
        (8 * MS + one.ttft_ns + i * STEP, "content", 4) for i in range(one.output_tokens)
    ]
    return answer(
        one.request_id, one.arrived_ns - 4 * MS, chunks,
        openai_usage(one.prompt_tokens, one.output_tokens), model=MODEL, stream=True, **kind,
    )  # fmt: skip


def _writer(shape: Shape) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        served = _served(shape)
        if shape.streams:
            lines = [line for k, one in enumerate(served) for line in _lines(one, shape.kind(k))]
            files = {"client.jsonl": lines, "spans.jsonl": spans(served)}
        else:
            files = {
                "engine.jsonl": [_record(one, **shape.kind(k)) for k, one in enumerate(served)]
            }
        if shape.log:
            files["vllm.log"] = startup_lines(
                T0 - 60 * NS, model=MODEL, capacity_tokens=300_000, arguments={}
            ) + status_lines(
                served, first_ns=T0 + NS, last_ns=served[-1].last_token_ns, every_ns=NS,
                capacity_tokens=300_000,
            )  # fmt: skip
        write_case(folder, files, MODEL)

    return write


def _expected(shape: Shape) -> dict[str, object]:
    long = [one.queue_ns for one in _served(shape) if one.queue_ns >= 100 * MS]
    return expect("queue.mislabelled", "queue", len(long), sum(long) / NS, "s", must_not=_NOT)


def _json(k: int, schema: object = None) -> dict[str, object]:
    told = {"response_format": "json_schema"}
    return told if schema is None else told | {"schema_hash": f"s{schema}"}


SHAPES = {
    "main": Shape(
        seed=1, count=90, every_ns=400 * MS, compile_ns=1_900 * MS, log=True,
        kind=lambda k: _json(k, k) if k % 5 == 4 else {}, waits=lambda k: k % 5 == 4,
    ),
    "few_schemas": Shape(
        seed=2, count=160, every_ns=250 * MS, compile_ns=550 * MS,
        kind=lambda k: _json(k, k // 32) if k % 4 == 0 else {}, waits=lambda k: k % 32 == 0,
    ),
    "every_call": Shape(
        seed=3, count=70, every_ns=700 * MS, compile_ns=800 * MS,
        kind=lambda k: _json(k, "one") if k % 3 == 0 else {}, waits=lambda k: k % 3 == 0,
    ),
    "one_at_a_time": Shape(
        seed=4, count=36, every_ns=6 * NS, compile_ns=1_400 * MS, log=True,
        kind=lambda k: _json(k, k) if k % 4 == 1 else {}, waits=lambda k: k % 4 == 1,
    ),
    "tools": Shape(
        seed=5, count=80, every_ns=300 * MS, compile_ns=650 * MS, tokens=60,
        kind=lambda k: {"tools_count": 24, "tools_chars": 40_000} if k % 6 == 2 else {},
        waits=lambda k: k % 6 == 2,
    ),
    "client_knows": Shape(
        seed=6, count=84, every_ns=500 * MS, compile_ns=1_100 * MS, streams=True,
        kind=lambda k: {"schema_hash": f"s{k}"} if k % 7 == 3 else {}, waits=lambda k: k % 7 == 3,
    ),
}  # fmt: skip


def _held(folder: Path) -> None:
    """The client kept them back, and booked that as queue."""
    rng, lines = random.Random(7), []
    for k in range(60):
        wait = rng.randint(700, 1_500) * MS if k % 3 else 0
        start = T0 + 900 * MS * k
        lines.append(
            request_record(
                f"h-{k:03d}",
                vantage="client",
                started_ns=start,
                model=MODEL,
                status=200,
                durations_ns={"queue": wait + MS, "ttft": wait + 300 * MS, "e2e": wait + 2 * NS},
                scheduled_at=(start - wait - MS) / NS,
                usage=openai_usage(600, 100),
            )
        )
    write_case(folder, {"client.jsonl": lines}, MODEL)


def _alike(folder: Path) -> None:
    """Four places, bursts of fourteen: plain and structured ones wait the same."""
    rng = random.Random(8)
    arrivals = [60 * NS * (k // 14) + 15 * MS * (k % 14) for k in range(70)]
    tokens = [rng.randint(80, 140) for _ in arrivals]
    waits = fifo_waits(arrivals, [40 * MS + (t - 1) * STEP for t in tokens], 4)
    served = [
        Served(
            request_id=f"b-{k:03d}", arrived_ns=T0 + arrival, queue_ns=2 * MS + wait,
            prefill_ns=40 * MS, decode_ns=(count - 1) * STEP, prompt_tokens=600,
            output_tokens=count, before_ns=MS, after_ns=MS,
        )
        for k, (arrival, wait, count) in enumerate(zip(arrivals, waits, tokens, strict=True))
    ]  # fmt: skip
    kinds = [_json(k, k) if k % 3 == 0 else {} for k in range(len(served))]
    log = status_lines(
        served, first_ns=T0, last_ns=served[-1].last_token_ns, every_ns=NS, capacity_tokens=300_000
    )
    records = [_record(one, **kind) for one, kind in zip(served, kinds, strict=True)]
    write_case(folder, {"engine.jsonl": records, "vllm.log": log}, MODEL)


def _quick(folder: Path) -> None:
    """New schemas that compile in 20 ms."""
    _writer(
        Shape(
            seed=9, count=80, every_ns=400 * MS, compile_ns=20 * MS,
            kind=lambda k: _json(k, k) if k % 5 == 4 else {}, waits=lambda k: k % 5 == 4,
        )
    )(folder)  # fmt: skip


CASES = {name: (_writer(shape), _expected(shape)) for name, shape in SHAPES.items()} | {
    "alike": (_alike, silent(["queue.mislabelled", "queue.head-of-line", "queue.imbalance"])),
    "quick": (_quick, silent(["queue.mislabelled", *_NOT])),
    "client_hold": (_held, silent(_NOT)),
}
