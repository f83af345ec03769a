"""The way between client and server becomes slow.

main: since the middle of the case the path takes 0.3 to 0.5 s each way. Others: one of three
routes; between client and gateway, with and without the engine; a lossy path; for a while only,
with a clock that is a minute behind.

twin: the same case with a steady path and a clock that jumps 0.8 s at the same moment. Innocents:
requests queue in front of the server; long prompts; the server's log tells its wait apart from its
whole.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, openai_usage, request_record
from cases._build import MS, answer, at, expect, fifo_waits, silent, spans, write_case
from cases._path import STEP, Logs, Trip, every, served_of, ways, write_trips

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T0 = at("2026-07-08T21:15:00Z")
ELSEWHERE = [
    "network.fixed-offset", "network.buffered", "queue.admission-limit", "queue.saturation",
    "prefill.long-prompt", "decode.output-growth", "metric.ttft-misread",
]  # fmt: skip
CLEAN = (8, 3)
SERVER = 980 * MS
"""The engine's own time."""

Way = tuple[float, float]


def _trips(
    seed: int,
    count: int,
    path: Callable[[int], Way],
    *,
    route: Callable[[int], str | None] = lambda _: None,
    inside: bool = False,
) -> list[Trip]:
    """Requests whose way is that of ``path``; inside, between the gateway and the engine."""
    rng = random.Random(seed)
    trips = []
    for k, at_ns in enumerate(every(rng, T0, count, 5.0)):
        out, back = ways(rng, *path(k))
        if inside:
            near, _ = ways(rng, *CLEAN)
            trips.append(
                Trip(at_ns=at_ns, route=route(k), out_ns=near, inside_ns=out, back_ns=near + back)
            )
        else:
            trips.append(Trip(at_ns=at_ns, route=route(k), out_ns=out, back_ns=back))
    return trips


def _lost(trips: list[Trip]) -> float:
    """Mean extra of those that are slow, in seconds, against the fastest tenth."""
    outside = sorted(one.out_ns + one.back_ns for one in trips)
    usual = min(outside[len(outside) // 10], 50 * MS)
    slow = [one - usual for one in outside if one - usual >= 0.2 * (SERVER + one)]
    return sum(slow) / len(slow) / NS


def _found(count: int, trips: list[Trip]) -> dict[str, object]:
    return expect("network.slow", "network", count, _lost(trips), "s", must_not=ELSEWHERE)


MAIN = _trips(21, 40, lambda k: (300, 60) if k >= 20 else CLEAN)
ROUTE = _trips(
    22,
    45,
    lambda k: (180, 70) if k % 3 == 0 else CLEAN,
    route=lambda k: ("sin", "fra", "iad")[k % 3],
)
EDGE = _trips(23, 36, lambda k: (250, 50) if k >= 15 else CLEAN)
LOSSY = _trips(24, 40, lambda k: (20, 350) if k >= 10 else CLEAN)
DRIFTING = _trips(25, 60, lambda k: (220, 40) if 20 <= k < 45 else CLEAN)


def main(folder: Path) -> None:
    """Slow since the 21st request."""
    write_trips(folder, MAIN, Logs(ahead={"engine": 410 * MS}))


def twin(folder: Path) -> None:
    """The path stays as it is; the engine's clock jumps."""
    trips = _trips(21, 40, lambda _: CLEAN)
    stream, served = [], []
    for k, trip in enumerate(trips):
        name = f"trip-{k:04d}"
        one = served_of(name, trip, 0)
        seen = [one.first_token_ns + i * STEP + trip.back_ns for i in range(trip.tokens)]
        usage = openai_usage(trip.prompt, trip.tokens)
        chunks = [(at_ns - trip.at_ns, "content", 4) for at_ns in seen]
        stream += answer(name, trip.at_ns, chunks, usage, model="crane-9b")
        served.append(served_of(name, trip, 800 * MS if k >= 20 else 0))
    write_case(folder, {"client.jsonl": stream, "engine.jsonl": spans(served)}, "crane-9b")


def variant_route(folder: Path) -> None:
    """One of three regions."""
    write_trips(folder, ROUTE, Logs())


def variant_edge(folder: Path) -> None:
    """Between client and gateway; all three log."""
    write_trips(folder, EDGE, Logs(vantages=("client", "gateway", "engine")))


def variant_client_and_gateway(folder: Path) -> None:
    """The same without the engine."""
    write_trips(folder, EDGE, Logs(vantages=("client", "gateway"), ahead={"gateway": -2 * NS}))


def variant_lossy(folder: Path) -> None:
    """Mostly fast, now and then a second."""
    write_trips(folder, LOSSY, Logs())


def variant_drift(folder: Path) -> None:
    """For a while; the engine's clock is a minute behind."""
    write_trips(folder, DRIFTING, Logs(ahead={"engine": -60 * NS}))


def innocent_front_queue(folder: Path) -> None:
    """Bursts of twelve in front of a server that lets two in at a time: a queue, no path."""
    rng = random.Random(31)
    arrivals = [T0 + burst * 60 * NS + k * 20 * MS for burst in range(4) for k in range(12)]
    services = [round(rng.uniform(0.9, 1.1) * NS) for _ in arrivals]
    waits = fifo_waits(arrivals, services, 2)
    trips = [
        Trip(at_ns=at_ns, route=None, out_ns=12 * MS + wait, back_ns=10 * MS)
        for at_ns, wait in zip(arrivals, waits, strict=True)
    ]
    write_trips(folder, trips, Logs())


def innocent_long_prompts(folder: Path) -> None:
    """Prompts of twenty times the length: the server's own time."""
    rng = random.Random(32)
    trips = [
        Trip(at_ns=at_ns, route=None, out_ns=out, back_ns=back, prompt=18_000 if k >= 20 else 900)
        for k, at_ns in enumerate(every(rng, T0, 40, 8.0))
        for out, back in [ways(rng, *CLEAN)]
    ]
    write_trips(folder, trips, Logs())


def innocent_wait_apart(folder: Path) -> None:
    """The server's whole begins when it is admitted, its wait is told beside it."""
    rng = random.Random(33)
    client, engine = [], []
    for k, at_ns in enumerate(every(rng, T0, 30, 6.0)):
        wait = round(rng.uniform(1.0, 3.0) * NS) if k >= 12 else 2 * MS
        work = round(rng.uniform(0.9, 1.4) * NS)
        name, usage = f"trip-{k}", openai_usage(800, 60)
        times = {"queue": wait, "prefill": 90 * MS, "decode": work - 90 * MS, "e2e": work}
        engine.append(
            request_record(
                name, vantage="engine", started_ns=at_ns + 9 * MS + wait, durations_ns=times,
                usage=usage, model="crane-9b",
            )
        )  # fmt: skip
        client.append(
            request_record(
                name, vantage="client", started_ns=at_ns, usage=usage, model="crane-9b",
                durations_ns={"e2e": work + wait + 18 * MS},
            )
        )  # fmt: skip
    write_case(folder, {"client.jsonl": client, "engine.jsonl": engine}, "crane-9b")


NOTHING = ["network.slow", "network.fixed-offset", "network.buffered"]
CASES = {
    "main": (main, _found(20, MAIN)),
    "twin": (twin, silent([*ELSEWHERE, "network.slow"])),
    "route": (variant_route, _found(15, ROUTE)),
    "edge": (variant_edge, _found(21, EDGE)),
    "client_and_gateway": (variant_client_and_gateway, _found(21, EDGE)),
    "drift": (variant_drift, _found(25, DRIFTING)),
    "lossy": (variant_lossy, _found(26, LOSSY)),
    "innocent_front_queue": (innocent_front_queue, silent(NOTHING)),
    "innocent_long_prompts": (innocent_long_prompts, silent(NOTHING)),
    "innocent_wait_apart": (innocent_wait_apart, silent(NOTHING)),
}
