"""Pauses that are longer than the prompt cache lives.

main: a session of 46 calls, short-lived writes; six pauses of 430 to 900 s. After each the whole
prompt is written again, and never after less than 260 s.

twin: the same with pauses of 285 s: the cache serves all of it.

The variants: lifetimes of an hour and of half an hour, providers that promise none, several
sessions that keep their shared head warm for each other, and cases where the longer lifetime would
cost more than it saves. The innocent ones pause as long and lose nothing, or lose something else.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS
from cases._build import MS, at, expect, silent
from cases._calls import (
    CLAUDE,
    GPT,
    LARGE,
    OTHER,
    PRICES,
    SMALL,
    Call,
    anthropic_form,
    anthropic_plain_form,
    gemini_form,
    openai_form,
    openai_write_form,
    records,
    rollouts,
    spend_logs,
    streams,
    transcripts,
    usd,
    write_logs,
    writer,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

RULE = "cache.expired"
T0 = at("2026-06-10T09:05:00Z")
RATE = 9_500
SHORT, HALF, HOUR = 300, 1_800, 3_600
TAIL = 7
"""Tokens at the end of a prompt that are not written to the cache."""


def session(
    name: str, gaps: Sequence[float], *, life_s: float, first: int = 64_000, growth: int = 900,
    warm: int = 0, step: int = 1, writes: bool = True, start_ns: int = T0,
    **fixed: Any,
) -> list[Call]:  # fmt: skip
    """A conversation with these pauses, s, before its calls. After more than ``life_s`` only
    ``warm`` tokens are still there, which other conversations keep."""
    calls: list[Call] = []
    now = start_ns
    for k, gap in enumerate([0, *gaps]):
        now += round(gap * NS)
        kept = 0 if not calls else warm if gap > life_s else calls[-1].prompt - TAIL
        prompt = first + growth * k
        read = kept // step * step
        written = prompt - TAIL - read if writes else 0
        ttft = 70 * MS + (prompt - read) * NS // RATE
        calls.append(
            Call(
                at_ns=now, session=name, prompt=prompt, read=read, written=written, turn=k + 1,
                woken=gap >= 60, ttft_ns=ttft, **fixed,
            )
        )  # fmt: skip
    return calls


def gaps(count: int, usual: Sequence[float], long: Mapping[int, float]) -> list[float]:
    """Pauses before calls 2, 3, ...; ``long``: those of some calls."""
    return [long.get(k, usual[k % len(usual)]) for k in range(2, count + 1)]


def lost(sessions: Iterable[Sequence[Call]], life_s: float) -> list[tuple[str, int]]:
    """Model and tokens of each loss: what the call before had left, less what was read."""
    return [
        (one.model, before.prompt - TAIL - one.read)
        for calls in sessions
        for before, one in pairwise(calls)
        if one.at_ns - before.at_ns > life_s * NS
    ]


def saved(sessions: Iterable[Sequence[Call]]) -> Decimal:
    """What writes of an hour instead would save: re-writes less, all writes dearer."""
    now = then = Decimal(0)
    for calls in sessions:
        price = {name: Decimal(text) for name, text in PRICES[calls[0].model].items()}
        cached = 0
        for k, one in enumerate(calls):
            now += price["cache_write_short"] * one.written + price["cache_read"] * one.read
            kept = k and one.at_ns - calls[k - 1].at_ns <= HOUR * NS
            read = max(cached, one.read) if kept else one.read
            written = one.read + one.written - read
            then += price["cache_write_long"] * written + price["cache_read"] * read
            cached = read + written
    return (now - then) / 1_000_000


NOT = [
    "cache.prefix-changed", "cache.evicted", "cache.model-switch", "cache.below-minimum",
    "context.compaction-loop", "context.base-inflation", "load.idle-unload", "load.cold-start",
]  # fmt: skip
MAY = ["context.growth", "prefill.cache-miss", "prefill.long-prompt", "cache.unused-writes"]
ADVICE = r"(?i)^(?!.*\b(?:not|no|never|nothing)\b).*(?:\b1 ?h\b|hour)"
"""Advice to take the longer lifetime."""


def expired(
    sessions: Sequence[Sequence[Call]], dear: str, life_s: float = SHORT, *, pays: bool = False,
    **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """What the rule must say of these sessions."""
    losses = lost(sessions, life_s)
    money = sum(usd(tokens, model, dear) for model, tokens in losses)
    told = expect(
        RULE, "prefill", len(losses), sum(tokens for _, tokens in losses), "tokens", NOT, MAY
    )
    rounded = 0.005 if dear != "input" else 0.02
    advice = {"told": [float(saved(sessions))]} if pays else {"unsaid": [ADVICE]}
    return told | {"cost_usd": money, "cost_tolerance": rounded} | advice | more


def all_of(sessions: Iterable[Sequence[Call]]) -> list[Call]:
    """Their calls."""
    return [one for calls in sessions for one in calls]


USUAL = (90, 140, 255, 60)
BREAKS = {9: 430, 15: 900, 22: 620, 28: 505, 35: 700, 41: 660}
MAIN = [session("s-main", gaps(46, USUAL, BREAKS), life_s=SHORT)]
TWIN = [session("s-main", gaps(46, USUAL, dict.fromkeys(BREAKS, 285)), life_s=SHORT)]

# Turns of several calls; only a person's pause is long. Two models, each in sessions of its own.
AGENT_GAPS = gaps(48, (7, 5, 9, 12, 6), {6: 380, 13: 80, 19: 1_100, 27: 460, 34: 40, 42: 815})
AGENTS = [
    session(
        f"dev-{n}", AGENT_GAPS[n:], life_s=SHORT, first=31_000 + 8_000 * n, growth=1_900,
        model=(LARGE, SMALL)[n % 2], start_ns=T0 + n * 17 * NS,
    )
    for n in range(3)
]  # fmt: skip

LONG = [
    session(
        "desk", gaps(36, (1_500, 400, 2_900), {7: 4_000, 14: 5_200, 23: 4_400, 30: 4_000}),
        life_s=HOUR, long=True, growth=1_200,
    )
]  # fmt: skip
LONG_KEPT = [
    session(
        f"desk-{n}", gaps(30, (1_500, 400, 2_900), {7: 3_400, 20: 3_300}), life_s=HOUR, long=True,
        start_ns=T0 + n * 31 * NS,
    )
    for n in range(2)
]  # fmt: skip
# Half an hour at the least, by the rules of the model.
HALVES = [
    session(
        "r-1", gaps(34, (700, 1_500, 60), {8: 2_400, 15: 3_100, 24: 2_600, 31: 5_000}),
        life_s=HALF, model=GPT, first=22_000,
    )
]  # fmt: skip
# No lifetime is promised. All calls after more than 50 minutes lose, none after less than 7.
UNPROMISED = [
    session(
        f"u-{n}", gaps(30, (110, 400, 45), {6: 4_000, 13: 7_500, 19: 3_300, 26: 9_000}),
        life_s=3_000, model=OTHER, first=26_000, growth=700, step=128, writes=False,
        start_ns=T0 + n * 23 * NS,
    )
    for n in range(2)
]  # fmt: skip
UNPROMISED_KEPT = [
    session(
        f"u-{n}", gaps(30, (110, 400, 45), {6: 4_000, 13: 7_500, 19: 3_300, 26: 9_000}),
        life_s=10_000, model=OTHER, first=26_000, growth=700, step=128, writes=False,
        start_ns=T0 + n * 23 * NS,
    )
    for n in range(2)
]  # fmt: skip

# Many conversations end at once; one in six comes back after ten minutes.
FEW_READS = [
    session(
        f"visit-{n:02d}", [45, 640] if n % 6 == 0 else [45], life_s=SHORT, first=38_000 + 500 * n,
        start_ns=T0 + n * 200 * NS,
    )
    for n in range(36)
]  # fmt: skip
# Every pause is longer than the longer lifetime, too.
TOO_LONG = [
    session(
        "s-slow", gaps(24, (70, 7_400, 50, 6_100), {}), life_s=SHORT, first=40_000, growth=2_000
    )
]


def _warm_heads(kept: int = 14_000) -> list[list[Call]]:
    """Six conversations over one head of ``kept`` tokens: somebody always keeps that warm."""
    told = []
    for n in range(6):
        calls = session(
            f"team-{n}", gaps(34, (100, 85, 110), {9 + 2 * n: 900, 21 + n: 1_050}), life_s=SHORT,
            first=33_000 + 2_000 * n, warm=kept, start_ns=T0 + n * 13 * NS, model=CLAUDE,
        )  # fmt: skip
        if n:
            read = min(kept, calls[0].prompt)
            calls[0] = replace(calls[0], read=read, written=calls[0].written - read)
        told.append(calls)
    return told


WARM = _warm_heads()


def _cold_starts() -> list[Call]:
    """Conversations that begin long after the one before, each with another prompt."""
    return all_of(
        session(
            f"c-{n:02d}", [40, 75, 120], life_s=SHORT, first=21_000 + 1_700 * n,
            start_ns=T0 + n * 1_300 * NS,
        )
        for n in range(16)
    )  # fmt: skip


def _changed() -> list[Call]:
    """Losses within a minute, beside pauses of 280 s that cost nothing."""
    calls = session("s-clock", gaps(40, (50, 280), {}), life_s=SHORT)
    told = []
    for k, one in enumerate(calls):
        hit = k % 3 or not k
        read = one.read if hit else 9_000
        told.append(replace(one, read=read, written=one.prompt - TAIL - read))
    return told


def _on_an_engine(folder: Path) -> None:
    """An engine of our own: pauses of up to 40 minutes, and room for all."""
    calls = all_of(
        session(
            f"chat-{n}", gaps(14, (60, 2_400, 30), {}), life_s=9_999, model=OTHER, first=6_000,
            growth=800, step=16, writes=False, start_ns=T0 + n * 41 * NS, output=12,
        )
        for n in range(3)
    )  # fmt: skip
    told = {"deployment.json": ['{"kv_capacity_tokens": 600000, "model": "plover-2"}']}
    write_logs(folder, streams(calls) | told)


_QUIET = [RULE, *NOT]
_TWIN = silent(_QUIET, MAY)

CASES = {
    "main": (writer(transcripts(MAIN[0])), expired(MAIN, "cache_write_short", pays=True)),
    "twin": (writer(transcripts(TWIN[0])), _TWIN),
    "bare_lines": (
        writer(transcripts(MAIN[0], asked=False)), expired(MAIN, "cache_write_short", pays=True),
    ),
    "agents": (
        writer(transcripts(all_of(AGENTS))), expired(AGENTS, "cache_write_short", pays=True),
    ),
    "gateway": (
        writer(spend_logs(all_of(AGENTS))), expired(AGENTS, "cache_write_short", pays=True),
    ),
    "records_no_split": (
        writer(records(MAIN[0], anthropic_plain_form, provider="anthropic")),
        expired(MAIN, "cache_write_short", pays=True),
    ),
    "records_hour": (
        writer(records(LONG[0], anthropic_form)), expired(LONG, "cache_write_long", HOUR),
    ),
    "transcript_hour": (writer(transcripts(LONG[0])), expired(LONG, "cache_write_long", HOUR)),
    "records_half_hour": (
        writer(records(HALVES[0], openai_write_form, provider="openai")),
        expired(HALVES, "cache_write_short", HALF),
    ),
    "rollouts": (
        writer(rollouts(all_of(UNPROMISED), "openai")), expired(UNPROMISED, "input", 3_000),
    ),
    "records_gemini": (
        writer(records(all_of(UNPROMISED), gemini_form, provider="gcp.gemini")),
        expired(UNPROMISED, "input", 3_000),
    ),
    "streams": (
        writer(streams([replace(one, output=12) for one in all_of(UNPROMISED)])),
        expired(UNPROMISED, "input", 3_000),
    ),
    "warm_head": (writer(transcripts(all_of(WARM))), expired(WARM, "cache_write_short", pays=True)),
    "warm_head_gateway": (
        writer(spend_logs(all_of(WARM))), expired(WARM, "cache_write_short", pays=True),
    ),
    "few_reads": (
        writer(transcripts(all_of(FEW_READS))), expired(FEW_READS, "cache_write_short"),
    ),
    "too_long": (writer(transcripts(TOO_LONG[0])), expired(TOO_LONG, "cache_write_short")),
    "twin_hour": (writer(transcripts(all_of(LONG_KEPT))), _TWIN),
    "twin_unpromised": (writer(records(all_of(UNPROMISED_KEPT), openai_form)), _TWIN),
    "twin_rollouts": (writer(rollouts(all_of(UNPROMISED_KEPT), "openai")), _TWIN),
    "twin_cold_starts": (writer(transcripts(_cold_starts())), _TWIN),
    "twin_changed": (
        writer(transcripts(_changed())),
        silent([RULE, "cache.evicted", "cache.model-switch"], [*MAY, "cache.prefix-changed"]),
    ),
    "twin_engine": (_on_an_engine, _TWIN),
    "twin_gateway": (writer(spend_logs(TWIN[0])), _TWIN),
}  # fmt: skip
