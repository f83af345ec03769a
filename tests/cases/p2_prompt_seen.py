"""Long prompts seen through few logs, and slow first tokens that are no prompt's.

found: a client's log alone, whose prefill is modelled; records with TTFT and usage; spans alone; a
burst of long prompts; two models of different speed; a system prompt that is cached and long
documents that are not.

innocent: long prompts that come from the cache, alike or beside uncached ones that are far shorter;
a session whose history fell out of the cache; lengths that vary while time does not follow; long
prompts that cost little; waits that hit all lengths alike.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, Served, openai_usage, request_record
from cases._build import MS, US, answer, at, expect, mean_seconds, silent, spans, write_case

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

MODEL = "avocet-30b"
T0 = at("2026-04-21T13:00:00Z")
OTHERS = [
    "queue.admission-limit", "queue.saturation", "queue.head-of-line", "network.slow",
    "network.buffered", "decode.output-growth", "decode.prefill-interference",
]  # fmt: skip
FLOOR, STEP, OUTPUT = 45 * MS, 14 * MS, 40


def _mixed(seed: int, short: int, long: int, tokens: tuple[int, int]) -> list[int]:
    """Short prompts of about the first size, and long ones among them of the second."""
    rng = random.Random(seed)
    sizes = [round(tokens[0] * rng.uniform(0.85, 1.15)) for _ in range(short)]
    for _ in range(long):
        sizes.insert(rng.randrange(len(sizes)), round(tokens[1] * rng.uniform(0.9, 1.1)))
    return sizes


def _streams(
    fresh: Sequence[int], prefill: Callable[[int, int], int], *, cached: Sequence[int] = (),
    sessions: Sequence[str] = (), models: Sequence[str] = (), every: int = 8 * NS,
) -> list[str]:  # fmt: skip
    lines: list[str] = []
    for k, tokens in enumerate(fresh):
        first = FLOOR + prefill(k, tokens)
        held = cached[k] if cached else 0
        chunks = [(first + i * STEP, "content", 4) for i in range(OUTPUT)]
        told = {"session_id": sessions[k]} if sessions else {}
        model = models[k] if models else MODEL
        usage = openai_usage(tokens + held, OUTPUT, cached=held)
        lines += answer(f"p{k:03d}", T0 + every * k, chunks, usage, model=model, **told)
    return lines


def _client(folder: Path, lines: list[str]) -> None:
    write_case(folder, {"client.jsonl": lines}, MODEL)


def _found(fresh: Sequence[int], limit: int, ns_a_token: int) -> dict[str, object]:
    long = [tokens for tokens in fresh if tokens > limit]
    short = sorted(tokens for tokens in fresh if tokens <= limit)
    excess = mean_seconds(tokens * ns_a_token for tokens in long)
    excess -= short[len(short) // 2] * ns_a_token / NS
    return expect("prefill.long-prompt", "prefill", len(long), excess, "s", OTHERS)


_ALONE = _mixed(1, 40, 14, (500, 9_000))
_TOLD = _mixed(2, 30, 12, (900, 14_000))
_SERVED = _mixed(3, 25, 9, (350, 6_000))
_SUDDEN = _mixed(4, 40, 0, (600, 600)) + [11_000 + 60 * k for k in range(12)]
_CACHED = _mixed(5, 36, 15, (400, 7_500))
_FAST, _SLOW = _mixed(6, 30, 10, (700, 8_000)), _mixed(7, 30, 10, (700, 8_000))


def _linear(ns_a_token: int) -> Callable[[int, int], int]:
    return lambda k, tokens: tokens * ns_a_token + (7 * k % 5) * MS


def _records(folder: Path) -> None:
    lines = [
        request_record(
            f"p{k:03d}", vantage="gateway", started_ns=T0 + 10 * NS * k, model=MODEL,
            durations_ns={"ttft": FLOOR + tokens * 95 * US, "e2e": FLOOR + tokens * 95 * US + NS},
            usage=openai_usage(tokens, OUTPUT),
        )
        for k, tokens in enumerate(_TOLD)
    ]  # fmt: skip
    write_case(folder, {"records.jsonl": lines}, MODEL)


def _spans(folder: Path) -> None:
    served = [
        Served(
            request_id=f"p{k:03d}",
            arrived_ns=T0 + 6 * NS * k,
            queue_ns=2 * MS,
            prefill_ns=tokens * 140 * US,
            decode_ns=OUTPUT * STEP,
            prompt_tokens=tokens,
            output_tokens=OUTPUT,
        )
        for k, tokens in enumerate(_SERVED)
    ]
    write_case(folder, {"spans.jsonl": spans(served)}, MODEL)


def _two_models(folder: Path) -> None:
    """One takes 200 us a token, the other 9: long prompts matter at the first alone."""
    fresh = [size for pair in zip(_SLOW, _FAST, strict=True) for size in pair]
    models = [MODEL, "sanderling-3b"] * 40
    rates = [200 * US, 9 * US] * 40
    _client(folder, _streams(fresh, lambda k, tokens: tokens * rates[k], models=models))


def _hits(folder: Path) -> None:
    """Prompts of 400 and of 16,000 tokens; of the long ones all but 400 come from the cache."""
    held = [15_600 if k % 4 == 1 else 0 for k in range(48)]
    fresh = [400 + 11 * (5 * k % 9) for k in range(48)]
    _client(folder, _streams(fresh, _linear(100 * US), cached=held))


def _uncached(folder: Path) -> None:
    """30,000 tokens with all but 240 in the cache, beside prompts of 900 that nothing held."""
    held = [29_760 if k % 3 == 0 else 0 for k in range(36)]
    fresh = [240 + k if k % 3 == 0 else 900 + 7 * k for k in range(36)]
    _client(folder, _streams(fresh, _linear(800 * US), cached=held))


def _lost(folder: Path) -> None:
    """Six sessions of eight turns each; the seventh turn finds nothing of the six before it."""
    fresh, held, sessions = [], [], []
    for turn in range(8):
        for name in range(6):
            before = 3_000 + 1_200 * (turn - 1)
            new = 3_000 if turn == 0 else 1_200
            gone = turn == 6
            fresh.append(new + before if gone else new)
            held.append(0 if gone or turn == 0 else before)
            sessions.append(f"s{name}")
    lines = _streams(fresh, _linear(90 * US), cached=held, sessions=sessions)
    _client(folder, lines)


def _unrelated(folder: Path) -> None:
    rng = random.Random(8)
    noise = [round(rng.uniform(0.1, 1.4) * NS) for _ in range(60)]
    fresh = [round(rng.lognormvariate(7, 0.8)) for _ in range(60)]
    _client(folder, _streams(fresh, lambda k, tokens: noise[k] + tokens * 2 * US))


def _waits(folder: Path) -> None:
    """Ten seconds at a time everybody waits, short or long."""
    fresh = _mixed(9, 40, 12, (500, 3_000))
    wait = [2 * NS if k % 13 in (4, 5, 6) else 2 * MS for k in range(52)]
    served = [
        Served(
            request_id=f"p{k:03d}",
            arrived_ns=T0 + 5 * NS * k,
            queue_ns=wait[k],
            prefill_ns=tokens * 30 * US,
            decode_ns=OUTPUT * STEP,
            prompt_tokens=tokens,
            output_tokens=OUTPUT,
        )
        for k, tokens in enumerate(fresh)
    ]
    write_case(folder, {"spans.jsonl": spans(served)}, MODEL)


_QUIET = silent(["prefill.long-prompt", "decode.output-growth", "network.slow"])
CASES = {
    "client_only": (
        lambda folder: _client(folder, _streams(_ALONE, _linear(130 * US))),
        _found(_ALONE, 2_000, 130 * US),
    ),
    "records": (_records, _found(_TOLD, 2_000, 95 * US)),
    "spans_only": (_spans, _found(_SERVED, 2_000, 140 * US)),
    "burst": (
        lambda folder: _client(folder, _streams(_SUDDEN, _linear(70 * US))),
        _found(_SUDDEN, 2_000, 70 * US),
    ),
    "cached_system_prompt": (
        lambda folder: _client(
            folder, _streams(_CACHED, _linear(110 * US), cached=[4_000] * len(_CACHED))
        ),
        _found(_CACHED, 2_000, 110 * US),
    ),
    "two_models": (_two_models, _found(_SLOW, 2_000, 200 * US)),
    "innocent_hits": (_hits, _QUIET),
    "innocent_uncached": (_uncached, _QUIET),
    "innocent_lost_cache": (_lost, _QUIET),
    "innocent_unrelated": (_unrelated, _QUIET),
    "innocent_cheap": (
        lambda folder: _client(folder, _streams(_mixed(10, 40, 14, (500, 9_000)), _linear(9 * US))),
        _QUIET,
    ),
    "innocent_waits": (_waits, _QUIET),
}
