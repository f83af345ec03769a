"""Requests over a path: what the client, the gateway and the engine each log of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, Served, openai_usage, request_record
from cases._build import MS, answer, spans, write_case

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

STEP = 15 * MS
CHARS = 4


@dataclass(frozen=True, kw_only=True)
class Trip:
    """One request and what its way adds, ns: there, between gateway and engine, and back."""

    at_ns: int
    route: str | None
    out_ns: int
    back_ns: int
    inside_ns: int = 0
    tokens: int = 60
    prompt: int = 900
    queue_ns: int = 3 * MS
    hold: Callable[[int, int], int] | None = None
    """Index of a token and when it left the engine -> when a hop passes it on."""
    hold_after: bool = False
    """The hop that holds stands between gateway and client, else it is the gateway."""


@dataclass
class Logs:
    """Which logs there are, and how far each clock is ahead, ns."""

    vantages: Sequence[str] = ("client", "engine")
    ahead: dict[str, int] = field(default_factory=dict)
    model: str = "crane-9b"
    streamed: bool | None = None


def served_of(name: str, trip: Trip, ahead: int) -> Served:
    """The engine's side, on its own clock."""
    return Served(
        request_id=name,
        arrived_ns=trip.at_ns + trip.out_ns + trip.inside_ns + ahead,
        queue_ns=trip.queue_ns,
        prefill_ns=trip.prompt * 100_000,
        decode_ns=(trip.tokens - 1) * STEP,
        prompt_tokens=trip.prompt,
        output_tokens=trip.tokens,
        before_ns=2 * MS,
        after_ns=MS // 2,
    )


def write_trips(folder: Path, trips: Sequence[Trip], logs: Logs) -> None:
    """Write the logs of all vantages asked for."""
    client, gateway, engine = [], [], []
    for k, trip in enumerate(trips):
        name = f"trip-{k:04d}"
        one = served_of(name, trip, 0)
        left = [one.first_token_ns + i * STEP for i in range(trip.tokens)]
        held = [trip.hold(i, at) for i, at in enumerate(left)] if trip.hold else left
        passed = left if trip.hold_after else held
        seen = [at + trip.back_ns for at in held]
        usage = openai_usage(trip.prompt, trip.tokens)
        shift = logs.ahead.get("client", 0)
        sent = {"model": logs.model, "route": trip.route, "stream": logs.streamed}
        client += answer(
            name, trip.at_ns + shift,
            [(at - trip.at_ns, "content", CHARS) for at in seen], usage,
            **{key: value for key, value in sent.items() if value is not None},
        )  # fmt: skip
        entered = trip.at_ns + trip.out_ns
        gateway.append(
            request_record(
                name, vantage="gateway", started_ns=entered + logs.ahead.get("gateway", 0),
                durations_ns={"ttft": passed[0] - entered, "e2e": passed[-1] - entered},
                route=trip.route, model=logs.model, usage=usage,
            )
        )  # fmt: skip
        engine.append(served_of(name, trip, logs.ahead.get("engine", 0)))
    files = {"client": client, "gateway": gateway, "engine": spans(engine)}
    write_case(folder, {f"{name}.jsonl": files[name] for name in logs.vantages}, logs.model)


def ways(rng: random.Random, least_ms: float, mean_ms: float) -> tuple[int, int]:
    """A way there and one back: a least time, and some more."""
    out, back = (round((least_ms + rng.expovariate(1 / mean_ms)) * MS) for _ in range(2))
    return out, back


def every(rng: random.Random, start_ns: int, count: int, gap_s: float) -> list[int]:
    """Times of requests, not too even."""
    times, now = [], start_ns
    for _ in range(count):
        now += round(rng.uniform(0.4, 1.6) * gap_s * NS)
        times.append(now)
    return times
