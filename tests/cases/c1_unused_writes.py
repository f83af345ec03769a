"""Cache writes that are paid for and never read.

main: 44 extractions, each one call of its own with a document of its own, written to the cache
behind a common head of 2,300 tokens; beside them a conversation that does read what it writes.

twin: two questions for each document: the second reads what the first wrote.

The variants: writes of an hour, other logs, vendors that count writes within the input, calls that
tell no session. The innocent ones end a conversation, lose a prefix for a reason, share what they
write, or the log ends before anybody could know.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS
from cases._build import MS, at, expect, silent
from cases._calls import (
    LARGE,
    OTHER,
    SMALL,
    Call,
    anthropic_form,
    anthropic_plain_form,
    openai_write_form,
    records,
    spend_logs,
    streams,
    transcripts,
    usd,
    writer,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

RULE = "cache.unused-writes"
T0 = at("2026-07-02T08:10:00Z")
SHORT, HOUR = 300, 3_600
HEAD = 2_300


def conversation(
    name: str, count: int, gap_s: float, *, first: int = 9_000, growth: int = 700, fresh: int = 9,
    start_s: float = 0, head: int = 0, **fixed: Any,
) -> list[Call]:  # fmt: skip
    """Calls that each read what the one before left."""
    calls: list[Call] = []
    for k in range(count):
        prompt = first + growth * k
        read = calls[-1].prompt - fresh if calls else head
        calls.append(
            Call(
                at_ns=T0 + round((start_s + gap_s * k) * NS), session=name, prompt=prompt,
                read=read, written=prompt - fresh - read, turn=k + 1,
                ttft_ns=90 * MS + (prompt - read) * 110_000, **fixed,
            )
        )  # fmt: skip
    return calls


def alone(
    count: int, gap_s: float, sizes: Sequence[int], *, head: int = HEAD, mark: str = "doc",
    start_s: float = 0, **fixed: Any,
) -> list[Call]:  # fmt: skip
    """One-call sessions; the first writes the head too."""
    return [
        one
        for k in range(count)
        for one in conversation(
            f"{mark}-{k:03d}", 1, 0, first=head + sizes[k % len(sizes)],
            start_s=start_s + gap_s * k, head=head if k else 0, **fixed,
        )
    ]  # fmt: skip


def wasted(calls: Sequence[Call], life_s: float, head: int = HEAD) -> list[tuple[Call, int]]:
    """Those that stand alone and whose lifetime ends within the log, and what they wrote behind the
    head that others read."""
    last = max(one.at_ns for one in calls)
    sessions = [one.session for one in calls]
    return [
        (one, one.read + one.written - max(head, one.read))
        for one in calls
        if sessions.count(one.session) == 1 and one.at_ns + life_s * NS <= last
    ]


NOT = [
    "cache.prefix-changed", "cache.expired", "cache.evicted", "cache.model-switch",
    "cache.below-minimum", "prefill.cache-miss", "context.base-inflation",
]  # fmt: skip
MAY = ["context.growth", "prefill.long-prompt"]


def found(calls: Sequence[Call], life_s: float = SHORT, head: int = HEAD) -> dict[str, Any]:
    """What the rule must say; the fee is what writing costs beyond plain input."""
    rows = wasted(calls, life_s, head)
    kind = "cache_write_long" if rows[0][0].long else "cache_write_short"
    fee = sum(usd(tokens, one.model, kind, "input") for one, tokens in rows)
    total = sum(tokens for _, tokens in rows)
    told = expect(RULE, "prefill", len(rows), total, "tokens", NOT, MAY)
    return told | {"cost_usd": fee}


SIZES = [6_100, 8_400, 7_250, 9_900]
CHAT = conversation("chat", 24, 80, start_s=11)
MAIN = [*alone(44, 46, SIZES), *CHAT]
ASKED_TWICE = [
    one
    for k in range(22)
    for one in conversation(
        f"doc-{k:03d}", 2, 35, first=HEAD + SIZES[k % 4], growth=60, start_s=92 * k,
        head=HEAD if k else 0,
    )
]  # fmt: skip
HOURLY = [
    *alone(30, 400, [11_000, 5_600], long=True),
    *conversation("chat", 20, 700, start_s=40, long=True),
]
CHEAP = [*alone(36, 60, [4_800, 5_300, 7_700], model=SMALL), *conversation("chat", 12, 150)]
WITHIN = alone(50, 75, [3_900, 6_400], model=LARGE, head=0)
# Everybody's first call writes little behind a head that all share; their last write is not read.
TALKS = [
    one
    for k in range(20)
    for one in conversation(
        f"talk-{k:02d}", 6, 30, first=14_000, growth=900, start_s=200 * k, head=13_200 if k else 0
    )
]
BRIEF = alone(20, 12, SIZES)
# Two conversations whose pauses are longer than the cache lives.
PAUSES = [
    replace(one, read=0, written=one.prompt - 9) if k % 3 == 0 and k else one
    for n in range(2)
    for k, one in enumerate(conversation(f"slow-{n}", 18, 190, start_s=20 * n))
]
PAUSES = [replace(one, at_ns=one.at_ns + ((one.turn or 1) - 1) // 3 * 500 * NS) for one in PAUSES]
FEW = [*alone(3, 400, [5_000]), *conversation("chat", 40, 60)]

_SILENT = silent([RULE, *NOT], MAY)

CASES = {
    "main": (writer(records(MAIN, anthropic_form)), found(MAIN)),
    "twin": (writer(records([*ASKED_TWICE, *CHAT], anthropic_form)), _SILENT),
    "transcripts": (writer(transcripts(MAIN)), found(MAIN)),
    "streams": (writer(streams(MAIN, usage=anthropic_form)), found(MAIN)),
    "spend_logs": (writer(spend_logs(MAIN)), found(MAIN)),
    "hourly": (writer(records(HOURLY, anthropic_form)), found(HOURLY, HOUR)),
    "cheap": (writer(records(CHEAP, anthropic_plain_form)), found(CHEAP)),
    "within_the_input": (
        writer(records(WITHIN, openai_write_form)),
        found(WITHIN, 1_800, 0),
    ),
    "twin_last_calls": (writer(transcripts(TALKS)), _SILENT),
    "twin_log_ends": (writer(records(BRIEF, anthropic_form)), _SILENT),
    "twin_pauses": (
        writer(transcripts(PAUSES)),
        silent([RULE, "cache.evicted", "cache.below-minimum"], [*MAY, "cache.expired"]),
    ),
    "twin_few": (writer(records(FEW, anthropic_form)), _SILENT),
    "twin_no_fee": (
        writer(records([replace(one, model=OTHER, written=0) for one in MAIN])),
        _SILENT,
    ),
}  # fmt: skip
