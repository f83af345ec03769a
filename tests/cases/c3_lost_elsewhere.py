"""Prefixes that did not change and are lost all the same: another replica, a restart, a full cache.

main: five conversations on two replicas behind a balancer that knows nothing of sessions: half way
they land on the other one, which never saw the prompt.

twin: the same conversations, each of them always served by the same replica.

The variants: turns that go to and fro, restarts that the engine's log tells, and one that shows
only in that no prefix lived through. A restart alone is no eviction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS, engine_line
from cases._build import at, expect, silent
from cases._calls import Call, deployment, openai_form, records, streams, writer
from cases.a2_evicted import (
    MAY,
    NOT,
    Ask,
    Pool,
    every,
    log_of,
    lost,
    missed,
    served,
    strangers,
    talk,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EVICTED, MISSED = "cache.evicted", "prefill.cache-miss"
T0 = at("2026-03-18T13:40:00Z")
CAPACITY = 900_000


def on(calls: Sequence[Ask], where: Callable[[Ask], str], field: str = "route") -> list[Call]:
    """Served by one pool each place."""
    pools: dict[str, list[Ask]] = {}
    for ask in calls:
        name = where(ask)
        pools.setdefault(name, []).append(replace(ask, told=((field, name),)))
    return sorted(
        (one for asks in pools.values() for one in served(asks, Pool(CAPACITY))),
        key=lambda one: (one.at_ns, one.session),
    )


TALKS = [
    one
    for n in range(5)
    for one in talk(f"s-{n}", every(3 * n, 14, 17), first=3_100 + 200 * n, growth=1_250)
]


def _spread(ask: Ask) -> str:
    """Most turns stay, every fifth goes over; it returns with the next."""
    own = int(ask.session[-1]) % 2
    return f"pod-{own ^ (ask.turn % 5 == 0)}"


def _moved(ask: Ask) -> str:
    """Half way all go to the other replica."""
    own = int(ask.session[-1]) % 2
    return f"pod-{own ^ (ask.turn > 7)}"


MAIN = on(TALKS, _moved)
SPREAD = on(TALKS, _spread)
TWIN = on(TALKS, lambda ask: f"pod-{int(ask.session[-1]) % 2}")
STEADY = [*TALKS, *strangers(20, 12, 2_900, gap=9)]
RESTARTED = served(STEADY, Pool(CAPACITY), flushed_s=127)


def told(calls: Sequence[Call], **more: Any) -> dict[str, Any]:
    """Both rules."""
    losses = lost(calls)
    tokens = sum(count for _, count in losses)
    found = expect(EVICTED, "prefill", len(losses), tokens, "tokens", NOT, MAY)
    return found | {"also": [missed(calls)]} | more


def restart_log() -> list[str]:
    """An engine that starts, and starts again."""
    lines = []
    for second, pid in ((-40, 77), (127, 310)):
        for k, text in enumerate(
            ("Initializing a V1 LLM engine (v0.11.0)", f"GPU KV cache size: {CAPACITY:,} tokens")
        ):
            lines.append(
                engine_line(
                    T0 + second * NS + k * NS // 10, text, process="EngineCore", pid=pid,
                    where="core.py:77" if k == 0 else "kv_cache_utils.py:864",
                )
            )  # fmt: skip
    return lines


_SILENT = silent([EVICTED, MISSED, *NOT], MAY)

CASES = {
    "main": (writer(streams(MAIN, block=500) | {"engine.log": log_of(CAPACITY)}), told(MAIN)),
    "twin": (writer(streams(TWIN, block=500) | {"engine.log": log_of(CAPACITY)}), _SILENT),
    "records": (writer(records(MAIN, openai_form, ttft=True)), told(MAIN)),
    "spread": (writer(streams(SPREAD, block=500) | {"engine.log": log_of(CAPACITY)}), told(SPREAD)),
    "restart": (
        writer(
            streams(RESTARTED, block=500)
            | {"deployment.json": deployment(kv_capacity_tokens=CAPACITY)}
        ),
        missed(RESTARTED, [EVICTED]),
    ),
    "restart_in_the_log": (
        writer(streams(RESTARTED, block=500) | {"engine.log": restart_log()}),
        missed(RESTARTED, [EVICTED]),
    ),
    "restart_of_sizes": (
        writer(streams(RESTARTED) | {"engine.log": restart_log()}),
        missed(RESTARTED, [EVICTED]),
    ),
    "twin_no_restart": (
        writer(
            streams(served(STEADY, Pool(CAPACITY)), block=500) | {"engine.log": log_of(CAPACITY)}
        ),
        _SILENT,
    ),
}  # fmt: skip
