"""What looks like a fault and is none: half of the worlds without a fault have one of these.

Each changes a drawn world in place. Truth judges them like any other: where one did harm after all,
the world is drawn again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from draws import even, spread

if TYPE_CHECKING:
    import random

    from draws import World


def _burst(rng: random.Random, world: World) -> None:
    """Many at once, and room for all of them."""
    stream = world["arrivals"][0]
    world["engine"] |= {"kv_blocks": 60_000, "max_running": 256}
    world["arrivals"].append({
        **stream, "kind": "burst", "history": False, "turns": 1, "process": "poisson",
        "rate_per_s": spread(rng, 4, 15), "from_s": world["duration_s"] / 2,
        "most": rng.randint(15, 40),
    })  # fmt: skip


def _traffic_grows(rng: random.Random, world: World) -> None:
    rate = world["arrivals"][0]["rate_per_s"] * even(rng, 1.5, 2.2)
    at = world["duration_s"] / 2
    world["change"].append({"at_s": at, "key": "arrivals.0.rate_per_s", "value": rate})


def _cached_document(rng: random.Random, world: World) -> None:
    """A long prompt that everybody shares: it is computed once."""
    world["arrivals"][0]["system_tokens"] = round(spread(rng, 6000, 20_000))
    world["engine"]["kv_blocks"] = 60_000


def _pool_nearly_full(rng: random.Random, world: World) -> None:
    """High and steady use of the KV cache, and nobody is put out."""
    stream = world["arrivals"][0]
    size = stream["prompt_tokens"]["mean"] + stream["output_tokens"]["mean"]
    least = (6000 + stream["system_tokens"] + 1200) // 16
    world["engine"]["kv_blocks"] = max(least, round(rng.randint(12, 20) * size / 16))


def _reasoning(rng: random.Random, world: World) -> None:
    """Reasoning, an early role chunk, and a gateway that is right about the first token."""
    world["arrivals"][0]["reasoning_share"] = even(rng, 0.3, 0.8)
    world["engine"]["role_chunk"] = rng.choice(("first_token", "accepted"))
    world["logs"].append({"format": "gateway"})


def _tiny_answers(rng: random.Random, world: World) -> None:
    """A hop that buffers has nothing to hold back of answers this small."""
    world["arrivals"][0]["output_tokens"] = {"mean": rng.randint(2, 6), "cv": 0.2, "most": 12}
    world["gateway"]["buffer_bytes"] = 100_000


def _rare_failures(rng: random.Random, world: World) -> None:
    world["gateway"].setdefault("routes", [{"name": "default"}])
    world["gateway"]["routes"][0]["failing"] = even(rng, 0.001, 0.006)
    world["client"] = {"retries": 2}


def _one_grammar(rng: random.Random, world: World) -> None:
    """One schema for all: compiled once."""
    world["arrivals"][0] |= {"schemas": 1, "response_format": "json_schema"}
    world["engine"]["grammar_ms"] = spread(rng, 100, 800)


def _limits_not_reached(rng: random.Random, world: World) -> None:
    world["client"] = {"connections": rng.randint(60, 120), "timeout_s": 600.0, "tick_s": 0.5}
    world["arrivals"][0]["max_tokens"] = 2000


def _varied(rng: random.Random, world: World) -> None:
    """Answers of very different lengths all along."""
    world["arrivals"][0]["output_tokens"]["cv"] = even(rng, 0.9, 1.4)


def _brief_pauses(rng: random.Random, world: World) -> None:
    """An engine, or a client, that stops for less than anybody notices."""
    if rng.random() < 0.5:
        world["engine"] |= {"pause_every_s": even(rng, 4, 10), "pause_ms": even(rng, 10, 50)}
    else:
        world["client"] = {
            "stall_every_s": even(rng, 4, 10), "stall_ms": even(rng, 10, 50), "tick_s": 0.25,
        }  # fmt: skip


def _slow_decode(rng: random.Random, world: World) -> None:
    """A large model: every token takes long, all along."""
    world["engine"]["step"] = {
        "fixed_ms": spread(rng, 40, 80), "per_sequence_us": 100, "per_prompt_token_us": 30,
    }  # fmt: skip


INNOCENTS = (
    _burst, _traffic_grows, _cached_document, _pool_nearly_full, _reasoning, _tiny_answers,
    _rare_failures, _one_grammar, _limits_not_reached, _varied, _brief_pauses, _slow_decode,
)  # fmt: skip


def disturb(rng: random.Random, world: World, number: int) -> str | None:
    """Every second world gets one of them; its name."""
    if number % 2 == 0:
        return None
    chosen = INNOCENTS[number // 2 % len(INNOCENTS)]
    chosen(rng, world)
    return chosen.__name__.strip("_")
