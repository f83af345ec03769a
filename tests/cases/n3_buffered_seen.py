"""A hop that holds streams back, as few logs show it.

main: only the client's log. Over "edge" all tokens of an answer come within 2 ms, over "lan" as
they are made: suspected, and as large as the other route's pace says. Others: client and gateway; a
hop behind the gateway; all three; pieces by size and by time.

twin: the same two routes, answers of five tokens. Innocents: a service that flushes every 120 ms,
seen from one end and from both; an answer that nobody asked for as a stream.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS
from cases._build import MS, US, at, expect, silent
from cases._path import STEP, Logs, Trip, every, served_of, ways, write_trips

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T0 = at("2026-08-19T04:05:00Z")
ELSEWHERE = [
    "network.slow", "network.fixed-offset", "queue.admission-limit", "queue.saturation",
    "prefill.long-prompt", "metric.ttft-misread", "trust.faster-than-physics",
    "decode.process-pause", "decode.prefill-interference", "decode.preemption",
]  # fmt: skip
TOKENS = 140
COUNT = 24
GAP = 12 * US


def _whole(tokens: int) -> Callable[[int, int], int]:
    """Everything when the last token is there."""
    return lambda i, left: left + (tokens - 1 - i) * STEP + i * GAP


def _pieces(size: int, tokens: int = TOKENS) -> Callable[[int, int], int]:
    """So many tokens at a time; the last piece when the answer ends."""
    return lambda i, left: (
        left + (min((i // size + 1) * size, tokens) - 1 - i) * STEP + i % size * GAP
    )


def _every(period: int) -> Callable[[int, int], int]:
    """What there is, each time a clock strikes."""
    return lambda i, left: -(-left // period) * period + i % 8 * US


def _trips(
    seed: int,
    hold: Callable[[int, int], int],
    *,
    tokens: int = TOKENS,
    all_of_them: bool = False,
    after: bool = False,
) -> list[Trip]:
    rng = random.Random(seed)
    trips = []
    for k, at_ns in enumerate(every(rng, T0, COUNT, 4.0)):
        out, back = ways(rng, 5, 2)
        held = all_of_them or k % 2 == 1
        trips.append(
            Trip(
                at_ns=at_ns, route="edge" if held else "lan", out_ns=out, back_ns=back,
                tokens=tokens, hold=hold if held else None, hold_after=after,
            )
        )  # fmt: skip
    return trips


def _found(count: int, held: int) -> dict[str, object]:
    return expect("network.buffered", "network", count, held / NS, "s", must_not=ELSEWHERE)


WHOLE = (TOKENS - 1) * (STEP - GAP)
ALONE = Logs(vantages=("client",), streamed=True)


def main(folder: Path) -> None:
    """Only the client's log, and another route to compare with."""
    write_trips(folder, _trips(41, _whole(TOKENS)), ALONE)


def twin(folder: Path) -> None:
    """Five tokens: one packet."""
    write_trips(folder, _trips(42, _whole(5), tokens=5), ALONE)


def variant_client_and_gateway(folder: Path) -> None:
    """The gateway's own times are late as well: only the burst is seen."""
    logs = Logs(vantages=("client", "gateway"), streamed=True, ahead={"gateway": 700 * MS})
    write_trips(folder, _trips(43, _whole(TOKENS)), logs)


def variant_behind_the_gateway(folder: Path) -> None:
    """The gateway streamed; what stands before it does not."""
    logs = Logs(vantages=("client", "gateway"), streamed=True)
    write_trips(folder, _trips(44, _whole(TOKENS), after=True), logs)


def variant_three_vantages(folder: Path) -> None:
    """All three log, every answer is held."""
    logs = Logs(vantages=("client", "gateway", "engine"), ahead={"engine": 3 * NS})
    write_trips(folder, _trips(45, _whole(TOKENS), all_of_them=True), logs)


def variant_by_size(folder: Path) -> None:
    """Forty-five tokens at a time."""
    write_trips(folder, _trips(46, _pieces(45)), Logs())


BY_TIME = _trips(47, _every(1_400 * MS))


def variant_by_time(folder: Path) -> None:
    """A hop that passes on what it has every 1.4 s."""
    write_trips(folder, BY_TIME, Logs())


def _late_by_time() -> list[int]:
    """How much later the first token comes than the last, where that is no service's own flush."""
    late = []
    for trip in BY_TIME:
        if trip.hold is not None:
            one = served_of("", trip, 0)
            last = one.first_token_ns + (trip.tokens - 1) * STEP
            first = trip.hold(0, one.first_token_ns) - one.first_token_ns
            late.append(first - (trip.hold(trip.tokens - 1, last) - last))
    return [one for one in late if one >= 250 * MS]


def innocent_service_bursts(folder: Path) -> None:
    """A hosted service flushes every 120 ms; both ends log."""
    write_trips(folder, _trips(48, _every(120 * MS), all_of_them=True), Logs())


def innocent_service_bursts_alone(folder: Path) -> None:
    """The same, seen at the client alone."""
    write_trips(folder, _trips(49, _every(120 * MS), all_of_them=True), ALONE)


def innocent_not_streamed(folder: Path) -> None:
    """Nobody asked for a stream."""
    logs = Logs(vantages=("client",), streamed=False)
    write_trips(folder, _trips(50, _whole(TOKENS)), logs)


LATE = _late_by_time()
CASES = {
    "main": (main, _found(COUNT // 2, WHOLE)),
    "twin": (twin, silent([*ELSEWHERE, "network.buffered"])),
    "client_and_gateway": (variant_client_and_gateway, _found(COUNT // 2, WHOLE)),
    "behind_the_gateway": (variant_behind_the_gateway, _found(COUNT // 2, WHOLE)),
    "three_vantages": (variant_three_vantages, _found(COUNT, WHOLE)),
    "by_size": (variant_by_size, _found(COUNT // 2, 44 * STEP)),
    "by_time": (variant_by_time, _found(len(LATE), sum(LATE) // len(LATE))),
    "innocent_service_bursts": (innocent_service_bursts, silent([*ELSEWHERE, "network.buffered"])),
    "innocent_service_bursts_alone": (
        innocent_service_bursts_alone, silent([*ELSEWHERE, "network.buffered"]),
    ),
    "innocent_not_streamed": (innocent_not_streamed, silent([*ELSEWHERE, "network.buffered"])),
}  # fmt: skip
