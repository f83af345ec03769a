"""Content changes behind the head of a prompt, so that all after it is read anew.

main: a session of 31 calls, 95 s apart. A clock stands right behind the tool block of 11,264 tokens
and is another on every call: the cache serves 11,264 tokens and all of the rest is written again.

twin: the text changes with the date only, over three days: two calls of 66 pay for it.

The variants: the change on every call or on the first call after a person spoke; other heads, other
cadences, several sessions at once; transcripts, rollouts, streams with and without hashes, records
of three vendors' forms, a gateway's rows, block traces. The innocent ones read only the head too,
and for other reasons: it is all that their conversations share, history was compacted, the model
was switched, a sub-agent began, the day changed.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS
from cases._build import MS, at, expect, silent
from cases._calls import (
    LARGE,
    OTHER,
    SMALL,
    Call,
    anthropic_form,
    gemini_form,
    openai_form,
    records,
    rollouts,
    size,
    spend_logs,
    streams,
    traces,
    transcripts,
    usd,
    writer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RULE = "cache.prefix-changed"
T0 = at("2026-05-06T08:20:00Z")
DAY = 86_400 * NS
HEAD = 11_264
RATE = 9_000
"""Prompt tokens a second that are computed."""


def session(
    name: str, times: Sequence[int], *, version: Callable[[int], object], head: int = HEAD,
    first: int = 19_000, growth: int = 850, fresh: int = 6, step: int = 1, writes: bool = True,
    model: str = LARGE, every: int = 1, **fixed: Any,
) -> list[Call]:  # fmt: skip
    """A conversation whose text of 60 tokens behind the head is ``version(call)``. ``step``: cached
    tokens come in multiples of it; ``every``: calls of a turn."""
    calls: list[Call] = []
    for k, when in enumerate(times):
        clock = f"{name}-{version(k)}"
        body = first - 60 + growth * k
        content = (
            (f"{model}-head", head),
            (clock, 60),
            (f"{name}-body", body),
            (f"{name}-{k}", fresh),
        )
        before = calls[-1].content[1][0] if calls else None
        kept = 0 if before is None else head if before != clock else size(calls[-1].content) - fresh
        prompt = size(content)
        read = kept // step * step
        calls.append(
            Call(
                at_ns=when, session=name, prompt=prompt, read=read,
                written=prompt - fresh - read if writes else 0, model=model, turn=k + 1,
                woken=k % every == 0, content=content,
                ttft_ns=60 * MS + (prompt - read) * NS // RATE, **fixed,
            )
        )  # fmt: skip
    return calls


def each(start_ns: int, count: int, gap_s: float) -> list[int]:
    """Times, not quite even."""
    return [start_ns + round((k * gap_s + 7 * k % 5) * NS) for k in range(count)]


def turns(start_ns: int, count: int, calls: int, pause_s: float, gap_s: float) -> list[int]:
    """Turns of some calls each, with a pause for the person before each."""
    whole = pause_s + gap_s * (calls - 1)
    return [
        start_ns + round((k // calls * whole + k % calls * gap_s) * NS)
        for k in range(count * calls)
    ]


def lost(calls: Sequence[Call]) -> dict[int, int]:
    """Index of a call -> tokens that the call before it had left in the cache, and it could not
    read, because the text behind the head had changed."""
    found = {}
    for k, one in enumerate(calls):
        if k and one.session == calls[k - 1].session:
            before = calls[k - 1]
            if before.content[1] != one.content[1]:
                found[k] = before.prompt - before.content[3][1] - one.read
    return found


NOT = [
    "cache.expired", "cache.evicted", "cache.model-switch", "cache.below-minimum",
    "context.compaction-loop", "context.base-inflation",
]  # fmt: skip
MAY = ["context.growth", "prefill.cache-miss", "prefill.long-prompt", "cache.unused-writes"]


def changed(
    sessions: Sequence[Sequence[Call]], dear: str, *, head: int = HEAD, **more: Any
) -> dict[str, Any]:
    """What the rule must say of these sessions."""
    tokens = [(one[0].model, lost(one)) for one in sessions]
    total = sum(sum(found.values()) for _, found in tokens)
    money = sum(usd(sum(found.values()), model, dear) for model, found in tokens)
    requests = sum(len(found) for _, found in tokens)
    told = expect(RULE, "prefill", requests, total, "tokens", NOT, MAY)
    rounded = 0.005 if dear != "input" else 0.02
    return told | {"cost_usd": money, "cost_tolerance": rounded, "told": [head]} | more


def _unpriced(told: dict[str, Any]) -> dict[str, Any]:
    """The same of a log that does not tell what was read."""
    return {name: value for name, value in told.items() if name != "cost_usd"}


def all_of(sessions: Sequence[Sequence[Call]]) -> list[Call]:
    """Their calls."""
    return [one for calls in sessions for one in calls]


def always(k: int) -> int:
    """Another text on every call."""
    return k


MAIN = [session("s-main", each(T0, 31, 95), version=always)]
WOKEN = [
    session(
        "s-woken",
        turns(T0, 14, 5, 160, 9),
        version=lambda k: k // 5,
        every=5,
        head=8_200,
        growth=420,
    )
]
ROLLOUT = [
    session(
        "th-7", each(T0, 40, 33), version=always, model=OTHER, head=6_000, first=9_500,
        growth=1_300, step=128, writes=False,
    )
]  # fmt: skip
HASHED = [
    session(
        f"chat-{n}", each(T0 + n * 11 * NS, 18, 48), version=always, model=OTHER, head=4_000,
        first=7_000, growth=600, step=16, writes=False,
    )
    for n in range(3)
]  # fmt: skip
LONG = [
    session(
        "desk", each(T0, 26, 700), version=always, head=30_720, first=9_000, growth=2_100, long=True
    )
]
GEMINI = [
    session(
        "g-1", each(T0, 44, 52), version=always, model=OTHER, head=12_288, first=16_000, growth=500,
        step=1, writes=False,
    )
]  # fmt: skip
CLEAN = [
    session(f"ok-{n}", each(T0 + n * 19 * NS, 25, 61), version=lambda _: 0, head=HEAD)
    for n in range(2)
]
MIXED = [
    session(f"bad-{n}", each(T0 + n * 23 * NS, 25, 66), version=always, model=SMALL, head=5_120)
    for n in range(2)
]
# From a rollout on: no call of the first twelve changes, all later ones do.
SINCE = [session("s-since", each(T0, 40, 80), version=lambda k: max(0, k - 12))]


def _short(calls: list[Call]) -> list[Call]:
    """Several turns told in streams: answers of some tokens, no more."""
    return [replace(one, output=12) for one in calls]


def _daily(starts: Sequence[int], hour_s: int, name: str, **fixed: Any) -> list[Call]:
    """Calls over several days; the text changes at an hour of the UTC day."""
    times = sorted(starts)
    return session(name, times, version=lambda k: (times[k] - hour_s * NS) // DAY, **fixed)


UTC_DAYS = [_daily(each(at("2026-05-06T23:10:00Z"), 40, 140), 0, "s-night")]
ZONE_DAYS = [
    _daily(
        [
            at("2026-05-04T14:31:00Z") + day * DAY + (k * 170 + n * 40) * NS
            for day in range(5)
            for k in range(18)
        ],
        15 * 3_600, f"tokyo-{n}", long=True, first=25_000 + 900 * n,
    )
    for n in range(3)
]  # fmt: skip


def _expired_nights(days: Sequence[Sequence[Call]]) -> list[list[Call]]:
    """Between two days the cache is gone altogether."""
    told = []
    for calls in days:
        kept = [calls[0]]
        for before, one in pairwise(calls):
            gone = one.at_ns - before.at_ns > 3_600 * NS
            kept.append(replace(one, read=0, written=one.prompt - one.fresh) if gone else one)
        told.append(kept)
    return told


def _headed() -> list[Call]:
    """Thirty conversations of one or two calls that share nothing but the head."""
    calls = []
    for n in range(30):
        own = session(f"q-{n:02d}", each(T0 + n * 70 * NS, 1 + n % 2, 20), version=lambda _: 0)
        read = HEAD if n else 0
        first = replace(own[0], read=read, written=own[0].prompt - own[0].fresh - read)
        calls += [first, *own[1:]]
    return calls


def _agents() -> list[Call]:
    """A long conversation that starts a sub-agent now and then, which shares the tools with it."""
    calls = list(CLEAN[0])
    for n in range(6):
        start = calls[3 * n].at_ns + 10 * NS
        own = session(f"sub{n}", each(start, 4, 8), version=lambda _: 0, first=3_000, growth=700)
        first = replace(own[0], read=HEAD, written=own[0].prompt - own[0].fresh - HEAD)
        calls += [replace(one, parent="ok-0", woken=False) for one in (first, *own[1:])]
    return calls


def _compacted() -> list[Call]:
    """History is compacted at every 15th call: the prompt shrinks to a new one behind the head."""
    calls: list[Call] = []
    for k, when in enumerate(each(T0, 60, 45)):
        part, nth = divmod(k, 15)
        prompt = 28_000 + 4_100 * nth + (3_000 if part else 0)
        read = 0 if not k else HEAD if not nth else calls[-1].prompt - 6
        calls.append(
            Call(
                at_ns=when, session="s-long", prompt=prompt, read=read, written=prompt - 6 - read,
                woken=k % 4 == 0,
            )
        )  # fmt: skip
    return calls


def _switched() -> list[Call]:
    """The model is switched at two places; each model has a cache of its own."""
    own = session("s-two", each(T0, 30, 40), version=lambda _: 0)
    told = []
    for k, one in enumerate(own):
        new = k in (10, 20)
        read = 0 if new else one.read
        model = SMALL if 10 <= k < 20 else LARGE
        told.append(replace(one, model=model, read=read, written=one.prompt - one.fresh - read))
    return told


_TWIN = silent([RULE, *NOT], MAY)
_TWIN_LOST = silent(
    [RULE, "cache.evicted", "cache.below-minimum", "context.base-inflation"],
    [*MAY, "cache.expired", "cache.model-switch", "context.compaction-loop"],
)

CASES = {
    "main": (writer(transcripts(MAIN[0])), changed(MAIN, "cache_write_short")),
    "twin": (writer(transcripts(UTC_DAYS[0])), _TWIN),
    "bare_lines": (writer(transcripts(MAIN[0], asked=False)), changed(MAIN, "cache_write_short")),
    "woken": (writer(transcripts(WOKEN[0])), changed(WOKEN, "cache_write_short", head=8_200)),
    "since": (
        writer(transcripts(SINCE[0])),
        changed(
            SINCE, "cache_write_short",
            onset_ns=(SINCE[0][12].at_ns, SINCE[0][13].end_ns),
        ),
    ),
    "rollouts": (writer(rollouts(ROLLOUT[0])), changed(ROLLOUT, "input", head=5_888)),
    "hashes": (
        writer(streams(_short(all_of(HASHED)), block=500)), changed(HASHED, "input", head=4_000),
    ),
    "streams": (writer(streams(_short(all_of(HASHED)))), changed(HASHED, "input", head=4_000)),
    "records_openai": (
        writer(records(all_of(ROLLOUT), openai_form)), changed(ROLLOUT, "input", head=5_888),
    ),
    "records_long_writes": (
        writer(records(all_of(LONG), anthropic_form)),
        changed(LONG, "cache_write_long", head=30_720),
    ),
    "records_gemini": (
        writer(records(all_of(GEMINI), gemini_form, provider="gcp.gemini")),
        changed(GEMINI, "input", head=12_288),
    ),
    "gateway_mixed": (
        writer(spend_logs(all_of([*CLEAN, *MIXED]))),
        changed(MIXED, "cache_write_short", head=5_120),
    ),
    "block_traces": (writer(traces(MAIN[0])), _unpriced(changed(MAIN, "input"))),
    "twin_zone": (writer(transcripts(all_of(_expired_nights(ZONE_DAYS)))), _TWIN_LOST),
    "twin_gateway_days": (writer(spend_logs(all_of(_expired_nights(ZONE_DAYS)))), _TWIN_LOST),
    "twin_shared_head": (writer(transcripts(_headed())), _TWIN),
    "twin_shared_head_records": (writer(records(_headed(), anthropic_form)), _TWIN),
    "twin_agents": (writer(transcripts(_agents())), _TWIN),
    "twin_compacted": (writer(transcripts(_compacted())), _TWIN_LOST),
    "twin_switched": (writer(transcripts(_switched())), _TWIN_LOST),
    "twin_clean": (writer(transcripts(all_of(CLEAN))), _TWIN),
    "twin_block_traces": (writer(traces(all_of(CLEAN))), _TWIN),
}  # fmt: skip
