"""Answers that grew, seen through few logs and among ordinary variety; and what only looks like it.

found: reasoning grows while the text stays; lengths vary by a factor of two besides; records with
nothing but the end-to-end time; spans alone; a change late in the log; one route of two; doubled
answers among many.

innocent: the same wide variety throughout; tokens that take twice as long; a route of long answers
that comes in; three long answers; lengths that swing every few minutes.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from analyzer.simulate.writers import NS, Served, openai_usage, request_record
from cases._build import MS, answer, at, expect, silent, spans, write_case

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

MODEL = "whimbrel-14b"
T0 = at("2026-10-19T07:10:00Z")
OTHERS = [
    "queue.admission-limit", "queue.saturation", "prefill.long-prompt", "network.slow",
    "network.buffered", "decode.preemption", "decode.prefill-interference",
]  # fmt: skip


def _varied(seed: int, count: int, mean: float, spread: float) -> list[int]:
    """Lognormal lengths around a middle."""
    rng = random.Random(seed)
    return [max(8, round(rng.lognormvariate(math.log(mean), spread))) for _ in range(count)]


def _streams(
    lengths: Sequence[int], *, base: int, steps: Sequence[int], reasoning: Sequence[int] = (),
    routes: Sequence[str] = (), every: int = 9 * NS,
) -> list[str]:  # fmt: skip
    """One client's log; the first ``reasoning`` tokens of an answer are that."""
    lines: list[str] = []
    for k, tokens in enumerate(lengths):
        thought = reasoning[k] if reasoning else 0
        chunks = [
            (base + i * steps[k], "reasoning" if i < thought else "content", 4)
            for i in range(tokens)
        ]
        usage = openai_usage(700 + 13 * (5 * k % 7), tokens, reasoning=thought)
        told = {"route": routes[k]} if routes else {}
        lines += answer(f"g{k:04d}", T0 + every * k, chunks, usage, model=MODEL, **told)
    return lines


def _client(folder: Path, lines: list[str]) -> None:
    write_case(folder, {"client.jsonl": lines}, MODEL)


def _records(folder: Path, lengths: Sequence[int], base: int, step: int) -> None:
    """A gateway that knows how long a request took and what it used, no more."""
    lines = [
        request_record(
            f"g{k:04d}", vantage="gateway", started_ns=T0 + 11 * NS * k, model=MODEL,
            durations_ns={"e2e": base + step * tokens + (7 * k % 5) * MS},
            usage=openai_usage(900, tokens),
        )
        for k, tokens in enumerate(lengths)
    ]  # fmt: skip
    write_case(folder, {"records.jsonl": lines}, MODEL)


def _spans(folder: Path, lengths: Sequence[int], step: int) -> None:
    served = [
        Served(
            request_id=f"g{k:04d}",
            arrived_ns=T0 + 7 * NS * k,
            queue_ns=3 * MS,
            prefill_ns=90 * MS,
            decode_ns=(tokens - 1) * step,
            prompt_tokens=800,
            output_tokens=tokens,
        )
        for k, tokens in enumerate(lengths)
    ]
    write_case(folder, {"spans.jsonl": spans(served)}, MODEL)


def _grown(before: Sequence[int], after: Sequence[int], step: int) -> float:
    """Mean extra time of a later answer, s."""
    return (sum(after) / len(after) - sum(before) / len(before)) * step / NS


def _found(before: Sequence[int], after: Sequence[int], step: int) -> dict[str, object]:
    return expect(
        "decode.output-growth", "decode", len(after), _grown(before, after, step), "s", OTHERS
    )


def _cut(before: list[int], after: list[int]) -> tuple[list[int], list[int]]:
    """A moment that nobody could place elsewhere: short ones up to it, long ones from it on."""
    low, high = sorted(before)[:6], sorted(after)[-6:]
    for one in low:
        before.remove(one)
    for one in high:
        after.remove(one)
    return before + low, high + after


_TEXT = [110 + 7 * (3 * k % 5) for k in range(60)]
_THOUGHT = [0] * 28 + [260 + 11 * (5 * k % 7) for k in range(32)]
_REASONED = [text + thought for text, thought in zip(_TEXT, _THOUGHT, strict=True)]
_WIDE = _cut(_varied(3, 90, 120, 0.6), _varied(4, 70, 430, 0.6))
_TOLD = _cut(_varied(5, 26, 90, 0.3), _varied(6, 21, 300, 0.3))
_LATE = _cut(_varied(7, 85, 160, 0.35), _varied(8, 17, 520, 0.25))
_MANY = _cut(_varied(9, 210, 140, 0.5), _varied(10, 190, 330, 0.5))
_ONE = _cut(_varied(11, 40, 100, 0.25), _varied(12, 40, 350, 0.25))
_OTHER = _varied(13, 80, 210, 0.3)
_BOTH = [size for pair in zip(_ONE[0] + _ONE[1], _OTHER, strict=True) for size in pair]


def _two_routes(folder: Path) -> None:
    routes = ["draft", "chat"] * 80
    _client(folder, _streams(_BOTH, base=240 * MS, steps=[13 * MS] * 160, routes=routes))


def _same(lengths: Sequence[int], base: int, step: int) -> Callable[[Path], None]:
    return lambda folder: _client(folder, _streams(lengths, base=base, steps=[step] * len(lengths)))


def _reasoned(folder: Path) -> None:
    _client(folder, _streams(_REASONED, base=310 * MS, steps=[10 * MS] * 60, reasoning=_THOUGHT))


def _slower(folder: Path) -> None:
    """Tokens take 24 ms instead of 11; answers stay."""
    lengths = _varied(14, 80, 150, 0.4)
    _client(folder, _streams(lengths, base=200 * MS, steps=[11 * MS] * 40 + [24 * MS] * 40))


def _newcomer(folder: Path) -> None:
    """From the middle on half of the traffic is a report writer with long answers."""
    lengths = _varied(15, 50, 120, 0.25)
    routes = ["chat"] * 50
    for k, size in enumerate(_varied(16, 25, 600, 0.2)):
        lengths.insert(26 + 2 * k, size)
        routes.insert(26 + 2 * k, "reports")
    _client(folder, _streams(lengths, base=220 * MS, steps=[12 * MS] * 75, routes=routes))


def _swinging(folder: Path) -> None:
    """Six minutes of short answers, six of long ones, and so on."""
    lengths = [size * (3 if k // 20 % 2 else 1) for k, size in enumerate(_varied(17, 160, 90, 0.2))]
    _client(folder, _streams(lengths, base=220 * MS, steps=[12 * MS] * 160, every=18 * NS))


_QUIET = silent(["decode.output-growth", *OTHERS])
CASES = {
    "reasoning": (_reasoned, _found(_REASONED[:28], _REASONED[28:], 10 * MS)),
    "wide": (_same(_WIDE[0] + _WIDE[1], 280 * MS, 14 * MS), _found(*_WIDE, 14 * MS)),
    "end_to_end_only": (
        lambda folder: _records(folder, _TOLD[0] + _TOLD[1], 350 * MS, 16 * MS),
        _found(*_TOLD, 16 * MS),
    ),
    "spans_only": (
        lambda folder: _spans(folder, _TOLD[0] + _TOLD[1], 19 * MS),
        _found(*_TOLD, 19 * MS),
    ),
    "late": (_same(_LATE[0] + _LATE[1], 400 * MS, 8 * MS), _found(*_LATE, 8 * MS)),
    "one_route": (_two_routes, _found(*_ONE, 13 * MS)),
    "many": (_same(_MANY[0] + _MANY[1], 180 * MS, 15 * MS), _found(*_MANY, 15 * MS)),
    "innocent_wide": (_same(_varied(18, 120, 150, 0.8), 250 * MS, 12 * MS), _QUIET),
    "innocent_slower_tokens": (_slower, _QUIET),
    "innocent_newcomer": (_newcomer, _QUIET),
    "innocent_three_long": (
        _same([*_varied(19, 57, 120, 0.3), 900, 1_100, 1_000], 250 * MS, 12 * MS), _QUIET,
    ),
    "innocent_swinging": (_swinging, _QUIET),
    "innocent_records": (
        lambda folder: _records(folder, _varied(20, 60, 140, 0.5), 300 * MS, 15 * MS), _QUIET,
    ),
}  # fmt: skip
