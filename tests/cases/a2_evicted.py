"""Prefixes that other traffic pushed out of an engine's cache.

main: seven conversations on an engine whose pool holds 184,000 tokens. Four of them pause;
meanwhile 36 strangers with prompts of 5,200 tokens come by, and what the four had left is dropped
as least recently used. They lose all, once, with prompts that are unchanged by their hashes.

twin: no old conversation comes back; new ones begin with prompts as long. There was nothing to hit.

Every cached count is that of a pool which drops the least recently used blocks. The variants:
hashes of other blocks, part of a prefix left, two waves, noise, counts without hashes. The innocent
ones lose as much for other reasons: a restart, another replica, a changed prompt; or lose nothing.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS, engine_line
from cases._build import MS, at, expect, silent
from cases._calls import (
    OTHER,
    Call,
    deployment,
    openai_form,
    pieces,
    records,
    spend_logs,
    streams,
    writer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

EVICTED, MISSED = "cache.evicted", "prefill.cache-miss"
T0 = at("2026-03-18T13:40:00Z")
BASE_NS, RATE = 40 * MS, 7_000


@dataclass
class Pool:
    """A prefix cache: blocks of prompts, the least recently used ones leave when it is full. Of one
    request the last block leaves first."""

    tokens: int
    block: int = 16
    held: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def serve(self, prompt: Sequence[tuple[str, int]], answer: tuple[str, int]) -> int:
        """Tokens of the prompt that are there; then it and its answer are."""
        count = sum(tokens for _, tokens in prompt)
        keys, chain = [], ""
        for piece in pieces((*prompt, answer), self.block):
            chain = str(hash((chain, piece)))
            keys.append(chain)
        whole = (count - 1) // self.block
        hit = next((i for i, key in enumerate(keys[:whole]) if key not in self.held), whole)
        for key in reversed(keys):
            self.held[key] = None
            self.held.move_to_end(key)
        while len(self.held) > self.tokens // self.block:
            self.held.popitem(last=False)
        return hit * self.block


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A turn of a conversation to come: its prompt repeats the one before and that one's answer."""

    at_s: float
    session: str
    turn: int
    first: int
    growth: int
    output: int = 16
    told: tuple[tuple[str, Any], ...] = ()
    version: int = 0
    """Another version is another text from the start on, behind the head."""
    head: int = 0
    """Tokens of a system prompt that all share."""

    def content(self) -> tuple[tuple[str, int], ...]:
        """Pieces of its prompt: user's text and answers in turn."""
        name = f"{self.session}.{self.version}"
        told = [("head", self.head)] if self.head else []
        told.append((f"{name}-u1", self.first))
        for n in range(2, self.turn + 1):
            told += [(f"{name}-a{n - 1}", self.output), (f"{name}-u{n}", self.growth - self.output)]
        return tuple(told)


def served(
    asks: Iterable[Ask], pool: Pool, *, flushed_s: float | None = None, noise: float = 0.0,
    seed: int = 3,
) -> list[Call]:  # fmt: skip
    """Calls in order of time, as the pool serves them."""
    rng = random.Random(seed)
    calls = []
    for ask in sorted(asks, key=lambda one: one.at_s):
        if flushed_s is not None and ask.at_s >= flushed_s:
            pool.held.clear()
            flushed_s = None
        content = ask.content()
        read = pool.serve(content, (f"{ask.session}.{ask.version}-a{ask.turn}", ask.output))
        prompt = sum(tokens for _, tokens in content)
        ttft = BASE_NS + (prompt - read) * NS // RATE
        calls.append(
            Call(
                at_ns=T0 + round(ask.at_s * NS), session=ask.session, prompt=prompt, read=read,
                output=ask.output, model=OTHER, turn=ask.turn, content=content, told=ask.told,
                ttft_ns=round(ttft * rng.uniform(1 - noise, 1 + noise)),
            )
        )  # fmt: skip
    return calls


def talk(
    name: str, times: Iterable[float], first: int = 2_400, growth: int = 1_700, **fixed: Any
) -> list[Ask]:
    """A conversation with a turn at each of these times."""
    return [
        Ask(at_s=when, session=name, turn=n, first=first, growth=growth, **fixed)
        for n, when in enumerate(times, 1)
    ]


def every(start: float, count: int, gap: float) -> list[float]:
    """Times, s."""
    return [start + gap * k for k in range(count)]


def strangers(
    start: float, count: int, tokens: int, gap: float = 1.1, mark: str = "x"
) -> list[Ask]:
    """Conversations of one turn, each with a prompt of its own."""
    return [
        Ask(at_s=start + gap * k, session=f"{mark}{k:03d}", turn=1, first=tokens, growth=0)
        for k in range(count)
    ]


STEADY = [
    *talk("warm-0", every(1, 20, 9)),
    *talk("warm-1", every(3, 12, 9), first=3_000, growth=1_500),
    *talk("rest", [0, 4, 8.5, 119], first=2_000, growth=900),
]
PAUSED = [
    one
    for n in range(4)
    for one in talk(f"back-{n}", [*every(4 + n, 7, 9), *every(160 + 2 * n, 3, 9)], growth=1_900)
]
CAPACITY = 184_000
MAIN = served([*STEADY, *PAUSED, *strangers(108, 36, 5_200)], Pool(CAPACITY))
TWIN = served(
    [
        *STEADY,
        *[one for one in PAUSED if one.at_s < 150],
        *strangers(108, 36, 5_200),
        *strangers(160, 3, 13_800, mark="new"),
    ],
    Pool(CAPACITY),
)


def lost(calls: Sequence[Call], least: int = 500) -> list[tuple[Call, int]]:
    """Calls that read less than the call before of their conversation had left, and by how much:
    its prompt and its answer, in whole blocks."""
    last: dict[str, Call] = {}
    found = []
    for one in calls:
        if before := last.get(one.session):
            kept = (before.prompt + before.output) // 16 * 16
            if kept - one.read >= least:
                found.append((one, kept - one.read))
        last[one.session] = one
    return found


def log_of(capacity: int) -> list[str]:
    """One line of an engine's start."""
    return [
        engine_line(
            T0 - 40 * NS, f"GPU KV cache size: {capacity:,} tokens", process="EngineCore", pid=77,
            where="kv_cache_utils.py:864",
        )
    ]  # fmt: skip


NOT = [
    "cache.prefix-changed", "cache.expired", "cache.model-switch", "cache.below-minimum",
    "context.base-inflation", "context.compaction-loop", "queue.saturation", "load.cold-start",
]  # fmt: skip
MAY = ["context.growth", "prefill.long-prompt"]


def missed(calls: Sequence[Call], not_: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """What prefill.cache-miss must say: extra time to first token of a call that lost."""
    losses = lost(calls)
    mean = sum(tokens for _, tokens in losses) / len(losses) / RATE
    told = expect(MISSED, "prefill", len(losses), mean, "s", [*NOT, *not_], MAY)
    return told | more


def evicted(
    calls: Sequence[Call], of: Callable[[Call], bool] = lambda _: True, **more: Any
) -> dict[str, Any]:
    """Both rules: the tokens that were lost, and the time that cost."""
    losses = [(one, count) for one, count in lost(calls) if of(one)]
    tokens = sum(count for _, count in losses)
    first = min(one.at_ns for one, _ in losses)
    told = expect(EVICTED, "prefill", len(losses), tokens, "tokens", NOT, MAY)
    return told | {"also": [missed(calls)], "onset_ns": (first - 60 * NS, first)} | more


def with_log(calls: Sequence[Call], capacity: int = CAPACITY, block: int = 400) -> Any:
    """Stream events with hashes, and the size of the pool."""
    return writer(streams(calls, block=block) | {"engine.log": log_of(capacity)})


# Two waves: each pushes out other conversations, and all come back.
WAVES = served(
    [
        *talk("warm", every(2, 60, 7), growth=700),
        *[
            one
            for n in range(3)
            for one in talk(f"a-{n}", [*every(5 + n, 5, 8), 150 + n, 158 + n, 400 + n], first=4_100)
        ],
        *[
            one
            for n in range(2)
            for one in talk(
                f"b-{n}", [*every(190 + n, 6, 8), 390 + 2 * n, 398 + 2 * n], first=3_300
            )
        ],
        *strangers(60, 50, 6_100, mark="y"),
        *strangers(250, 60, 5_300, mark="z"),
    ],
    Pool(240_000),
)
# The pool gives up only the end of what is kept: part of the prefix is still there.
PART = served(
    [
        *talk("warm", every(2, 24, 8), growth=900),
        *[
            one
            for n in range(4)
            for one in talk(
                f"p-{n}", [*every(5 + 2 * n, 6, 9), 140 + 3 * n], first=9_000, growth=2_300
            )
        ],
        *strangers(66, 21, 5_900),
    ],
    Pool(214_000),
)
NOISY = served([*STEADY, *PAUSED, *strangers(108, 36, 5_200)], Pool(CAPACITY), noise=0.06)
RESTART = served([*STEADY, *PAUSED], Pool(CAPACITY), flushed_s=112)
ROOM = served([*STEADY, *PAUSED, *strangers(108, 36, 5_200)], Pool(640_000))
CHANGED = served(
    [
        *STEADY,
        *[replace(one, version=1) if one.at_s > 150 else one for one in PAUSED],
        *strangers(108, 36, 5_200),
    ],
    Pool(640_000),
)


def _replicas() -> list[Call]:
    """Two replicas with a pool each; conversations that were served by one go on at the other."""
    pools = {"r1": Pool(CAPACITY), "r2": Pool(CAPACITY)}
    asks = [
        replace(one, told=(("route", "r2" if one.session < "d" or one.at_s > 120 else "r1"),))
        for one in (
            *talk("busy", every(1, 20, 9)),
            *talk("also", every(5, 20, 9)),
            *[
                x
                for n in range(4)
                for x in talk(f"moved-{n}", [*every(4 + n, 8, 13), 130 + n, 143 + n])
            ],
        )
    ]
    calls = []
    for name, pool in pools.items():
        calls += served([one for one in asks if dict(one.told)["route"] == name], pool)
    return sorted(calls, key=lambda one: one.at_ns)


MOVED = _replicas()
# No call names its session, and one conversation is as long as a system prompt is common.
LONG = served(
    [*talk("long", every(2, 48, 5), growth=300), *PAUSED, *strangers(108, 36, 5_200)],
    Pool(CAPACITY),
)  # fmt: skip
NAMELESS = [replace(one, session="", turn=None) for one in LONG]
_SILENT = silent([EVICTED, MISSED, *NOT], MAY)

CASES = {
    "main": (with_log(MAIN), evicted(MAIN)),
    "twin": (with_log(TWIN), _SILENT),
    "large_blocks": (with_log(MAIN, block=1_000), evicted(MAIN)),
    "waves": (with_log(WAVES, 240_000), evicted(WAVES)),
    "part": (with_log(PART, 214_000), evicted(PART)),
    "noisy": (with_log(NOISY), evicted(NOISY)),
    "nameless": (with_log(NAMELESS, block=100), evicted(LONG)),
    "told_by_deployment": (
        writer(
            streams(MAIN, block=400)
            | {"deployment.json": deployment(kv_capacity_tokens=CAPACITY)}
        ),
        evicted(MAIN),
    ),
    "no_capacity": (writer(streams(MAIN, block=400)), missed(MAIN)),
    "counts_alone": (writer(streams(MAIN) | {"engine.log": log_of(CAPACITY)}), missed(MAIN)),
    "records": (
        writer(
            records(MAIN, openai_form, ttft=True)
            | {"deployment.json": deployment(kv_capacity_tokens=CAPACITY)}
        ),
        missed(MAIN),
    ),
    "gateway": (writer(spend_logs(MAIN, "hosted_vllm")), missed(MAIN)),
    "restart": (with_log(RESTART), missed(RESTART, [EVICTED])),
    "replica": (with_log(MOVED), missed(MOVED)),
    "changed": (
        with_log(CHANGED),
        silent([EVICTED, "cache.expired", "cache.model-switch"], [*MAY, MISSED]),
    ),
    "twin_room": (with_log(ROOM, 640_000), _SILENT),
    "twin_records": (writer(records(TWIN, openai_form, ttft=True)), _SILENT),
    "twin_counts": (writer(streams(TWIN)), _SILENT),
}  # fmt: skip
