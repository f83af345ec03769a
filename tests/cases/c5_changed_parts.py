"""What changed in a prompt, where its parts were logged: a clock, an id, a tool, an order, a text.

main: the clock in the system prompt is another on every call, behind twelve tools.

The variants: an id in the system prompt, tools in another order, one tool with another text, an
earlier message that is written anew. The innocent one: a number changes behind everything else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS
from cases._build import at, expect, silent
from cases._calls import LARGE, Call, anthropic_form, records, writer

if TYPE_CHECKING:
    from collections.abc import Callable

RULE = "cache.prefix-changed"
T0 = at("2026-06-20T07:12:00Z")
CALLS, TAIL, FIRST, GROWTH = 24, 11, 18_000, 900
TOOLS, SYSTEM = 5_400, 7_100
"""Tokens of the tools, and of tools and system prompt together."""
NOT = ["cache.expired", "cache.evicted", "cache.model-switch", "cache.below-minimum"]
MAY = ["context.growth", "prefill.cache-miss", "prefill.long-prompt", "cache.unused-writes"]
Part = dict[str, Any]


def part(kind: str, text: str, chars: int, plain: str | None = None, **more: Any) -> Part:
    """One part; ``plain``: its words without volatile values."""
    return {"kind": kind, "chars": chars, "hash": text, "plain_hash": plain or text, **more}


def prompt(k: int) -> list[Part]:
    """The parts of call ``k``, as they should be."""
    tools = [part("tools", f"tool-{n}", 1_800) for n in range(12)]
    said = [part("user" if n % 2 == 0 else "assistant", f"m-{n}", 900) for n in range(2 * k + 1)]
    return [*tools, part("system", "you-are", 6_800), *said]


def _clock(k: int, parts: list[Part]) -> None:
    parts[12] = part(
        "system", f"at-{k}", 6_800, "at", volatile="timestamp", first_volatile_chars=40
    )


def _id(k: int, parts: list[Part]) -> None:
    parts[12] = part("system", f"id-{k}", 6_800, "id", volatile="id", first_volatile_chars=12)


def _order(k: int, parts: list[Part]) -> None:
    turned = 1 + k % 11
    parts[:12] = [*parts[:1], *parts[turned:12], *parts[1:turned]]


def _tool(k: int, parts: list[Part]) -> None:
    parts[1] = part("tools", f"tool-1-as-of-{k}", 1_800)


def _history(k: int, parts: list[Part]) -> None:
    parts[13] = part("user", f"m-0-with-state-{k}", 900)


def told(change: Callable[[int, list[Part]], None], head: int) -> list[Call]:
    """Calls that read the head only, with the parts of their prompts."""
    calls = []
    for k in range(CALLS):
        parts = prompt(k)
        change(k, parts)
        size = FIRST + GROWTH * k
        read = head if k else 0
        calls.append(
            Call(
                at_ns=T0 + k * 71 * NS, session="p-1", prompt=size, read=read,
                written=size - TAIL - read, model=LARGE, output=60,
                told=(("prompt_parts", parts),),
            )
        )  # fmt: skip
    return calls


def changed(what: str, head: int) -> dict[str, Any]:
    """What the rule must say."""
    lost = [FIRST + GROWTH * (k - 1) - TAIL - head for k in range(1, CALLS)]
    right = expect(RULE, "prefill", len(lost), sum(lost), "tokens", NOT, MAY)
    return right | {"told": [head], "said": [what]}


def _good() -> list[Call]:
    """The same with a number at the end, which nothing follows."""
    calls = []
    for k, one in enumerate(told(lambda _k, _parts: None, 0)):
        before = FIRST + GROWTH * (k - 1) - TAIL
        read = before if k else 0
        parts = [*prompt(k), part("user", f"n-{k}", 30, "n", volatile="number")]
        calls.append(
            replace(one, read=read, written=one.prompt - TAIL - read,
                    told=(("prompt_parts", parts),))
        )  # fmt: skip
    return calls


def _case(change: Callable[[int, list[Part]], None], head: int, what: str) -> tuple[Any, Any]:
    return writer(records(told(change, head), anthropic_form)), changed(what, head)


CASES = {
    "main": _case(_clock, TOOLS + 20, "timestamp"),
    "id": _case(_id, TOOLS + 8, "id"),
    "order": _case(_order, 450, "tools in another order"),
    "tool": _case(_tool, 450, "tools"),
    "history": _case(_history, SYSTEM, "history"),
    "twin": (writer(records(_good(), anthropic_form)), silent([RULE, *NOT], MAY)),
}
