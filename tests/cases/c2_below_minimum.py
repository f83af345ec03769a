"""Prompts that begin alike and are never cached: too short for it, or nobody switched it on.

main: an assistant whose conversations grow from 5,000 tokens on; the model caches what is marked,
no call marks anything, and every count of the cache is 0.

twin: the same conversations with marks: each call reads what the one before left.

The variants: an engine without prefix caching, a common beginning below the model's minimum,
prompts known as hashes or by their sizes alone. The innocent ones do not begin alike, have too
little in common, come too late, lose their cache for a reason, or are served.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS, engine_line
from cases._build import MS, at, expect, silent
from cases._calls import (
    LARGE,
    OTHER,
    Call,
    anthropic_form,
    openai_form,
    records,
    size,
    streams,
    transcripts,
    writer,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

RULE = "cache.below-minimum"
T0 = at("2026-09-14T06:30:00Z")
KNOWN = "claude-sonnet-4-5"
BLOCK = 250


def talk(
    name: str, count: int, gap_s: float, *, first: int = 5_000, growth: int = 450,
    start_s: float = 0, head: int = 0, served: bool = False, **fixed: Any,
) -> list[Call]:  # fmt: skip
    """A conversation; ``head``: tokens of its beginning that all conversations share."""
    calls: list[Call] = []
    content = ((("head", head),) if head else ()) + ((f"{name}-1", first - head),)
    for k in range(count):
        if k:
            content = (*content, (f"{name}-{k + 1}", growth))
        prompt = size(content)
        read = calls[-1].prompt - 8 if calls and served else 0
        calls.append(
            Call(
                at_ns=T0 + round((start_s + gap_s * k) * NS), session=name, prompt=prompt,
                read=read, written=prompt - 8 - read if served else 0, turn=k + 1,
                content=content, ttft_ns=60 * MS + (prompt - read) * 90_000, **fixed,
            )
        )  # fmt: skip
    return calls


def asks(count: int, gap_s: float, head: int, own: int, **fixed: Any) -> list[Call]:
    """Calls of one turn that share ``head`` tokens."""
    return [
        one
        for k in range(count)
        for one in talk(
            f"ask-{k:03d}", 1, 0, first=head + own, head=head, start_s=gap_s * k, **fixed
        )
    ]


NOT = [
    "cache.prefix-changed", "cache.expired", "cache.evicted", "cache.model-switch",
    "cache.unused-writes", "prefill.cache-miss", "context.base-inflation",
]  # fmt: skip
MAY = ["context.growth", "prefill.long-prompt"]


def found(tokens: Sequence[int]) -> dict[str, Any]:
    """``tokens``: what each call repeats."""
    return expect(RULE, "prefill", len(tokens), sum(tokens), "tokens", NOT, MAY)


def grown(calls: Sequence[Call], block: int = 1) -> list[int]:
    """What each call repeats of the one before it in its conversation."""
    last: dict[str, int] = {}
    found = []
    for one in calls:
        if one.session in last:
            found.append(last[one.session] // block * block)
        last[one.session] = one.prompt
    return found


MAIN = [one for n in range(3) for one in talk(f"talk-{n}", 9, 40, start_s=17 * n, model=KNOWN)]
SERVED = [
    one
    for n in range(3)
    for one in talk(f"talk-{n}", 9, 40, start_s=17 * n, model=KNOWN, served=True)
]
ENGINE = [one for n in range(4) for one in talk(f"on-{n}", 7, 21, start_s=5 * n, model=OTHER)]
SHORT = asks(60, 20, 750, 180, model=KNOWN)
LOG = [
    engine_line(
        T0 - 60 * NS, "GPU KV cache size: 600,000 tokens", process="EngineCore", pid=41,
        where="kv_cache_utils.py:864",
    )
]  # fmt: skip
_SILENT = silent([RULE, *NOT], MAY)

CASES = {
    "main": (writer(records(MAIN, anthropic_form)), found(grown(MAIN))),
    "twin": (writer(records(SERVED, anthropic_form)), _SILENT),
    "transcripts": (writer(transcripts(MAIN)), found(grown(MAIN))),
    "hashes": (
        writer(streams(MAIN, block=BLOCK, usage=anthropic_form)),
        found(grown(MAIN, BLOCK)),
    ),
    "engine": (
        writer(streams(ENGINE, block=BLOCK) | {"engine.log": LOG}),
        found(grown(ENGINE, BLOCK)),
    ),
    "engine_sizes": (
        writer(streams(ENGINE) | {"engine.log": LOG}),
        found(grown(ENGINE)),
    ),
    "below": (
        writer(streams(SHORT, block=BLOCK, usage=anthropic_form)),
        found([750] * 59),
    ),
    "twin_little_in_common": (
        writer(streams(asks(60, 20, 250, 2_400, model=KNOWN), block=BLOCK, usage=anthropic_form)),
        _SILENT,
    ),
    "twin_strangers": (
        writer(streams(asks(60, 20, 0, 4_700, model=KNOWN), block=BLOCK, usage=anthropic_form)),
        _SILENT,
    ),
    "twin_too_late": (
        writer(records(talk("rare", 14, 900, model=KNOWN), anthropic_form)),
        _SILENT,
    ),
    "twin_served_once_lost": (
        writer(
            records(
                [
                    replace(one, read=0, written=one.prompt - 8) if one.turn == 6 else one
                    for one in SERVED
                ],
                anthropic_form,
            )
        ),
        silent([RULE, "cache.unused-writes", "cache.expired"], [*MAY, "prefill.cache-miss"]),
    ),
    "twin_few": (writer(records(talk("one", 4, 30, model=LARGE), openai_form)), _SILENT),
}  # fmt: skip
