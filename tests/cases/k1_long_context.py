"""Prompts beyond the size from which the whole request pays the higher price.

main: 60 requests of a model whose price doubles above 200,000 prompt tokens; 14 are above, 5 of
them by a few thousand.

twin: the same with the long ones cut to 200,000 exactly: the step is strictly above.

The variants: what is read from a cache, streams, a gateway's rows, a model of the catalogs without
a price file. The innocent ones have one long prompt, a price without a step, or long prompts that
cost next to nothing beside the rest.
"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS, write_lines
from cases._build import at, expect, silent
from cases._calls import Call, openai_form, records, spend_logs, streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

RULE = "cost.long-context-tier"
T0 = at("2026-06-09T07:00:00Z")
STEP = 200_000
MODEL, FLAT, GEMINI = "kestrel-1", "kestrel-flat", "gemini-2.5-pro"
LOW = {"input": "2.40", "cache_read": "0.24", "output": "9.00"}
HIGH = {"input": "4.80", "cache_read": "0.48", "output": "13.50"}
LISTED = (
    {"input": "1.25", "cache_read": "0.125", "output": "10"},
    {"input": "2.50", "cache_read": "0.25", "output": "15"},
)
NOT = ["cost.unpriced", "cost.cache-unpriced", "prefill.long-prompt"]
MAY = ["cache.prefix-changed", "cache.evicted", "prefill.cache-miss"]


def call(k: int, prompt: int, **fixed: Any) -> Call:
    told = {"session": f"job-{k}", "model": MODEL, "output": 30} | fixed
    return Call(at_ns=T0 + k * 240 * NS, prompt=prompt, **told)


def jobs(longs: Iterable[int], shorts: int = 46, **fixed: Any) -> list[Call]:
    """Long prompts among short ones."""
    long = list(longs)
    sizes = [31_000 + 2_900 * (k % 23) for k in range(shorts)]
    for n, prompt in enumerate(long):
        sizes.insert(2 + n * 4, prompt)
    return [call(k, prompt, **fixed) for k, prompt in enumerate(sizes)]


LONG = [STEP + 1, 203_000, 207_500, 211_000, 219_999, *(240_000 + 9_700 * k for k in range(9))]
MAIN = jobs(LONG)
CACHED = [replace(one, read=one.prompt // 4 * 3) for one in MAIN]
CUT = [replace(one, prompt=min(one.prompt, STEP)) for one in MAIN]
CATALOG = [replace(one, model=GEMINI) for one in MAIN]


def excess(calls: Iterable[Call], low: dict[str, str], high: dict[str, str]) -> Decimal:
    """What the long ones pay beyond the price below the step."""
    more = {kind: Decimal(high[kind]) - Decimal(low[kind]) for kind in low}
    return sum(
        (
            (one.fresh + one.written) * more["input"] + one.read * more["cache_read"]
            + one.output * more["output"]
            for one in calls
            if one.prompt > STEP
        ),
        Decimal(0),
    ) / 1_000_000  # fmt: skip


def writer(files: dict[str, list[str]], *, priced: bool = True) -> Callable[[Path], None]:
    step = {"above_input_tokens": STEP} | {kind: float(price) for kind, price in HIGH.items()}
    low: dict[str, Any] = {kind: float(price) for kind, price in LOW.items()}
    models = {MODEL: low | {"long_context": step}, FLAT: low}
    book = {"currency": "USD", "unit": "per_million_tokens", "models": models}

    def write(folder: Path) -> None:
        for name, lines in files.items():
            write_lines(folder / name, lines)
        if priced:
            write_lines(folder / "prices.json", [json.dumps(book)])

    return write


def dear(calls: list[Call], low: dict[str, str] = LOW, high: dict[str, str] = HIGH) -> dict:
    usd = excess(calls, low, high)
    long = [one for one in calls if one.prompt > STEP]
    near = sum(one.prompt <= STEP * 1.1 for one in long)
    wanted = expect(RULE, "none", len(long), float(usd), "usd", NOT, MAY)
    return wanted | {"tolerance": 1e-6, "cost_usd": usd, "told": [STEP, near]}


_TWIN = silent([RULE, *NOT], MAY)

CASES = {
    "main": (writer(records(MAIN, openai_form)), dear(MAIN)),
    "twin": (writer(records(CUT, openai_form)), _TWIN),
    "cached": (writer(records(CACHED, openai_form)), dear(CACHED)),
    "streams": (writer(streams(MAIN)), dear(MAIN)),
    "gateway": (writer(spend_logs(CACHED, provider="openai")), dear(CACHED)),
    "catalog": (
        writer(records(CATALOG, openai_form, provider="google"), priced=False),
        dear(CATALOG, *LISTED),
    ),
    "twin_one": (writer(records(jobs([260_000]), openai_form)), _TWIN),
    "twin_flat": (
        writer(records([replace(one, model=FLAT) for one in MAIN], openai_form)), _TWIN,
    ),
    "twin_nothing": (
        writer(records(jobs([203_000] * 3, shorts=900), openai_form)), _TWIN,
    ),
}  # fmt: skip
