"""Worlds drawn by seed: load, lengths, cache, sessions, noise, replicas, and the logs they write.

A world is a table as a TOML file gives it. What is drawn here has no fault; ``faults.py`` puts one
in. The same seed gives the same world, whatever else is drawn.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random

World = dict[str, Any]

MIXES = ("stream", "stream+spans", "spans+engine", "all", "records")
"""Which logs there are: the client's stream events, the engine's spans, its status lines, all three
and the gateway's records, or request records alone (of the client, of the engine, or of both)."""


def spread(rng: random.Random, low: float, high: float) -> float:
    """Even on a logarithmic scale, three digits."""
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")


def even(rng: random.Random, low: float, high: float) -> float:
    """Even, three digits."""
    return float(f"{rng.uniform(low, high):.3g}")


def sane(rng: random.Random) -> World:
    """A world without any fault, and without logs."""
    count = rng.choices((1, 2, 3), (6, 3, 1))[0]
    requests = rng.randint(140, 320)
    rate = spread(rng, 0.4, 2.2) * count
    world: World = {
        "name": "drawn",
        "start": f"2026-0{rng.randint(2, 6)}-{rng.randint(10, 27)}T{rng.randint(0, 23):02d}:00:00Z",
        "duration_s": float(f"{requests / rate:.4g}"),
        "network": {
            "latency_ms": spread(rng, 1, 60),
            "jitter_ms": spread(rng, 0.3, 6),
            "loss": rng.choices((0.0, 0.0002, 0.001), (7, 2, 1))[0],
        },
        "gateway": {"overhead_ms": even(rng, 0.3, 3), "hop_ms": even(rng, 0.1, 1)},
        "engine": _engine(rng),
        "replicas": [{"name": f"engine-{number}"} for number in range(count)],
        "arrivals": [_arrivals(rng, rate)],
        "change": [],
        "logs": [],
    }
    if world["arrivals"][0].get("history"):
        world["gateway"]["routes"] = [{"name": "default", "policy": "session"}]
    return world


def _engine(rng: random.Random) -> World:
    engine: World = {
        "noise": even(rng, 0, 0.05),
        "max_running": rng.choice((96, 128, 256)),
        "max_step_tokens": rng.choice((1024, 2048, 4096)),
        "kv_blocks": rng.choice((12_000, 20_000, 30_000)),
        "status_s": rng.choice((1.0, 2.0, 5.0, 10.0)),
        "frontend_ms": even(rng, 0.5, 3),
        "asynchronous": rng.random() < 0.7,
    }
    if rng.random() < 0.5:
        engine["step"] = {
            "fixed_ms": spread(rng, 6, 28),
            "per_sequence_us": even(rng, 30, 250),
            "per_context_token_ns": even(rng, 0, 300),
            "per_prompt_token_us": spread(rng, 12, 60),
        }
    else:
        engine["efficiency"] = even(rng, 0.5, 0.9)
    return engine


def _arrivals(rng: random.Random, rate: float) -> World:
    stream: World = {
        "process": rng.choice(("poisson", "poisson", "even", "bursty")),
        "burst": 1.6,
        "rate_per_s": rate,
        "prompt_tokens": {
            "mean": round(spread(rng, 200, 1800)), "cv": even(rng, 0.1, 0.8), "least": 16,
            "most": 6000,
        },
        "output_tokens": {
            "mean": round(spread(rng, 40, 280)), "cv": even(rng, 0.1, 0.7), "least": 8,
            "most": 1200,
        },
        "system_tokens": rng.choice((0, 0, 200, 900, 1800)),
        "history": False,
    }  # fmt: skip
    if rng.random() < 0.3:
        turns = rng.randint(2, 5)
        stream |= {
            "history": True,
            "turns": {"mean": turns, "cv": 0.3, "least": 1},
            "think_s": {"mean": even(rng, 3, 12), "cv": 0.8},
            "rate_per_s": rate / turns,
        }
        stream["prompt_tokens"]["mean"] = round(spread(rng, 60, 500))
    if rng.random() < 0.15:
        stream["reasoning_share"] = even(rng, 0.2, 0.7)
    return stream


# --- logs ----------------------------------------------------------------------------------------


def stream_log(rng: random.Random, world: World, **more: object) -> World:
    """The client's own log; most of them count no tokens in a chunk."""
    del world
    missing = ["tokens"] if rng.random() < 0.7 else []
    if rng.random() < 0.15:
        missing.append("cached_tokens")
    return {"format": "stream", "missing": missing, **more}


def spans_log(rng: random.Random, world: World, **more: object) -> World:
    """The engines' spans in one collector's file."""
    del rng, world
    return {"format": "spans", **more}


def engine_logs(rng: random.Random, world: World) -> list[World]:
    """One text log a replica."""
    del rng
    return [{"format": "vllm_log", "replica": one["name"]} for one in world["replicas"]]


def skewed(rng: random.Random, logs: list[World]) -> None:
    """Server clocks that are off: most by what time servers leave, some by seconds, a few drift."""
    kind = rng.random()
    skew = even(rng, -4, 4)
    if kind > 0.7:
        skew = spread(rng, 20, 8000) * rng.choice((-1, 1))
    drift = even(rng, -60, 60) if kind > 0.9 else 0.0
    for log in logs:
        if log["format"] not in ("stream", "truth") and log.get("options") != CLIENT:
            log["skew_ms"] = skew
            log["drift_ppm"] = drift


CLIENT, ENGINE = {"vantage": "client"}, {"vantage": "engine"}


def logs_of(rng: random.Random, world: World, mix: str) -> list[World]:
    """The logs of a mix, named in ``MIXES`` or as a fault names its own."""
    logs: list[World] = []
    for part in mix.split("+"):
        if part == "all":
            logs += [stream_log(rng, world), spans_log(rng, world), *engine_logs(rng, world)]
            if rng.random() < 0.5:
                logs.append({"format": "gateway"})
        elif part == "stream":
            logs.append(stream_log(rng, world))
        elif part == "engine":
            logs += engine_logs(rng, world)
        elif part == "records":
            told = rng.choice(((CLIENT,), (ENGINE,), (CLIENT, ENGINE)))
            logs += [{"format": "requests", "options": one} for one in told]
        elif part in ("client-records", "engine-records"):
            options = CLIENT if part == "client-records" else ENGINE
            logs.append({"format": "requests", "options": options})
        else:
            logs.append({"format": part})
    skewed(rng, logs)
    return logs
