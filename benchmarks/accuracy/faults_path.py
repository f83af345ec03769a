"""Faults on the way, in the client, in what is recorded, and in how requests end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draws import even, spread
from injections import change, onset, plain

if TYPE_CHECKING:
    import random

    from draws import World


# --- network -------------------------------------------------------------------------------------


def slow(rng: random.Random, world: World) -> None:
    at, usual, more = onset(rng, world), dict(world["network"]), spread(rng, 150, 900)
    until = at + 0.3 * world["duration_s"] if rng.random() < 0.3 else None
    # A longer way, or a crowded one, whose time varies too.
    crowded = more * even(rng, 0.05, 0.3) if rng.random() < 0.7 else usual["jitter_ms"]
    slow = {"latency_ms": usual["latency_ms"] + more, "jitter_ms": crowded}
    for name, value in slow.items():
        change(world, at, f"network.{name}", value)
        if until is not None:
            change(world, until, f"network.{name}", usual[name])


def fixed_offset(rng: random.Random, world: World) -> None:
    stream = plain(world)
    world["gateway"]["routes"] = [
        {"name": "default"},
        {"name": "far", "timeout_s": spread(rng, 1, 10), "fallback": "default"},
    ]
    part = dict(stream) | {"kind": "far", "route": "far"}
    part["rate_per_s"] = stream["rate_per_s"] * even(rng, 0.2, 0.6)
    world["arrivals"].append(part)
    change(world, rng.choice((0.0, onset(rng, world))), "gateway.routes.far.unreachable", True)  # noqa: FBT003


def buffered(rng: random.Random, world: World) -> None:
    stream = world["arrivals"][0]
    stream["output_tokens"]["mean"] = max(stream["output_tokens"]["mean"], 100)
    size = rng.choice((1_000_000, 1_000_000, 16_384, 32_768))
    change(world, rng.choice((0.0, onset(rng, world))), "gateway.buffer_bytes", size)


# --- metrics and the client ----------------------------------------------------------------------


def misread(rng: random.Random, world: World) -> None:
    world["engine"]["role_chunk"] = rng.choice(("accepted", "first_token", "none"))
    stream = world["arrivals"][0]
    kind = "visible"
    if rng.random() < 0.3:
        # A role chunk before a long prefill, taken for the first token.
        kind, world["engine"]["role_chunk"] = "role", "accepted"
        stream["prompt_tokens"]["mean"] = round(spread(rng, 3000, 9000))
        stream["prompt_tokens"]["most"] = 16_000
        stream["rate_per_s"] = min(stream["rate_per_s"], 0.8)
    else:
        stream["reasoning_share"] = even(rng, 0.4, 0.85)
        stream["output_tokens"]["mean"] = max(150, stream["output_tokens"]["mean"])
    for log in world["logs"]:
        if log["format"] == "gateway":
            log["options"] = {"ttft": kind}


def multi_token(rng: random.Random, world: World) -> None:
    if rng.random() < 0.5:
        world["engine"]["stream_tokens"] = rng.randint(2, 8)
    else:
        world["engine"] |= {"drafts": rng.randint(2, 5), "acceptance": even(rng, 0.6, 0.85)}
        world["engine"]["max_step_tokens"] = 4096
        world["engine"].pop("step", None)


def client_hold(rng: random.Random, world: World) -> None:
    stream = plain(world)
    stream["rate_per_s"] = max(stream["rate_per_s"], 1.0)
    connections = rng.randint(1, 3)
    if rng.random() < 0.5:
        world["client"] = {"connections": connections}
    else:
        world["client"] = {"connections": 200}
        change(world, onset(rng, world), "client.connections", connections)
    world["duration_s"] = min(world["duration_s"], 180.0)


def client_stalled(rng: random.Random, world: World) -> None:
    plain(world)["output_tokens"]["mean"] = round(spread(rng, 120, 300))
    world["client"] = {
        "stall_every_s": even(rng, 3, 12), "stall_ms": spread(rng, 350, 2500),
        "tick_s": rng.choice((0.1, 0.25, 0.5)),
    }  # fmt: skip


# --- errors and trust ----------------------------------------------------------------------------


def errors(rng: random.Random, world: World) -> None:
    at = rng.choice((0.0, onset(rng, world)))
    plain(world)
    change(world, at, "gateway.routes.default.failing", spread(rng, 0.06, 0.5))
    world["client"] = {"retries": rng.randint(0, 1)}


def truncated(rng: random.Random, world: World) -> None:
    stream = world["arrivals"][0]
    stream["output_tokens"]["cv"] = max(0.4, stream["output_tokens"]["cv"])
    limit = max(10, round(stream["output_tokens"]["mean"] * even(rng, 0.5, 1.2)))
    if rng.random() < 0.5:
        stream["max_tokens"] = limit
    else:
        stream["max_tokens"] = 1300
        change(world, onset(rng, world), "arrivals.0.max_tokens", limit)


def clock(rng: random.Random, world: World) -> None:
    skew = spread(rng, 2_000, 300_000) * rng.choice((-1, 1))
    drift = even(rng, -400, 400) if rng.random() < 0.3 else 0.0
    for log in world["logs"]:
        if log["format"] in ("spans", "vllm_log") or log.get("options") == {"vantage": "engine"}:
            log |= {"skew_ms": skew, "drift_ppm": drift}
