"""Faults, each a mechanism of the simulator with a drawn severity, one for each play.

A fault changes a drawn world in place. Whether the world then shows it is for its truth to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import faults_engine as engine
import faults_path as path
from draws import MIXES, logs_of, sane
from innocents import disturb

if TYPE_CHECKING:
    import random

    from draws import World

Inject = Callable[["random.Random", "World"], None]


@dataclass(frozen=True)
class Fault:
    """How a fault is put into a world, and which logs such worlds write (weights add up to 20)."""

    inject: Inject
    mixes: dict[str, int]
    replicas: int | None = 1
    """So many, or as drawn."""


FAULTS: dict[str, Fault] = {
    "queue.admission-limit": Fault(
        engine.admission, {"spans+engine": 9, "all": 9, "stream+spans": 2}
    ),
    "queue.saturation": Fault(engine.saturation, {"spans+engine": 9, "all": 9, "stream+spans": 2}),
    "queue.mislabelled": Fault(engine.mislabelled, {"stream+spans": 9, "all": 9, "stream": 2}),
    "queue.head-of-line": Fault(
        engine.head_of_line, {"spans+engine": 7, "all": 7, "stream+spans": 6}
    ),
    "queue.rate-limited": Fault(
        engine.rate_limited,
        {"stream": 6, "all": 5, "client-records": 5, "stream+spans": 3, "spans+engine": 1},
        None,
    ),
    "queue.imbalance": Fault(engine.imbalance, {"spans+engine": 9, "all": 9, "stream+spans": 2}, 2),
    "load.idle-unload": Fault(engine.idle_unload, {"ollama": 12, "ollama+ollama_log": 8}),
    "load.cold-start": Fault(engine.cold_start, {"ollama": 12, "ollama+ollama_log": 8}),
    "prefill.long-prompt": Fault(
        engine.long_prompt,
        {"stream": 4, "stream+spans": 5, "spans+engine": 4, "all": 4, "records": 3},
        None,
    ),
    "network.slow": Fault(
        path.slow,
        {"stream+spans": 8, "all": 7, "client-records+engine-records": 3, "stream": 2},
        None,
    ),
    "network.fixed-offset": Fault(
        path.fixed_offset,
        {"stream+spans": 7, "all": 7, "client-records+engine-records": 4, "stream": 2},
        None,
    ),
    "network.buffered": Fault(path.buffered, {"stream+spans": 10, "all": 8, "stream": 2}, None),
    "metric.ttft-misread": Fault(
        path.misread, {"stream+gateway": 9, "stream+spans+gateway": 9, "gateway": 2}, None
    ),
    "metric.multi-token-chunks": Fault(
        path.multi_token, {"stream": 8, "stream+spans": 5, "all": 6, "client-records": 1}, None
    ),
    "metric.client-hold": Fault(
        path.client_hold, {"stream": 9, "stream+spans": 5, "all": 5, "client-records": 1}, None
    ),
    "client.stalled": Fault(path.client_stalled, {"stream": 8, "stream+spans": 6, "all": 6}, None),
    "decode.prefill-interference": Fault(
        engine.interference, {"stream+spans": 9, "all": 9, "stream": 2}
    ),
    "decode.preemption": Fault(
        engine.preemption, {"all": 12, "stream+engine": 3, "stream+spans": 3, "spans+engine": 2}
    ),
    "decode.process-pause": Fault(
        engine.pause, {"stream+emit": 6, "stream+emit+spans": 6, "stream+spans": 5, "stream": 3}
    ),
    "decode.output-growth": Fault(
        engine.growth,
        {"stream": 4, "stream+spans": 5, "spans+engine": 4, "all": 4, "records": 3},
        None,
    ),
    "errors.rate": Fault(
        path.errors, {"stream": 5, "stream+spans": 5, "all": 5, "client-records": 5}, None
    ),
    "errors.truncated-output": Fault(
        path.truncated, {"stream": 6, "stream+spans": 5, "all": 5, "client-records": 4}, None
    ),
    "trust.clock": Fault(
        path.clock, {"stream+spans": 10, "all": 7, "client-records+engine-records": 3}, None
    ),
}
"""Rule -> how its fault is made. Most logs can show the fault, some cannot: there the right answer
is ``cannot say``."""


def mix_of(fault: Fault, number: int) -> str:
    """The mix of the world of this number: each of twenty worlds has its own."""
    told = [mix for mix, times in fault.mixes.items() for _ in range(times)]
    # Seven has no factor in common with twenty: any run of worlds has nearly the same shares.
    return told[7 * number % len(told)]


def draw(rng: random.Random, rule: str | None, number: int) -> World:
    """A world with a fault, or without any; ``logs`` and all."""
    world = sane(rng)
    if rule is None:
        mix = MIXES[number % len(MIXES)]
        world["logs"] = logs_of(rng, world, mix)
        world["mix"] = mix
        disturb(rng, world, number)
        return world
    fault = FAULTS[rule]
    if fault.replicas is not None:
        count = fault.replicas if fault.replicas == 1 else rng.randint(fault.replicas, 4)
        _resize(world, count)
    mix = mix_of(fault, number)
    if fault.inject in (engine.idle_unload, engine.cold_start):
        fault.inject(rng, world)
        world["logs"] = logs_of(rng, world, mix)
    else:
        world["logs"] = logs_of(rng, world, mix)
        fault.inject(rng, world)
    world["mix"] = mix
    return world


def _resize(world: World, count: int) -> None:
    stream = world["arrivals"][0]
    stream["rate_per_s"] *= count / len(world["replicas"])
    world["replicas"] = [{"name": f"engine-{number}"} for number in range(count)]
