"""What several faults do to a drawn world."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draws import even, spread

if TYPE_CHECKING:
    import random

    from draws import World


def onset(rng: random.Random, world: World) -> float:
    return even(rng, 0.35, 0.6) * world["duration_s"]


def change(world: World, at: float, key: str, value: object) -> None:
    world["change"].append({"at_s": round(at, 3), "key": key, "value": value})


def plain(world: World) -> World:
    """The stream of arrivals without sessions."""
    stream = world["arrivals"][0]
    if stream.get("history"):
        stream["rate_per_s"] *= stream["turns"]["mean"]
    stream["history"] = False
    stream.pop("turns", None)
    world["gateway"]["routes"] = [{"name": "default"}]
    return stream


def means(world: World) -> tuple[float, float]:
    stream = world["arrivals"][0]
    return stream["prompt_tokens"]["mean"] + stream["system_tokens"], stream["output_tokens"][
        "mean"
    ]


def burst(rng: random.Random, world: World, count: int, **more: object) -> World:
    """So many requests of the usual kind at once from the middle on."""
    stream = plain(world)
    burst = {
        **stream, "kind": "burst", "process": rng.choice(("even", "poisson")),
        "rate_per_s": spread(rng, 6, 40), "from_s": onset(rng, world), "most": count, **more,
    }  # fmt: skip
    stream["kind"] = "calm"
    stream["rate_per_s"] = min(stream["rate_per_s"], 1.2)
    world["duration_s"] = min(world["duration_s"], 220.0)
    burst["from_s"] = min(burst["from_s"], world["duration_s"] * 0.6)
    world["arrivals"].append(burst)
    return burst
