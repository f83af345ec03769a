"""A conversation is offered more tools as it goes on, and each time its whole prefix is lost.

main: every fourth call of a session has one tool more than the call before. Tools stand first in a
prompt, so that nothing behind them is read: all of it is written again.

The variants: only the number of tools is told, some are taken away again, the prompts themselves
were logged, a head before the tools is read, noise. The innocent ones have all tools from the first
call on, or change them once.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS
from cases._build import at, expect, silent
from cases._calls import LARGE, Call, anthropic_form, records, writer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RULE = "cache.prefix-changed"
T0 = at("2026-07-02T12:05:00Z")
CALLS, TAIL, FIRST, GROWTH = 44, 9, 16_000, 700
TOOL_TOKENS, TOOL_CHARS = 240, 900
NOT = ["cache.expired", "cache.evicted", "cache.model-switch", "cache.below-minimum"]
MAY = [
    "context.growth", "context.base-inflation", "prefill.cache-miss", "prefill.long-prompt",
    "cache.unused-writes",
]  # fmt: skip


def _parts(tools: int, k: int) -> list[dict[str, Any]]:
    told = [("tools", f"tool-{n}", TOOL_CHARS) for n in range(tools)]
    told += [("system", "you-are", 7_000)]
    told += [("user" if n % 2 == 0 else "assistant", f"m-{n}", 1_200) for n in range(2 * k + 1)]
    return [{"kind": kind, "hash": name, "chars": chars} for kind, name, chars in told]


def session(
    tools: Callable[[int], int], *, told: Sequence[str] = ("tools_count", "tools_chars"),
    head: int = 0, noise: int = 0, logged: bool = False,
) -> list[Call]:  # fmt: skip
    """Calls 40 s apart with ``tools(call)`` tools; what other tools leave to be read is a head."""
    rng = random.Random(17)
    calls: list[Call] = []
    for k in range(CALLS):
        many = tools(k)
        size = FIRST + GROWTH * k + TOOL_TOKENS * many + rng.randint(0, noise)
        before = calls[-1] if calls else None
        is_same = before is not None and tools(k - 1) == many
        read = min(before.prompt, size) - TAIL if before and is_same else head if before else 0
        facts = {"tools_count": many, "tools_chars": TOOL_CHARS * many}
        more: dict[str, Any] = {name: facts[name] for name in told}
        if logged:
            more = {"prompt_parts": _parts(many, k)}
        calls.append(
            Call(
                at_ns=T0 + k * 40 * NS + rng.randint(0, noise) * NS // 100, session="add-1",
                prompt=size, read=read, written=size - TAIL - read, model=LARGE, output=60,
                turn=k + 1, told=tuple(more.items()),
            )
        )  # fmt: skip
    return calls


def changed(calls: Sequence[Call], head: int = 0) -> dict[str, Any]:
    """What the rule must say: each change of the tools, and that it was the tools."""
    lost = [before.prompt - TAIL - one.read for before, one in pairwise(calls) if one.read == head]
    right = expect(RULE, "prefill", len(lost), sum(lost), "tokens", NOT, MAY)
    return right | {"said": ["tools"], "told": [len(lost)]}


def _more(k: int) -> int:
    return 12 + k // 4


def _in_and_out(k: int) -> int:
    return 20 - k // 3 % 2


MAIN = session(_more)
COUNTS = session(_more, told=("tools_count",))
FEWER = session(_in_and_out)
HEADED = session(_more, head=1_100)
NOISY = session(_more, noise=300)
LOGGED = session(_more, logged=True)
SAME = session(lambda _: 23)
ONCE = session(lambda k: 14 if k < 20 else 19)
_SILENT = silent([RULE, *NOT], MAY)

CASES = {
    "main": (writer(records(MAIN, anthropic_form)), changed(MAIN)),
    "counts": (writer(records(COUNTS, anthropic_form)), changed(COUNTS)),
    "fewer": (writer(records(FEWER, anthropic_form)), changed(FEWER)),
    "headed": (writer(records(HEADED, anthropic_form)), changed(HEADED, 1_100)),
    "noisy": (writer(records(NOISY, anthropic_form)), changed(NOISY)),
    "logged": (writer(records(LOGGED, anthropic_form)), changed(LOGGED)),
    "twin": (writer(records(SAME, anthropic_form)), _SILENT),
    "twin_once": (writer(records(ONCE, anthropic_form)), _SILENT),
}
