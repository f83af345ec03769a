"""Two machines whose clocks disagree, though nothing else is wrong.

main: the engine's clock is 1.7 s behind: as the stamps stand, the server began before it was asked.
Others: a drift of 150 ppm over hours; a zone; a jump; a gateway in between; only a gateway and an
engine; lost records.

twin: the same requests, and clocks that are 4 ms apart. Innocent: a path that takes 0.5 s there and
nothing back, which leaves room for clocks that agree.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS, openai_usage, request_record, status_lines
from cases._build import MS, at, expect, silent, spans, write_case
from cases._path import Logs, Trip, every, served_of, ways, write_trips

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T0 = at("2026-05-02T06:30:00Z")
ELSEWHERE = [
    "network.slow", "network.fixed-offset", "network.buffered", "queue.admission-limit",
    "queue.saturation", "prefill.long-prompt", "trust.contradictory-durations",
]  # fmt: skip
COUNT = 32


def _trips(seed: int, path: Callable[[int], tuple[int, int]] | None = None) -> list[Trip]:
    rng = random.Random(seed)
    trips = []
    for k, at_ns in enumerate(every(rng, T0, COUNT, 9.0)):
        out, back = path(k) if path else ways(rng, 6, 3)
        trips.append(Trip(at_ns=at_ns, route=None, out_ns=out, back_ns=back, prompt=600 + 7 * k))
    return trips


def _found(seconds: float, count: int = COUNT) -> dict[str, Any]:
    return expect("trust.clock", "none", count, seconds, "s", must_not=ELSEWHERE)


def main(folder: Path) -> None:
    """1.7 s behind."""
    write_trips(folder, _trips(61), Logs(ahead={"engine": -1_700 * MS}))


def twin(folder: Path) -> None:
    """4 ms: two clocks that keep time."""
    write_trips(folder, _trips(61), Logs(ahead={"engine": 4 * MS}))


def variant_zone(folder: Path) -> None:
    """The engine's host writes local time, two hours ahead, as if it were UTC."""
    write_trips(folder, _trips(62), Logs(ahead={"engine": 7_200 * NS}))


def variant_gateway(folder: Path) -> None:
    """A gateway in between is 9 s ahead, the engine is right."""
    logs = Logs(vantages=("client", "gateway"), ahead={"gateway": 9 * NS})
    write_trips(folder, _trips(63), logs)


def variant_no_client(folder: Path) -> None:
    """A gateway and an engine."""
    logs = Logs(vantages=("gateway", "engine"), ahead={"engine": 350 * MS})
    write_trips(folder, _trips(64), logs)


def _records(folder: Path, ahead: Callable[[int], int], lost: Callable[[int], bool]) -> None:
    """Request records of client and engine; ``ahead`` of the time since the beginning."""
    rng = random.Random(65)
    client, engine = [], []
    for k in range(60):
        now = T0 + k * 240 * NS + rng.randrange(100 * NS)
        out, back = ways(rng, 6, 3)
        work = rng.randrange(900, 1_500) * MS
        usage = openai_usage(700, 50)
        started = now + out
        records = {"client": (client, now, work + out + back),
                   "engine": (engine, started + ahead(started - T0), work)}  # fmt: skip
        for vantage, (lines, start, e2e) in records.items():
            if vantage == "client" or not lost(k):
                lines.append(
                    request_record(
                        f"r-{k}", vantage=vantage, started_ns=start, durations_ns={"e2e": e2e},
                        usage=usage, model="crane-9b",
                    )
                )  # fmt: skip
    write_case(folder, {"client.jsonl": client, "engine.jsonl": engine}, "crane-9b")


DRIFT_PPM = 150


def variant_drift(folder: Path) -> None:
    """0.5 s ahead, and 0.54 s more every hour; a fifth of the engine's records is lost."""
    _records(folder, lambda since: NS // 2 + since * DRIFT_PPM // 1_000_000, lambda k: k % 5 == 2)


def variant_jump(folder: Path) -> None:
    """Right at first, 20 s ahead since the middle."""
    _records(folder, lambda since: 20 * NS if since >= 7_200 * NS else 0, lambda _: False)


def innocent_one_way(folder: Path) -> None:
    """Half a second there, nothing back: nobody can say that the clocks are off."""
    rng = random.Random(66)

    def path(_: int) -> tuple[int, int]:
        return round((500 + rng.expovariate(1 / 30)) * MS), round((2 + rng.random()) * MS)

    write_trips(folder, _trips(66, path), Logs())


def variant_status_zone(folder: Path) -> None:
    """Spans in UTC; the engine's text log in the time of a host seven hours on."""
    trips = _trips(67)
    served = [served_of(f"trip-{k:04d}", trip, 0) for k, trip in enumerate(trips)]
    hours = 7 * 3_600 * NS
    log = status_lines(
        [replace(one, arrived_ns=one.arrived_ns + hours) for one in served],
        first_ns=T0 + hours, last_ns=served[-1].last_token_ns + hours + 20 * NS, every_ns=5 * NS,
        capacity_tokens=300_000,
    )  # fmt: skip
    write_case(folder, {"spans.jsonl": spans(served), "vllm.log": log}, "crane-9b")


DRIFTED = [k for k in range(60) if k % 5 != 2]
CASES = {
    "main": (main, _found(1.7)),
    "twin": (twin, silent([*ELSEWHERE, "trust.clock"])),
    "zone": (variant_zone, _found(7_200)),
    "gateway": (variant_gateway, _found(9.0)),
    "no_client": (variant_no_client, _found(0.35)),
    "drift": (
        variant_drift,
        _found(sum(0.5 + (240 * k + 50) * DRIFT_PPM / 1e6 for k in DRIFTED) / 48, 48),
    ),
    "jump": (variant_jump, _found(20.0, 30)),
    "status_zone": (variant_status_zone, _found(7 * 3_600)),
    "innocent_one_way": (innocent_one_way, silent(["trust.clock", "network.buffered"])),
}
