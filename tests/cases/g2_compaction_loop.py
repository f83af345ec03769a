"""Compaction that buys nothing: a few calls later the prompt is full and compacted again.

main: an agent reaches 96,000 tokens; a compaction leaves 70,000, and the same files are read again:
four calls later it is there again, nine times over.

twin: the same agent; a compaction leaves 14,000, and it goes on at its usual pace for 34 calls.

The variants: much freed and read again at once, results of tools known by their hashes, several
agents at once. The innocent ones have two compactions, go on at their usual pace, call a helper
with a small prompt in between, or drop old results now and then.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS
from cases._build import MS, at, expect, silent
from cases._calls import (
    LARGE,
    OTHER,
    Call,
    anthropic_form,
    openai_form,
    records,
    rollouts,
    streams,
    transcripts,
    writer,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

RULE = "context.compaction-loop"
T0 = at("2026-07-02T13:05:00Z")
FULL = 96_000


def agent(
    name: str, rounds: int, *, left: int, back: int, pace: int = 2_400, first: int = 21_000,
    start_ns: int = T0, model: str = LARGE, after: int = 0,
) -> list[Call]:  # fmt: skip
    """Grows at its pace until it is full, then is compacted ``rounds`` times to ``left`` tokens,
    each time full again after ``back`` calls; ``after`` more calls follow."""
    sizes = list(range(first, FULL, pace))
    for _ in range(rounds):
        sizes += [left + (FULL - left) * k // back for k in range(back + 1)]
    sizes += [sizes[-1] + 300 * k for k in range(1, after + 1)]
    calls: list[Call] = []
    for k, prompt in enumerate(sizes):
        before = calls[-1] if calls else None
        kept = 0 if before is None else before.prompt - 8 if prompt >= before.prompt else 9_000
        calls.append(
            Call(
                at_ns=start_ns + k * 34 * NS, session=name, prompt=prompt, read=kept,
                written=prompt - kept - 8 if model == LARGE else 0, model=model, woken=k % 9 == 0,
                output=30, ttft_ns=300 * MS + (prompt - kept) * NS // 20_000,
            )
        )  # fmt: skip
    return calls


NOT = [
    "context.growth", "context.base-inflation", "cache.prefix-changed", "cache.expired",
    "cache.model-switch", "decode.output-growth",
]  # fmt: skip
MAY = ["prefill.long-prompt", "prefill.cache-miss", "cache.unused-writes", "cache.evicted"]


def looped(rounds: int, left: int, **more: Any) -> dict[str, Any]:
    """What the rule must say."""
    return expect(RULE, "prefill", rounds, FULL - left, "tokens", NOT, MAY) | more


def _with_parts(calls: Sequence[Call], results: int, *, same: bool) -> dict[str, list[str]]:
    """Records with the hashes of the tool results in each prompt: one comes with each call, and
    goes with a compaction; ``same``: the files read after it are those from before."""
    lines = records(calls, anthropic_form)["usage.jsonl"]
    told: list[str] = []
    kept: list[int] = []
    for k, (one, line) in enumerate(zip(calls, lines, strict=True)):
        if k and one.prompt < calls[k - 1].prompt:
            kept = []
        kept.append(k % results if same else k)
        parts = [{"kind": "system", "chars": 9_000, "hash": "sys"}] + [
            {"kind": "tool_result", "chars": 12_000, "hash": f"file-{part}"} for part in kept
        ]
        told.append(json.dumps(json.loads(line) | {"prompt_parts": parts}))
    return {"usage.jsonl": told}


def _trimmed() -> list[Call]:
    """Now and then the oldest results are dropped, an eighth of the prompt."""
    calls = agent("s-trim", 0, left=0, back=1)
    sizes = [one.prompt for one in calls]
    for _ in range(4):
        sizes += list(range(84_000, FULL, 700))
    return [
        replace(
            calls[0], at_ns=T0 + k * 34 * NS, session="s-trim", prompt=size,
            read=0 if not k else 9_000 if size < sizes[k - 1] else sizes[k - 1] - 8,
            written=size - 8 - (0 if not k else 9_000 if size < sizes[k - 1] else sizes[k - 1] - 8),
        )
        for k, size in enumerate(sizes)
    ]  # fmt: skip


def _helpers() -> list[Call]:
    """A long conversation with a small helper call of its own model between each two calls."""
    told = []
    for one in agent("s-help", 0, left=0, back=1):
        told.append(one)
        told.append(
            replace(one, at_ns=one.at_ns + 12 * NS, prompt=1_400, read=0, written=0, woken=False)
        )
    return told


MAIN = agent("s-loop", 9, left=70_000, back=4)
TWIN = agent("s-well", 5, left=14_000, back=34)
REREAD = agent("s-reread", 5, left=22_000, back=6)
OPENAI = agent("s-codex", 6, left=64_000, back=5, model=OTHER, pace=3_100)
FLEET = [
    *(
        one for n in range(3)
        for one in agent(f"bad-{n}", 4, left=66_000, back=3, start_ns=T0 + n * NS)
    ),
    *(
        one for n in range(3)
        for one in agent(f"ok-{n}", 2, left=12_000, back=30, start_ns=T0 + n * NS)
    ),
]  # fmt: skip
TWICE = agent("s-twice", 2, left=70_000, back=4, after=9)
SLOW = agent("s-slow", 4, left=30_000, back=26)

_TWIN = silent([RULE, *NOT], MAY)

CASES = {
    "main": (writer(transcripts(MAIN)), looped(9, 70_000)),
    "twin": (writer(transcripts(TWIN)), _TWIN),
    "reread": (writer(records(REREAD, anthropic_form)), looped(5, 22_000)),
    "results_told": (
        writer(_with_parts(agent("s-parts", 5, left=40_000, back=9, pace=6_300), 8, same=True)),
        looped(5, 40_000),
    ),
    "rollouts": (writer(rollouts(OPENAI)), looped(6, 64_000)),
    "streams": (writer(streams([replace(x, output=9) for x in OPENAI])), looped(6, 64_000)),
    "records": (writer(records(OPENAI, openai_form)), looped(6, 64_000)),
    "fleet": (writer(records(FLEET, anthropic_form)), looped(12, 66_000, told=[3])),
    "twin_results_told": (
        writer(_with_parts(agent("s-parts", 5, left=40_000, back=9, pace=6_300), 8, same=False)),
        _TWIN,
    ),
    "twin_twice": (writer(transcripts(TWICE)), _TWIN),
    "twin_slow": (writer(transcripts(SLOW)), _TWIN),
    "twin_records": (writer(records(TWIN, anthropic_form)), _TWIN),
    "twin_trimmed": (writer(transcripts(_trimmed())), _TWIN),
    "twin_helpers": (writer(transcripts(_helpers())), _TWIN),
}  # fmt: skip
