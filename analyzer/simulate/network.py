"""Paths that messages take: latency, jitter, losses that stall a connection, proxies that buffer.

All of them keep the order of one connection, so a late message holds up what follows it.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence

from analyzer.simulate.outcome import Cause
from analyzer.simulate.world import NS_PER_MS, Network

EVENT_BYTES, TOKEN_BYTES = 176, 4
"""Envelope of one streamed event, and what a token adds to it."""


def dice(seed: int, key: str) -> random.Random:
    """Randomness of one thing alone, whatever else happens in the world."""
    return random.Random((seed << 32) ^ zlib.crc32(key.encode()))  # noqa: S311 - a simulation


def is_plain(network: Network) -> bool:
    """Whether every message takes the same time."""
    return not (network.jitter_ms or network.loss)


def one_way(network: Network, rng: random.Random | None) -> int:
    """Time of a single message."""
    base = round(network.latency_ms * NS_PER_MS)
    if rng is None or is_plain(network):
        return base
    extra = rng.expovariate(1 / network.jitter_ms) if network.jitter_ms else 0.0
    if network.loss and rng.random() < network.loss:
        extra += network.stall_ms
    return base + round(extra * NS_PER_MS)


def delivered(
    times: Sequence[int], network: Network, rng: random.Random | None
) -> tuple[list[int], list[Cause]]:
    """When messages sent at ``times`` arrive, in order, and the losses that held them up."""
    base = round(network.latency_ms * NS_PER_MS)
    if rng is None or is_plain(network):
        return [time + base for time in times], []
    rate = 1 / (network.jitter_ms * NS_PER_MS) if network.jitter_ms else 0.0
    loss, stall = network.loss, round(network.stall_ms * NS_PER_MS)
    arrived: list[int] = []
    causes: list[Cause] = []
    last = 0
    for time in times:
        at = time + base
        if rate:
            at += int(rng.expovariate(rate))
        if loss and rng.random() < loss:
            # The connection delivers nothing until the lost message came again.
            causes.append(Cause("network_stall", at, at + stall, stall))
            at += stall
        last = at if at > last else last
        arrived.append(last)
    return arrived, causes


def buffered(
    times: Sequence[int], tokens: Sequence[int], hold_bytes: int, *, whole: bool = True
) -> list[int]:
    """When a proxy passes messages on that waits for so many bytes, or for the end.

    Without an end, those that wait never leave.
    """
    left: list[int] = []
    held = waiting = 0
    for time, count in zip(times, tokens, strict=True):
        held += EVENT_BYTES + TOKEN_BYTES * count
        waiting += 1
        if held >= hold_bytes:
            left += [time] * waiting
            held = waiting = 0
    return left + [times[-1]] * waiting if waiting and whole else left
