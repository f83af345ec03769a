"""What simulated requests cost: what a provider bills, and at which prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from analyzer.errors import AnalyzerError

if TYPE_CHECKING:
    from analyzer.simulate.outcome import RequestOutcome
    from analyzer.simulate.world import World

MILLION = 1_000_000
TTLS = ("5m", "1h")
KINDS = ("input", "cache_read", "cache_write_short", "cache_write_long", "output")

Prices = Mapping[str, Mapping[str, Decimal]]
"""Model -> kind of token (as in ``prices.json``) -> US dollars a million tokens."""


@dataclass(frozen=True)
class Billing:
    """How a provider counts: its prices, and whether writing to its cache has a price."""

    prices: Prices
    write_ttl: str | None = None
    """Lifetime that the caller asks for; None where a provider caches by itself and for nothing."""
    block_tokens: int = 16
    """What is written to the cache comes in whole blocks."""


def prices_of(told: Mapping[str, Mapping[str, object]]) -> Prices:
    """Prices as a world file gives them: decimal text or numbers, by model and kind of token."""
    found = {}
    for model, kinds in told.items():
        if not isinstance(kinds, Mapping) or set(kinds) - set(KINDS):
            raise AnalyzerError(
                f"prices.{model} is no table of prices",
                f'[prices."{model}"] with {", ".join(KINDS)}; a name with dots needs the quotes',
            )
        found[model] = {kind: _price(model, kind, price) for kind, price in kinds.items()}
    return found


def _price(model: str, kind: str, told: object) -> Decimal:
    try:
        price = Decimal(str(told))
    except InvalidOperation:
        price = Decimal(-1)
    if not price.is_finite() or price < 0:
        raise AnalyzerError(
            f"prices.{model}.{kind} = {told!r} is no price", 'US dollars a million tokens: "0.25"'
        )
    return price


def billing_of(world: World, options: Mapping[str, object] | None = None) -> Billing:
    """How the world's provider counts; ``options`` of a log may name ``write_ttl``, 5m or 1h."""
    ttl = (options or {}).get("write_ttl")
    if ttl not in (None, *TTLS):
        raise AnalyzerError(f"no lifetime {ttl!r} can be written", f"one of {', '.join(TTLS)}")
    block = world.engine.block_tokens
    return Billing(prices_of(world.prices), None if ttl is None else str(ttl), block)


def is_billed(one: RequestOutcome) -> bool:
    """Whether the provider began to compute it; who gave up on it later does not matter."""
    return one.admitted_ns is not None


def written_tokens(one: RequestOutcome, billing: Billing) -> int:
    """Prompt tokens that were written to the cache: what was fresh, in whole blocks."""
    if billing.write_ttl is None:
        return 0
    whole = one.prompt_tokens // billing.block_tokens * billing.block_tokens
    return max(0, whole - one.cached_tokens)


def buckets(one: RequestOutcome, billing: Billing) -> dict[str, int]:
    """Tokens by kind of price; they do not overlap."""
    written = written_tokens(one, billing)
    return {
        "input": one.prompt_tokens - one.cached_tokens - written,
        "cache_read": one.cached_tokens,
        "cache_write_long" if billing.write_ttl == "1h" else "cache_write_short": written,
        "output": one.output_tokens,
    }


def cost_usd(one: RequestOutcome, billing: Billing) -> Decimal | None:
    """Cost of one attempt; None where a price that it needs is not told."""
    prices = billing.prices.get(one.model)
    if prices is None:
        return None
    total = Decimal(0)
    for kind, tokens in buckets(one, billing).items():
        price = prices.get(kind)
        if price is None and tokens:
            return None
        total += tokens * (price or Decimal(0)) / MILLION
    return total
