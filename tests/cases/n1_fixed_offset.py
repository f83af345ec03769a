"""The same extra time on many requests: a timer that runs out before they go on.

main: on route "east" each request first waits 2.0 s for a target that does not answer; the path
itself takes 10 to 40 ms. Others: only some requests; two constants; the gateway's own log; three
vantages; no round number; every request; few requests; a client and a gateway.

twin: route "far" is a slow path, about as slow there as back: network.slow. Innocents of both
rules: an engine whose queue takes the same second, a clock that is a second ahead.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from cases._build import MS, at, expect, silent
from cases._path import Logs, Trip, every, ways, write_trips

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


T0 = at("2026-06-03T10:40:00Z")
ELSEWHERE = [
    "network.slow", "network.buffered", "queue.admission-limit", "queue.saturation",
    "prefill.long-prompt", "decode.output-growth", "metric.ttft-misread",
]  # fmt: skip


def _trips(
    seed: int,
    count: int,
    extra: Callable[[int, random.Random], int],
    *,
    route: Callable[[int], str | None] = lambda _: None,
    inside: bool = False,
    path: tuple[float, float] = (8, 4),
    tokens: int = 60,
) -> list[Trip]:
    rng = random.Random(seed)
    trips = []
    for k, at_ns in enumerate(every(rng, T0, count, 6.0)):
        out, back = ways(rng, *path)
        more = extra(k, rng)
        within = round(rng.uniform(0.4, 1.4) * MS)
        trips.append(
            Trip(
                at_ns=at_ns, route=route(k), out_ns=out + (0 if inside else more), back_ns=back,
                inside_ns=within + (more if inside else 0), prompt=500 + 37 * k % 400,
                tokens=tokens + 11 * k % 20,
            )
        )  # fmt: skip
    return trips


def _found(count: int, seconds: float) -> dict[str, object]:
    return expect("network.fixed-offset", "network", count, seconds, "s", must_not=ELSEWHERE)


def main(folder: Path) -> None:
    """Half of the requests go over a route whose first target is dead."""
    trips = _trips(
        1, 30, lambda k, _: 2_000 * MS if k % 2 else 0, route=lambda k: "east" if k % 2 else "west"
    )
    write_trips(folder, trips, Logs(ahead={"engine": -340 * MS}))


def twin(folder: Path) -> None:
    """A slow path: 0.4 to 0.6 s there, as much back, never twice the same."""
    rng = random.Random(2)
    trips = [
        Trip(at_ns=at_ns, route="far" if k % 2 else "near", out_ns=out, back_ns=back)
        for k, at_ns in enumerate(every(rng, T0, 32, 5.0))
        for out, back in [ways(rng, 400, 90) if k % 2 else ways(rng, 8, 4)]
    ]
    write_trips(folder, trips, Logs())


def variant_some(folder: Path) -> None:
    """Every third request is tried again after 1.0 s; no route is told."""
    write_trips(folder, _trips(3, 45, lambda k, _: 1_000 * MS if k % 3 == 0 else 0), Logs())


def variant_two_constants(folder: Path) -> None:
    """A lost SYN is sent again after 1 s, the next one after 3 s."""
    trips = _trips(4, 60, lambda k, _: {1: 1_000 * MS, 3: 1_000 * MS, 5: 3_000 * MS}.get(k % 8, 0))
    write_trips(folder, trips, Logs(ahead={"engine": 5 * 1_000 * MS}))


def variant_gateway(folder: Path) -> None:
    """The gateway's own log and the engine's: 0.7 s before the call that is answered."""
    trips = _trips(
        5, 40, lambda k, _: 700 * MS if k % 4 < 2 else 0, inside=True,
        route=lambda k: "blue" if k % 4 < 2 else "green",
    )  # fmt: skip
    write_trips(folder, trips, Logs(vantages=("gateway", "engine")))


def variant_three_vantages(folder: Path) -> None:
    """A fallback after 5.0 s inside the gateway, since the middle of the case."""
    trips = _trips(
        6, 36, lambda k, _: 5_000 * MS if k >= 20 else 0, inside=True, route=lambda _: "blue"
    )
    ahead = {"gateway": 80 * MS, "engine": -9 * MS}
    write_trips(folder, trips, Logs(vantages=("client", "gateway", "engine"), ahead=ahead))


def variant_not_round(folder: Path) -> None:
    """0.86 s on some requests: only the clocks show that it passes before the server begins."""
    trips = _trips(7, 40, lambda k, _: 860 * MS if k % 3 == 1 else 0, route=lambda _: "blue")
    write_trips(folder, trips, Logs(ahead={"engine": 1_234 * MS}))


def variant_all(folder: Path) -> None:
    """Every request of the case waits 3.0 s: nothing shows what the path alone takes."""
    write_trips(folder, _trips(8, 20, lambda _k, _r: 3_000 * MS), Logs())


def variant_few(folder: Path) -> None:
    """Four of nineteen."""
    write_trips(folder, _trips(9, 19, lambda k, _: 1_500 * MS if k % 5 == 2 else 0), Logs())


def variant_client_and_gateway(folder: Path) -> None:
    """A name look-up that waits 5.0 s for the first resolver: between client and gateway."""
    trips = _trips(10, 40, lambda k, _: 5_000 * MS if k % 4 == 0 else 0)
    write_trips(folder, trips, Logs(vantages=("client", "gateway")))


def variant_all_half_a_second(folder: Path) -> None:
    """Every request waits 0.5 s on a path of 54 ms: as steady as no crowded path is."""
    trips = _trips(14, 30, lambda _k, _r: 500 * MS, path=(27, 1))
    write_trips(folder, trips, Logs())


def innocent_edge(folder: Path) -> None:
    """A path becomes slow: those on their way at that moment are late one way only, and alike."""
    rng = random.Random(15)
    trips = []
    for k, at_ns in enumerate(every(rng, T0, 60, 5.0)):
        out, back = ways(rng, *((300, 60) if k >= 24 else (8, 4)))
        if 20 <= k < 24:
            out, back = round(rng.uniform(296, 304) * MS), 9 * MS
        trips.append(Trip(at_ns=at_ns, route=None, out_ns=out, back_ns=back))
    write_trips(folder, trips, Logs())


NOTHING = [*ELSEWHERE, "network.fixed-offset"]


def innocent_queue(folder: Path) -> None:
    """The engine's queue takes the same second of every third request."""
    rng = random.Random(11)
    trips = [
        Trip(
            at_ns=at_ns, route=None, out_ns=out, back_ns=back,
            queue_ns=1_000 * MS if k % 3 == 0 else 2 * MS,
        )
        for k, at_ns in enumerate(every(rng, T0, 30, 5.0))
        for out, back in [ways(rng, 8, 4)]
    ]  # fmt: skip
    write_trips(folder, trips, Logs())


def innocent_skew(folder: Path) -> None:
    """The engine's clock is exactly a second ahead."""
    write_trips(folder, _trips(12, 30, lambda _k, _r: 0), Logs(ahead={"engine": 1_000 * MS}))


def innocent_jitter(folder: Path) -> None:
    """A lossy path: 0.3 to 3 s, never the same."""
    trips = _trips(13, 40, lambda k, r: round(r.uniform(300, 3_000) * MS) if k % 2 else 0)
    write_trips(folder, trips, Logs())


CASES = {
    "main": (main, _found(15, 2.0)),
    "twin": (twin, silent(["network.fixed-offset", "network.buffered", "trust.clock"])),
    "some": (variant_some, _found(15, 1.0)),
    "two_constants": (variant_two_constants, _found(23, (16 * 1 + 7 * 3) / 23)),
    "gateway": (variant_gateway, _found(20, 0.7)),
    "three_vantages": (variant_three_vantages, _found(16, 5.0)),
    "not_round": (variant_not_round, _found(13, 0.86)),
    "all": (variant_all, _found(20, 3.0)),
    "few": (variant_few, _found(4, 1.5)),
    "client_and_gateway": (variant_client_and_gateway, _found(10, 5.0)),
    "all_half_a_second": (variant_all_half_a_second, _found(30, 0.554)),
    "innocent_edge": (innocent_edge, silent(["network.fixed-offset", "network.buffered"])),
    "innocent_queue": (innocent_queue, silent([*NOTHING, "trust.clock"])),
    "innocent_skew": (innocent_skew, silent(NOTHING)),
    "innocent_jitter": (innocent_jitter, silent(["network.fixed-offset", "network.buffered"])),
}
