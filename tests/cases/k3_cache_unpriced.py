"""Cached tokens that are charged as fresh ones, or that have no price of their own.

main: 50 requests of a gateway that reads nine tenths of each prompt from the cache; the cost it
tells of each is that of the full price of input.

twin: its cost is that of the list, with the discount for what was cached.

The variants: a smaller part of the prompt, a price file without a price for cached tokens or for
writes, two models. The innocent ones have no cached tokens, a fee of the gateway's on top, one odd
row, or tell no cost.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS, request_record, write_lines
from cases._build import at, expect, silent
from cases._calls import Call, anthropic_form, openai_form

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

RULE = "cost.cache-unpriced"
T0 = at("2026-05-04T10:00:00Z")
MODEL, OTHER = "egret-large", "egret-mini"
PRICE = {
    "input": "2.20", "cache_read": "0.22", "cache_write_short": "2.75", "cache_write_long": "4.40",
    "output": "8.80",
}  # fmt: skip
BARE = {kind: price for kind, price in PRICE.items() if kind in ("input", "output")}
NOT = ["cost.long-context-tier", "cost.unpriced"]
MAY = ["cache.prefix-changed", "cache.unused-writes", "cache.evicted"]


def calls(
    count: int = 50, *, share: float = 0.9, written: int = 0, model: str = MODEL
) -> list[Call]:
    """Each of a session of its own, with a head that all share in the cache."""
    out = []
    for k in range(count):
        prompt = 11_000 + 130 * (k % 17)
        out.append(
            Call(
                at_ns=T0 + k * 20 * NS, session=f"u-{k}", prompt=prompt, output=60, model=model,
                read=round(prompt * share), written=written,
            )
        )  # fmt: skip
    return out


def cost(one: Call, kind: str = "cache_read", margin: str = "1") -> Decimal:
    """By the list; ``kind``: what is read is charged at that price."""
    price = {name: Decimal(usd) for name, usd in PRICE.items()}
    usd = one.fresh * price["input"] + one.read * price[kind] + one.output * price["output"]
    usd += one.written * price["cache_write_short"]
    return (usd * Decimal(margin) / 1_000_000).quantize(Decimal("1e-8"))


def rows(told: Sequence[Call], usd: Sequence[Decimal | None], form: Any = openai_form) -> list[str]:
    return [
        request_record(
            f"g-{k:04d}", vantage="gateway", started_ns=one.at_ns, model=one.model,
            session_id=one.session, status=200, usage=form(one), cost_usd=money,
        )
        for k, (one, money) in enumerate(zip(told, usd, strict=True))
    ]  # fmt: skip


def writer(lines: list[str], **models: dict[str, str]) -> Callable[[Path], None]:
    named = {name.replace("_", "-"): one for name, one in models.items()} or {MODEL: PRICE}
    book = {
        "currency": "USD", "unit": "per_million_tokens",
        "models": {n: {k: float(v) for k, v in one.items()} for n, one in named.items()},
    }  # fmt: skip

    def write(folder: Path) -> None:
        write_lines(folder / "gateway.jsonl", lines)
        write_lines(folder / "prices.json", [json.dumps(book)])

    return write


def wrong(told: Sequence[Call], tokens: int, usd: Decimal | None = None) -> dict:
    wanted = expect(RULE, "none", len(told), tokens, "tokens", NOT, MAY) | {"tolerance": 1e-9}
    return wanted | ({"cost_usd": usd} if usd is not None else {})


MAIN = calls()
FULL = [cost(one, "input") for one in MAIN]
FAIR = [cost(one) for one in MAIN]
LESS = calls(share=0.4)
MINI = calls(30, model=OTHER)
WRITES = calls(share=0, written=9_000)


def _gap(told: Sequence[Call]) -> Decimal:
    return sum((cost(one, "input") - cost(one) for one in told), Decimal(0))


_TWIN = silent([RULE, *NOT], MAY)
_READ = sum(one.read for one in MAIN)

CASES = {
    "main": (writer(rows(MAIN, FULL)), wrong(MAIN, _READ, _gap(MAIN))),
    "twin": (writer(rows(MAIN, FAIR)), _TWIN),
    "partly": (
        writer(rows(LESS, [cost(one, "input") for one in LESS])),
        wrong(LESS, sum(one.read for one in LESS), _gap(LESS)),
    ),
    "no_price": (writer(rows(MAIN, [None] * 50), egret_large=BARE), wrong(MAIN, _READ)),
    "no_price_of_writes": (
        writer(rows(WRITES, [None] * 50, anthropic_form), egret_large=BARE),
        wrong(WRITES, sum(one.written for one in WRITES)),
    ),
    "one_of_two": (
        writer(
            rows([*MAIN, *MINI], [*FULL, *([None] * 30)]), egret_large=PRICE, egret_mini=PRICE,
        ),
        wrong(MAIN, _READ, _gap(MAIN)),
    ),
    "twin_margin": (writer(rows(MAIN, [cost(one, margin="1.05") for one in MAIN])), _TWIN),
    "twin_uncached": (
        writer(rows(calls(share=0), [cost(one, "input") for one in calls(share=0)])), _TWIN,
    ),
    "twin_odd": (writer(rows(MAIN, [FULL[0], *FAIR[1:]])), _TWIN),
    "twin_untold": (writer(rows(MAIN, [None] * 50)), _TWIN),
}  # fmt: skip
