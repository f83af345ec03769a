"""The prompt with which conversations begin jumps from one hour to the next.

main: 130 first calls over five days. On the fourth, tool definitions go from 9 to 23 and 7,150
prompt tokens are added to each.

twin: half as many calls again a day from then on, of the size they always had.

The variants: a system prompt that grew while the tools stay, a prompt of which only the count is
told, a rollout on one route or one model, kinds of logs from transcripts to a gateway's rows, and
sessions whose later calls carry the same. The innocent ones grow by history, by the mix of routes,
by the length of the documents people paste; fall every weekend; give way to single questions of
another kind; or step down.
"""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS
from cases._build import at, expect, silent
from cases._calls import (
    LARGE,
    OTHER,
    PRICES,
    SMALL,
    Call,
    anthropic_form,
    gemini_form,
    openai_form,
    records,
    rollouts,
    spend_logs,
    streams,
    transcripts,
    writer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

RULE = "context.base-inflation"
T0 = at("2026-02-09T07:30:00Z")
DAY = 86_400 * NS
STEP_AT = T0 + 3 * DAY + 4 * 3_600 * NS
OLD, NEW = (9, 17_400, 3_200), (23, 46_300, 3_200)
"""Tools, characters of their definitions, characters of the system prompt."""
ADDED = 7_150


def firsts(
    times: Iterable[int], *, base: int = 5_200, added: int = ADDED, since_ns: int = STEP_AT,
    old: tuple[int, int, int] | None = OLD, new: tuple[int, int, int] | None = NEW,
    spread: int = 180, model: str = OTHER, name: str = "f", route: str | None = None, seed: int = 5,
) -> list[Call]:  # fmt: skip
    """First calls of conversations, bigger from a time on."""
    rng = random.Random(seed)
    calls = []
    for k, when in enumerate(times):
        is_new = when >= since_ns
        facts = new if is_new else old
        keys = ("tools_count", "tools_chars", "system_chars")
        told: dict[str, Any] = dict(zip(keys, facts, strict=True)) if facts else {}
        told |= {"route": route} if route else {}
        size = base + rng.randint(-spread, spread) + (added if is_new else 0)
        calls.append(
            Call(
                at_ns=when, session=f"{name}-{k:04d}", prompt=size, model=model, turn=1, woken=True,
                output=40, told=tuple(told.items()), ttft_ns=size * NS // 9_000,
            )
        )  # fmt: skip
    return calls


def daily(days: int, count: int, gap_s: float, start_ns: int = T0) -> list[int]:
    """Some calls a day."""
    return [
        start_ns + day * DAY + round(k * gap_s * NS) for day in range(days) for k in range(count)
    ]


NOT = [
    "context.growth", "context.compaction-loop", "cache.prefix-changed", "cache.expired",
    "cache.evicted", "cache.model-switch", "decode.output-growth", "cost.hidden-attempts",
]  # fmt: skip
MAY = ["prefill.long-prompt", "cache.below-minimum", "prefill.cache-miss", "cache.unused-writes"]


def inflated(
    calls: Sequence[Call], added: int = ADDED, price: str = "input", *, since_ns: int = STEP_AT,
    which: Callable[[Call], bool] = lambda _: True, **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """What the rule must say of first calls since a time."""
    ones = [one for one in calls if which(one) and one.at_ns >= since_ns and one.turn == 1]
    before = [one for one in calls if which(one) and one.at_ns < since_ns]
    money = sum(Decimal(PRICES[one.model][price]) * added / 1_000_000 for one in ones)
    told = expect(RULE, "prefill", len(ones), added, "tokens", NOT, MAY)
    onset = (max(one.at_ns for one in before), min(one.at_ns for one in ones))
    return told | {"cost_usd": money, "cost_tolerance": 0.05, "onset_ns": onset} | more


MAIN = firsts(daily(5, 26, 1_500))
TWIN = firsts(
    sorted([*daily(5, 26, 1_500), *daily(2, 14, 2_800, T0 + 3 * DAY)]), since_ns=T0 + 99 * DAY
)
# The traffic doubles on the day of the step: that is no part of what is added to each.
BUSIER = firsts(sorted([*daily(5, 22, 1_700), *daily(2, 24, 1_550, T0 + 3 * DAY + 90 * NS)]))
SYSTEM = firsts(daily(5, 26, 1_500), added=3_900, new=(9, 17_400, 18_700))
UNTOLD = firsts(daily(5, 26, 1_500), old=None, new=None)
LATE = T0 + 2 * DAY + 5 * 3_600 * NS
CANARY = [
    *firsts(daily(4, 18, 1_900), name="blue", route="blue", since_ns=T0 + 99 * DAY),
    *firsts(daily(4, 12, 2_700, T0 + 300 * NS), name="green", route="green", since_ns=LATE, seed=8),
]
MODELS = [
    *firsts(daily(5, 22, 1_700), name="small", model=SMALL, since_ns=LATE, base=3_100, added=5_600),
    *firsts(
        daily(5, 15, 2_500, T0 + 200 * NS), name="other", base=11_800, since_ns=T0 + 99 * DAY,
        spread=600, seed=9,
    ),
]  # fmt: skip


def _written(calls: Iterable[Call], head: int = 3_000) -> list[Call]:
    """Head read from the cache, the rest written to it."""
    return [replace(one, model=LARGE, read=head, written=one.prompt - head - 12) for one in calls]


def _goes_on(calls: Iterable[Call], turns: Callable[[int], int], growth: int = 1_400) -> list[Call]:
    """Each conversation has more calls, 40 s apart, which resend what was there."""
    told = []
    for n, one in enumerate(calls):
        for k in range(turns(n)):
            prompt = one.prompt + growth * k
            read = one.prompt + growth * (k - 1) - 12 if k else one.read
            told.append(
                replace(
                    one, at_ns=one.at_ns + 40 * k * NS, turn=k + 1, prompt=prompt, read=read,
                    written=prompt - read - 12 if one.written else 0, woken=k % 3 == 0,
                )
            )  # fmt: skip
    return told


SESSIONS = _goes_on(_written(firsts(daily(5, 20, 1_800), spread=140)), lambda n: 3 + n % 3)

FAR = T0 + 99 * DAY
# Conversations become longer from day to day; each begins as it always did.
LONGER = _goes_on(_written(firsts(daily(5, 16, 2_000), since_ns=FAR)), lambda n: 2 + n // 16 * 3)
# Reports begin with 14,000 tokens. From the third day on most calls are reports.
MIX = sorted(
    [
        *firsts(
            [*daily(2, 24, 1_600), *daily(3, 8, 4_800, T0 + 2 * DAY)], name="chat", route="chat",
            since_ns=FAR,
        ),
        *firsts(
            [*daily(2, 6, 6_000, T0 + NS), *daily(3, 26, 1_400, T0 + 2 * DAY + NS)], name="report",
            route="report", since_ns=FAR, base=14_000, spread=400, old=(14, 30_000, 5_000), seed=7,
        ),
    ],
    key=lambda one: one.at_ns,
)  # fmt: skip
PASTED = firsts(daily(5, 24, 1_600), base=9_000, spread=6_500, since_ns=FAR)
LESS = firsts(daily(5, 26, 1_500), base=13_000, added=-ADDED, old=NEW, new=OLD)


def _agents() -> list[Call]:
    """Later sessions start sub-agents, whose prompts are larger than a first call's."""
    calls = _written(firsts(daily(5, 18, 1_900), since_ns=FAR))
    told = list(calls)
    for n, one in enumerate(calls[54:]):
        told += [
            replace(
                one, at_ns=one.at_ns + (20 + 9 * k) * NS, session=f"agent{n}", parent=one.session,
                prompt=15_000 + 600 * k, read=3_000 if not k else 15_000 + 600 * (k - 1) - 12,
                written=11_988 if not k else 600, woken=False, turn=k + 1,
            )
            for k in range(3)
        ]  # fmt: skip
    return told


def _weeks(days: Iterable[int], start_ns: int) -> list[Call]:
    """Prompts of 6,200 tokens on working days, of 2,900 on the fewer calls of weekends."""
    told = []
    for day in days:
        rests = (start_ns // DAY + day) % 7 in (2, 3)
        times = [
            start_ns + day * DAY + k * (3_100 if rests else 1_150) * NS
            for k in range(9 if rests else 24)
        ]
        told += firsts(
            times, base=2_900 if rests else 6_200, since_ns=FAR, old=None, name=f"d{day}", seed=day
        )
    return told  # fmt: skip


SATURDAY = at("2026-02-14T07:30:00Z")
WEEKS = _weeks(range(19), SATURDAY)
ONE_WEEKEND = _weeks(range(6), SATURDAY)
TWO_STEPS = firsts(daily(8, 20, 1_700), old=None, new=None, added=2_600, spread=120)
TWO_STEPS = [
    replace(one, prompt=one.prompt + 3_100 * (one.at_ns >= T0 + 6 * DAY)) for one in TWO_STEPS
]
# Some paste texts of 31,000 tokens, right before the step, too.
LONG_TEXTS = [
    replace(one, prompt=one.prompt + 31_000 * (k in (9, 30, 58, 77, 80, 97, 120)))
    for k, one in enumerate(UNTOLD)
]
STRANGERS = [
    *_goes_on(firsts(daily(1, 14, 500), old=None, since_ns=FAR, base=3_000), lambda _: 6),
    *firsts(
        [T0 + 8_000 * NS + k * 90 * NS for k in range(40)], old=None, since_ns=FAR, base=7_700,
        name="once", seed=3,
    ),
]  # fmt: skip


_TWIN = silent([RULE, *NOT], MAY)
_TWIN_GROWS = silent([RULE, *NOT[1:]], [*MAY, "context.growth"])

CASES = {
    "main": (writer(records(MAIN, openai_form)), inflated(MAIN, told=[5_200, 12_350])),
    "twin": (writer(records(TWIN, openai_form)), _TWIN),
    "system_prompt": (writer(records(SYSTEM, openai_form)), inflated(SYSTEM, 3_900)),
    "busier": (writer(records(BUSIER, openai_form)), inflated(BUSIER)),
    "counts_alone": (writer(records(UNTOLD, openai_form)), inflated(UNTOLD)),
    "gemini": (
        writer(records(UNTOLD, gemini_form, provider="gcp.gemini")), inflated(UNTOLD),
    ),
    "streams": (writer(streams([replace(x, output=9) for x in MAIN])), inflated(MAIN)),
    "one_route": (
        writer(records(CANARY, openai_form)),
        inflated(CANARY, since_ns=LATE, which=lambda one: one.session.startswith("green")),
    ),
    "one_model": (
        writer(records(MODELS, openai_form)),
        inflated(MODELS, 5_600, since_ns=LATE, which=lambda one: one.model == SMALL),
    ),
    "gateway": (
        writer(spend_logs(_written(UNTOLD))), inflated(_written(UNTOLD), price="cache_write_short"),
    ),
    "anthropic": (
        writer(records(_written(MAIN), anthropic_form)),
        inflated(_written(MAIN), price="cache_write_short"),
    ),
    "transcripts": (
        writer(transcripts(_written(UNTOLD))),
        inflated(_written(UNTOLD), price="cache_write_short"),
    ),
    "rollouts": (writer(rollouts(UNTOLD)), inflated(UNTOLD)),
    "sessions": (writer(transcripts(SESSIONS)), {**inflated(SESSIONS), "cost_tolerance": 1.0}),
    "twin_longer": (writer(transcripts(LONGER)), _TWIN_GROWS),
    "twin_longer_records": (writer(records(LONGER, anthropic_form)), _TWIN_GROWS),
    "twin_mix": (writer(records(MIX, openai_form)), _TWIN),
    "twin_pasted": (writer(records(PASTED, openai_form)), _TWIN),
    "twin_less": (writer(records(LESS, openai_form)), _TWIN),
    "twin_agents": (writer(transcripts(_agents())), _TWIN_GROWS),
    "two_steps": (
        writer(records(TWO_STEPS, openai_form)),
        inflated(
            TWO_STEPS, 2_600 + 3_100 * sum(one.at_ns >= T0 + 6 * DAY for one in TWO_STEPS)
            // sum(one.at_ns >= STEP_AT for one in TWO_STEPS),
        ),
    ),
    "long_texts": (
        writer(records(LONG_TEXTS, openai_form)),
        {**inflated(LONG_TEXTS), "tolerance": 0.4, "cost_tolerance": 0.4},
    ),
    "twin_weekends": (writer(records(WEEKS, openai_form)), _TWIN),
    "twin_one_weekend": (writer(records(ONE_WEEKEND, openai_form)), _TWIN),
    "twin_strangers": (writer(records(STRANGERS, openai_form)), _TWIN_GROWS),
    "twin_gateway": (writer(spend_logs(_written(TWIN))), _TWIN),
}  # fmt: skip
