"""Faults of an engine: its queue, its loads, its prefill and decode."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from draws import even, spread
from injections import burst, change, means, onset, plain

if TYPE_CHECKING:
    import random

    from draws import World


# --- queue ---------------------------------------------------------------------------------------


def admission(rng: random.Random, world: World) -> None:
    limit = rng.randint(4, 12)
    world["engine"] |= {"max_running": limit, "kv_blocks": 30_000}
    if rng.random() < 0.3:
        # The limit is lowered, and the same traffic waits.
        stream = plain(world)
        stream["rate_per_s"] = spread(rng, 1.5, 4)
        world["engine"]["max_running"] = 64
        change(world, onset(rng, world), "engine.max_running", rng.randint(2, 5))
        return
    burst(rng, world, rng.randint(4 * limit, 8 * limit))


def saturation(rng: random.Random, world: World) -> None:
    prompt, output = means(world)
    if prompt < 900:
        world["arrivals"][0]["prompt_tokens"]["mean"] = prompt = round(spread(rng, 900, 3000))
    burst(rng, world, rng.randint(30, 80))
    room = rng.randint(4, 10)
    largest = 6000 + world["arrivals"][0]["system_tokens"] + 1200
    blocks = max(math.ceil(room * (prompt + output) / 16), math.ceil(largest / 16))
    world["engine"] |= {"kv_blocks": blocks, "max_running": 256}


def mislabelled(rng: random.Random, world: World) -> None:
    stream = plain(world)
    world["engine"]["grammar_ms"] = spread(rng, 300, 3000)
    part = dict(stream)
    part |= {
        "kind": "structured", "schemas": 100_000, "response_format": "json_schema",
        "rate_per_s": stream["rate_per_s"] * even(rng, 0.15, 0.5),
        "from_s": rng.choice((0.0, onset(rng, world))),
    }  # fmt: skip
    world["arrivals"].append(part)


def head_of_line(rng: random.Random, world: World) -> None:
    stream = plain(world)
    stream["rate_per_s"] = spread(rng, 2, 6)
    world["duration_s"] = min(world["duration_s"], 120.0)
    long = spread(rng, 20_000, 70_000)
    world["engine"] |= {"max_step_tokens": 2048, "kv_blocks": 30_000}
    if "step" in world["engine"]:
        world["engine"]["step"]["per_prompt_token_us"] = spread(rng, 40, 90)
    world["arrivals"].append({
        "kind": "long", "process": "even", "rate_per_s": spread(rng, 0.04, 0.1),
        "from_s": onset(rng, world) * 0.5, "most": rng.randint(2, 5),
        "prompt_tokens": {"mean": long, "cv": 0.1}, "output_tokens": {"mean": 60, "cv": 0.3},
    })  # fmt: skip


def rate_limited(rng: random.Random, world: World) -> None:
    stream = plain(world)
    stream["rate_per_s"] = max(stream["rate_per_s"], 1.0)
    limit = stream["rate_per_s"] * even(rng, 0.6, 0.95)
    world["gateway"] |= {"rate_burst": rng.randint(3, 12), "retry_after_s": even(rng, 0.5, 4)}
    change(world, rng.choice((0.0, onset(rng, world))), "gateway.rate_per_s", limit)
    world["client"] = {"retries": rng.randint(3, 8), "backoff_s": even(rng, 0.3, 2)}


def imbalance(rng: random.Random, world: World) -> None:
    stream = plain(world)
    names = [one["name"] for one in world["replicas"]]
    stream["rate_per_s"] = spread(rng, 1.5, 3.5)
    stream["output_tokens"]["mean"] = max(stream["output_tokens"]["mean"], 120)
    world["engine"]["max_running"] = rng.randint(4, 8)
    world["engine"]["kv_blocks"] = 30_000
    if rng.random() < 0.5:
        change(world, onset(rng, world), "gateway.routes.default.replicas", [rng.choice(names)])
        return
    # Two tenants with a route each: one has far more to ask, and one replica of its own.
    small = dict(stream) | {"kind": "small", "route": "small"}
    small["rate_per_s"] = stream["rate_per_s"] * even(rng, 0.1, 0.25)
    world["arrivals"].append(small)
    world["gateway"]["routes"] = [
        {"name": "default", "replicas": names[:1]}, {"name": "small", "replicas": names[1:]},
    ]  # fmt: skip


# --- loads ---------------------------------------------------------------------------------------


def _ollama(rng: random.Random, world: World) -> World:
    world["replicas"] = [{"name": "engine-0"}]
    world["engine"] = {
        "kind": "ollama", "max_running": rng.choice((1, 2, 4)), "kv_blocks": 4000,
        "load_s": spread(rng, 2, 15), "noise": even(rng, 0, 0.04),
        "step": {
            "fixed_ms": spread(rng, 9, 40), "per_prompt_token_us": spread(rng, 100, 500),
        },
    }  # fmt: skip
    world["network"] = {"latency_ms": even(rng, 0.1, 2)}
    stream = {
        "process": "even", "rate_per_s": 0.01, "history": False,
        "prompt_tokens": {"mean": round(spread(rng, 100, 600)), "cv": 0.3, "least": 16},
        "output_tokens": {"mean": round(spread(rng, 40, 150)), "cv": 0.3, "least": 8},
    }  # fmt: skip
    world["arrivals"] = [stream]
    return stream


def idle_unload(rng: random.Random, world: World) -> None:
    stream = _ollama(rng, world)
    idle = spread(rng, 90, 400)
    world["engine"]["idle_unload_s"] = idle
    stream["turns"] = {"mean": rng.randint(3, 8), "cv": 0.3, "least": 2}
    stream["think_s"] = {"mean": even(rng, 8, 25), "cv": 0.5, "most": idle * 0.8}
    stream["process"] = rng.choice(("even", "poisson"))
    stream["rate_per_s"] = 1 / (idle * even(rng, 1.6, 3) + 200)
    world["duration_s"] = rng.randint(8, 14) / stream["rate_per_s"]


def cold_start(rng: random.Random, world: World) -> None:
    """Models that nobody used before, each loaded on the path of its first requests."""
    stream = _ollama(rng, world)
    count = rng.randint(1, 3)
    names = [f"engine-{number}" for number in range(count)]
    world["replicas"] = [{"name": name} for name in names]
    world["gateway"]["routes"] = [
        {"name": name if number else "default", "replicas": [name]}
        for number, name in enumerate(names)
    ]
    world["engine"] |= {"load_s": spread(rng, 5, 40), "max_running": 16}
    stream |= {"rate_per_s": even(rng, 0.2, 0.5), "process": rng.choice(("even", "poisson"))}
    stream["output_tokens"]["mean"] = 40
    world["duration_s"] = 300.0
    for number, name in enumerate(names[1:], 1):
        world["arrivals"].append({
            **stream, "kind": f"model-{number}", "model": f"other-{number}", "route": name,
            "from_s": even(rng, 20, 150),
        })  # fmt: skip


# --- prefill -------------------------------------------------------------------------------------


def long_prompt(rng: random.Random, world: World) -> None:
    stream = plain(world)
    stream["rate_per_s"] = min(stream["rate_per_s"], 1.0)
    usual = stream["prompt_tokens"]["mean"] + stream["system_tokens"]
    long = round(max(usual * spread(rng, 5, 12), 5000))
    stream["prompt_tokens"]["cv"] = min(stream["prompt_tokens"]["cv"], 0.5)
    world["engine"] |= {"max_step_tokens": 8192, "kv_blocks": 60_000}
    if rng.random() < 0.5:
        stream["prompt_tokens"]["most"] = 40_000
        change(world, onset(rng, world), "arrivals.0.prompt_tokens.mean", long)
        return
    part = {**stream, "prompt_tokens": {"mean": long, "cv": 0.4}, "kind": "documents"}
    part["rate_per_s"] = stream["rate_per_s"] * even(rng, 0.1, 0.3)
    world["arrivals"].append(part)


# --- decode --------------------------------------------------------------------------------------


def _streams(rng: random.Random, world: World, rate: float) -> World:
    stream = plain(world)
    stream["rate_per_s"] = rate
    stream["output_tokens"] = {"mean": round(spread(rng, 200, 450)), "cv": 0.4, "least": 40}
    world["duration_s"] = min(world["duration_s"], even(rng, 70, 130))
    return stream


def interference(rng: random.Random, world: World) -> None:
    _streams(rng, world, spread(rng, 0.7, 2))
    budget = rng.choice((4096, 8192))
    world["engine"] |= {"max_step_tokens": budget, "kv_blocks": 60_000}
    if "step" in world["engine"]:
        world["engine"]["step"]["per_prompt_token_us"] = spread(rng, 50, 110)
    world["arrivals"].append({
        "kind": "document", "process": "even", "rate_per_s": spread(rng, 0.04, 0.1),
        "from_s": even(rng, 10, 30), "most": rng.randint(1, 5),
        "prompt_tokens": {"mean": spread(rng, 25_000, 90_000), "cv": 0.1},
        "output_tokens": rng.choice((1, 40)),
    })  # fmt: skip


def preemption(rng: random.Random, world: World) -> None:
    stream = _streams(rng, world, spread(rng, 1.2, 2.5))
    stream["system_tokens"] = 0
    prompt = round(spread(rng, 600, 2500))
    stream["prompt_tokens"] = {"mean": prompt, "cv": 0.2, "least": 100, "most": 4000}
    stream["output_tokens"]["mean"] = output = round(spread(rng, 300, 600))
    stream["output_tokens"]["most"] = 1500
    world["engine"] |= {
        "prefix_cache": rng.random() < 0.3, "status_s": 1.0, "max_running": 64,
        "kv_blocks": max(350, math.ceil(rng.randint(5, 8) * (prompt + 0.6 * output) / 16)),
    }  # fmt: skip


def pause(rng: random.Random, world: World) -> None:
    _streams(rng, world, spread(rng, 0.8, 2))
    world["engine"] |= {"pause_every_s": even(rng, 3, 12), "pause_ms": spread(rng, 300, 2000)}


def growth(rng: random.Random, world: World) -> None:
    stream = world["arrivals"][0]
    stream["output_tokens"]["cv"] = min(0.5, stream["output_tokens"]["cv"])
    more = round(stream["output_tokens"]["mean"] * even(rng, 2, 5))
    stream["output_tokens"]["most"] = 4000
    change(world, onset(rng, world), "arrivals.0.output_tokens.mean", more)
