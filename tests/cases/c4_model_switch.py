"""Conversations that move to another model or tier and come back, and pay for their history twice.

main: two conversations of 36 calls; each goes to a smaller model for six calls and comes back after
its own cache has expired, twice.

The variants: a gateway's rows; records; a provider without fees for writes. The innocent ones:
small calls of a helper model in between, one move for good, two models in conversations of
their own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS
from cases._build import at, expect, silent
from cases._calls import (
    LARGE,
    OTHER,
    SMALL,
    Call,
    anthropic_form,
    openai_form,
    records,
    rollouts,
    spend_logs,
    transcripts,
    writer,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RULE = "cache.model-switch"
T0 = at("2026-06-18T13:30:00Z")
LIFE_NS = 300 * NS
NOT = ["cache.prefix-changed", "cache.expired", "cache.evicted", "cache.below-minimum"]
MAY = ["context.growth", "prefill.cache-miss", "prefill.long-prompt", "cache.unused-writes"]
TAIL = 9


def conversation(
    name: str, models: Sequence[str], *, gap_s: int = 62, first: int = 23_000, growth: int = 1_150,
    start_ns: int = T0, writes: bool = True, step: int = 1, **fixed: Any,
) -> list[Call]:  # fmt: skip
    """Calls of these models, each with a cache of its own that lives five minutes."""
    calls: list[Call] = []
    left: dict[str, tuple[int, int]] = {}
    for k, model in enumerate(models):
        now, prompt = start_ns + k * gap_s * NS, first + growth * k
        kept, used_ns = left.get(model, (0, 0))
        read = kept // step * step if now - used_ns <= LIFE_NS else 0
        written = prompt - TAIL - read if writes else 0
        left[model] = (prompt - TAIL, now)
        calls.append(
            Call(
                at_ns=now, session=name, prompt=prompt, read=read, written=written, model=model,
                woken=k % 3 == 0 or model != models[k - 1], output=90, **fixed,
            )
        )  # fmt: skip
    return calls


def moves(large: str, small: str) -> list[str]:
    """There and back, twice."""
    return [*[large] * 10, *[small] * 6, *[large] * 7, *[small] * 6, *[large] * 7]


def lost(calls: Sequence[Call]) -> list[int]:
    """Tokens of each loss: what the call whose prompt it continues had left, in whichever cache."""
    found = []
    last: dict[str, Call] = {}
    for k, one in enumerate(calls):
        before = last.get(one.model, calls[k - 1] if k else None)
        last[one.model] = one
        if before is not None and not one.read:
            found.append(before.prompt - TAIL)
    return found


def switched(sessions: Iterable[Sequence[Call]], **more: Any) -> dict[str, Any]:
    """What the rule must say of these sessions."""
    losses = [tokens for calls in sessions for tokens in lost(calls)]
    return expect(RULE, "prefill", len(losses), sum(losses), "tokens", NOT, MAY) | more


def all_of(sessions: Iterable[Sequence[Call]]) -> list[Call]:
    """Their calls."""
    return [one for calls in sessions for one in calls]


MAIN = [
    conversation(
        f"ab-{n}", moves(LARGE, SMALL), first=23_000 + 4_000 * n, start_ns=T0 + n * 20 * NS
    )
    for n in range(2)
]
ROLLOUT = [conversation("th-3", moves(OTHER, SMALL), writes=False, step=128, first=31_000)]
ONE_WAY = [conversation("up", [*[SMALL] * 15, *[LARGE] * 15])]
APART = [
    conversation("l", [LARGE] * 20, start_ns=T0),
    conversation("s", [SMALL] * 20, start_ns=T0 + 31 * NS),
]


def _helped() -> list[Call]:
    """After every third call a small model writes a title from 400 tokens."""
    told: list[Call] = []
    for k, one in enumerate(conversation("main", [LARGE] * 30)):
        told.append(one)
        if k % 3 == 2:
            told.append(
                Call(at_ns=one.at_ns + 20 * NS, session="main", prompt=400, model=SMALL, output=12)
            )
    return told


_TWIN = silent([RULE, *NOT], MAY)
# The helper's prompts are short.
_TWIN_HELPED = silent([RULE, *NOT[:3]], [*MAY, NOT[3]])

CASES = {
    "main": (writer(transcripts(all_of(MAIN))), switched(MAIN)),
    "gateway": (writer(spend_logs(all_of(MAIN))), switched(MAIN)),
    "records": (writer(records(all_of(MAIN), anthropic_form)), switched(MAIN)),
    "rollouts": (writer(rollouts(ROLLOUT[0])), switched(ROLLOUT)),
    "twin_helper": (writer(transcripts(_helped())), _TWIN_HELPED),
    "twin_helper_records": (writer(records(_helped(), anthropic_form)), _TWIN_HELPED),
    "twin_one_way": (writer(transcripts(ONE_WAY[0])), _TWIN),
    "twin_apart": (writer(records(all_of(APART), openai_form)), _TWIN),
    "twin_one_model": (
        writer(transcripts([replace(one, model=LARGE) for one in conversation("o", [LARGE] * 25)])),
        _TWIN,
    ),
}
