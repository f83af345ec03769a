"""Conversations resend their whole history on every call, and it is computed again each time.

main: 6 chats of 24 turns without a cache; prompts go from 900 to 15,850 tokens, 650 a turn.

twin: the same chats, of which the application keeps the last 3,000 tokens of history: a plateau.

The variants: one long agent, turns of several calls, a cache that serves the head alone, cached
tokens that nobody tells, prompts known by the hashes of their blocks. The innocent ones are
compacted, short, small, served by the cache, start sub-agents, or switch between two models.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS
from cases._build import MS, at, expect, silent
from cases._calls import (
    LARGE,
    OTHER,
    PRICES,
    SMALL,
    Call,
    anthropic_form,
    openai_form,
    records,
    spend_logs,
    streams,
    traces,
    transcripts,
    writer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RULE = "context.growth"
T0 = at("2026-03-17T06:45:00Z")
RATE = 8_000
"""Prompt tokens a second that are computed."""


def chat(
    name: str, calls: int, *, first: int = 900, growth: int = 650, gap_s: float = 21,
    read: Callable[[int, int], int] = lambda _prompt, _before: 0, start_ns: int = T0,
    model: str = OTHER, calls_a_turn: int = 1, cut: Callable[[int], int] = lambda prompt: prompt,
    output: int = 11, writes: bool = False,
) -> list[Call]:  # fmt: skip
    """A conversation; ``read``: cached tokens, by its prompt and the one before; ``cut``: what is
    kept of a prompt."""
    told: list[Call] = []
    prompt = first
    for k in range(calls):
        if k:
            prompt = cut(prompt + growth + (37 * k % 5 - 2) * 20)
        before = told[-1].prompt if told else 0
        cached = min(read(prompt, before), prompt - 1) if told else 0
        content = ((f"{name}-body", prompt),)
        told.append(
            Call(
                at_ns=start_ns + round(k * gap_s * NS), session=name, prompt=prompt,
                read=cached, written=prompt - cached - 5 if writes else 0, model=model,
                turn=k // calls_a_turn + 1, woken=k % calls_a_turn == 0, output=output,
                content=content, ttft_ns=40 * MS + (prompt - cached) * NS // RATE,
            )
        )  # fmt: skip
    return told


def many(count: int, calls: int, **how: Any) -> list[Call]:
    """Several at once."""
    return [
        one for n in range(count)
        for one in chat(f"chat-{n}", calls, start_ns=T0 + n * 13 * NS, **how)
    ]  # fmt: skip


NOT = ["context.base-inflation", "context.compaction-loop", "decode.output-growth"]
MAY = [
    "prefill.long-prompt", "prefill.cache-miss", "cache.evicted", "cache.below-minimum",
    "cache.prefix-changed", "cache.unused-writes", "cache.expired", "instrument.cached-tokens",
]  # fmt: skip


def grown(calls: Sequence[Call], **more: Any) -> dict[str, Any]:
    """What the rule must say: calls after the first, tokens a turn, and what history cost."""
    sessions: dict[str, list[Call]] = {}
    for one in calls:
        sessions.setdefault(one.session, []).append(one)
    tokens = turns = 0
    paid = 0
    for own in sessions.values():
        tokens += own[-1].prompt - own[0].prompt
        turns += (own[-1].turn or 0) - 1
        for before, one in pairwise(own):
            resent = min(before.prompt, one.prompt)
            paid += max(0, min(resent - own[0].prompt, resent - one.read))
    requests = len(calls) - len(sessions)
    model = calls[0].model
    money = Decimal(PRICES[model]["input"]) * paid / 1_000_000
    told = expect(RULE, "prefill", requests, tokens / turns, "tokens", NOT, MAY)
    return told | {"cost_usd": money, "cost_tolerance": 0.01, "told": [len(sessions)]} | more


def _without_turns(calls: Sequence[Call]) -> list[Call]:
    return [replace(one, turn=None) for one in calls]


def _untold(one: Call) -> dict[str, Any]:
    """Usage without a word of a cache."""
    return {"prompt_tokens": one.prompt, "completion_tokens": one.output}


def _served(prompt: int, before: int) -> int:
    return before // 16 * 16


def _marked_head(calls: Sequence[Call], head: int = 1_280) -> list[Call]:
    """Only the head is marked for the cache: written once, then read; history is neither."""
    return [
        replace(
            one, model=LARGE, read=head if one.turn != 1 else 0,
            written=head if one.turn == 1 else 0,
        )
        for one in calls
    ]  # fmt: skip


def _compacted() -> list[Call]:
    """Compacted to a tenth at 12,000 tokens."""
    return many(5, 44, cut=lambda prompt: 1_700 if prompt > 12_000 else prompt)


def _agents() -> list[Call]:
    """A flat dispatcher that starts a sub-agent for each of its turns; those are short."""
    told = chat("root", 12, first=3_000, growth=25, gap_s=120)
    for n, one in enumerate(list(told)):
        own = chat(f"agent-{n}", 5, first=2_500, growth=1_900, gap_s=9, start_ns=one.at_ns + 5 * NS)
        told += [replace(call, parent="root", woken=False) for call in own]
    return told


def _two_models() -> list[Call]:
    """A small and a large model take turns; prompts of each stay as they are."""
    told = []
    for k in range(30):
        small = k % 2 == 0
        told.append(
            Call(
                at_ns=T0 + k * 15 * NS, session="mixed", prompt=1_100 if small else 9_000 + 10 * k,
                model=SMALL if small else LARGE, turn=k + 1, woken=True, output=9,
            )
        )  # fmt: skip
    return told


MAIN = many(6, 24)
AGENT = chat("agent", 60, first=5_500, growth=1_250, gap_s=17, model=OTHER)
TOOLS = many(3, 32, calls_a_turn=4, growth=480)
HEAD = _marked_head(many(4, 26, growth=700, first=1_500))
HASHED = many(3, 20, growth=800, first=1_600)
LARGE_CHATS = many(4, 18, growth=1_100, first=1_400, model=LARGE)
MIXED = [
    *many(3, 20, first=1_200, growth=900),
    *(
        replace(one, session=f"ok-{one.session}", model=SMALL)
        for one in many(5, 20, read=_served, first=1_200)
    ),
]  # fmt: skip
LEVEL = many(6, 24, cut=lambda prompt: min(prompt, 3_900))
SERVED = many(6, 24, read=_served)
WRITTEN = many(3, 40, read=lambda _prompt, before: before - 5, model=LARGE, first=14_000,
               growth=1_300, writes=True)  # fmt: skip
SHORT = many(40, 5, growth=900)
SMALL_ONES = many(12, 16, first=130, growth=55)

_TWIN = silent([RULE, *NOT], MAY)

CASES = {
    "main": (writer(records(MAIN, openai_form, ttft=True)), grown(MAIN)),
    "twin": (writer(records(LEVEL, openai_form, ttft=True)), _TWIN),
    "agent": (writer(records(_without_turns(AGENT), openai_form)), grown(AGENT)),
    "streams": (writer(streams(MAIN)), grown(MAIN)),
    "turns_of_calls": (writer(records(TOOLS, openai_form)), grown(TOOLS)),
    "head_cached": (writer(records(HEAD, anthropic_form)), grown(HEAD)),
    "untold": (writer(records(MAIN, _untold, ttft=True)), grown(MAIN)),
    "hashes": (writer(streams(HASHED, block=200)), grown(HASHED)),
    "gateway": (
        writer(spend_logs(_without_turns(LARGE_CHATS), provider="openai")), grown(LARGE_CHATS),
    ),
    "beside_served": (
        writer(records(MIXED, openai_form)),
        grown([one for one in MIXED if not one.session.startswith("ok")]),
    ),
    "twin_served": (writer(records(SERVED, openai_form, ttft=True)), _TWIN),
    "twin_unknown": (writer(records(MAIN, _untold)), _TWIN),
    "twin_served_untold": (writer(records(SERVED, _untold, ttft=True)), _TWIN),
    "twin_written": (writer(transcripts(WRITTEN)), _TWIN),
    "twin_written_records": (writer(records(WRITTEN, anthropic_form)), _TWIN),
    "twin_compacted": (writer(records(_compacted(), openai_form)), _TWIN),
    "twin_short": (writer(records(SHORT, openai_form)), _TWIN),
    "twin_small": (writer(records(SMALL_ONES, openai_form)), _TWIN),
    "twin_agents": (writer(transcripts(_agents())), _TWIN),
    "twin_models": (writer(records(_two_models(), openai_form)), _TWIN),
    "twin_traces": (writer(traces(LEVEL)), _TWIN),
}  # fmt: skip
