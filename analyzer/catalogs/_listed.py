"""Prices as genai-prices lists them: its bundled data alone, never its update over the network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache
from importlib.metadata import version
from typing import Any

PER_MILLION = {
    "input": "input_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write_short": "cache_write_mtok",
    "cache_write_long": "cache_write_1h_mtok",
    "output": "output_mtok",
    "reasoning": "output_reasoning_mtok",
    "input_audio": "input_audio_mtok",
    "read_audio": "cache_audio_read_mtok",
    "output_audio": "output_audio_mtok",
    "input_image": "input_image_mtok",
    "read_image": "cache_image_read_mtok",
    "output_image": "output_image_mtok",
    "web_search": "web_searches_kcount",
    "request": "requests_kcount",
}
"""Our token kind -> key of genai-prices; the last two are per thousand."""
PARENTS = {
    "cache_read": "input", "cache_write_short": "input", "cache_write_long": "cache_write_short",
    "reasoning": "output", "input_audio": "input", "read_audio": "cache_read",
    "output_audio": "output", "input_image": "input", "read_image": "cache_read",
    "output_image": "output",
}  # fmt: skip
"""A kind without a price of its own costs what this one costs, as in genai-prices."""
KINDS = tuple(PER_MILLION)

Prices = dict[str, Decimal]


@dataclass(frozen=True)
class Listed:
    """One model of the catalog."""

    model: Any
    own: bool
    """The provider's own entry; else another's that it hands on, whose tiers do not hold there."""

    def _conditions(self) -> Iterator[Any]:
        prices = self.model.prices
        yield from (one.constraint for one in (prices if isinstance(prices, list) else ()))
        yield from (one.constraint for one in self.model.price_variants or ())

    def days(self) -> set[datetime]:
        """Moments at which a price begins."""
        starts = (getattr(one, "start_date", None) for one in self._conditions())
        return {datetime(d.year, d.month, d.day, tzinfo=UTC) for d in starts if d is not None}

    def hours(self) -> set[time]:
        """Times of the day, UTC, at which a price changes."""
        edges = set()
        for one in self._conditions():
            if hasattr(one, "start_time"):
                edges |= {one.start_time, one.end_time}
        return {_utc(edge) for edge in edges}

    def steps(self) -> set[int]:
        """Prompt sizes above which a request costs more."""
        found: set[int] = set()
        for price in self._all_prices():
            for value in price.__dict__.values():
                found |= {tier.start for tier in getattr(value, "tiers", ())}
        return found

    def _all_prices(self) -> Iterator[Any]:
        prices = self.model.prices
        yield from ([one.prices for one in prices] if isinstance(prices, list) else [prices])
        yield from (one.prices for one in self.model.price_variants or ())

    def standard(self, at: datetime, tokens: int) -> Prices:
        """What the catalog says of each kind, without a tier."""
        return _told(self.model.get_prices(at), tokens)

    def factors(
        self, when: dict[str, str], at: datetime, tokens: int, checked: frozenset[str]
    ) -> Prices | None:
        """What each kind costs under a condition, as a share of the standard price.

        None: it has no price of that condition. ``checked``: days on which someone looked, where
        the catalog lets a condition begin that is older.
        """
        share: Prices = {}
        known = False
        for variant in self.model.price_variants or () if self.own else ():
            if variant.when != when:
                continue
            start = getattr(variant.constraint, "start_date", None)
            moment = at
            if start is not None and at.date() < start:
                if start.isoformat() not in checked:
                    continue
                moment = datetime(start.year, start.month, start.day, 12, tzinfo=UTC)
            elif variant.constraint is not None and not variant.constraint.active(at):
                continue
            known = True
            usual = self.standard(moment, tokens)
            for kind, price in _told(variant.prices, tokens).items():
                if usual.get(kind):
                    share.setdefault(kind, price / usual[kind])
        if not known:
            return None
        return dict.fromkeys(self.standard(at, tokens), Decimal(1)) | share


def _told(price: Any, tokens: int) -> Prices:  # noqa: ANN401 - the library's type
    found: Prices = {}
    for kind, key in PER_MILLION.items():
        value = price.__dict__.get(key)
        if value is None and kind == "cache_write_short":
            value = price.__dict__.get("cache_write_5m_mtok")
        if value is None:
            continue
        if isinstance(value, Decimal):
            found[kind] = value
            continue
        fitting = [tier.price for tier in value.tiers if tokens > tier.start]
        found[kind] = fitting[-1] if fitting else value.base
    return found


def _utc(edge: time) -> time:
    if edge.tzinfo is None:
        return edge
    return datetime.combine(date(2000, 1, 2), edge).astimezone(UTC).time()


@lru_cache(1)
def catalog_version() -> str:
    """Version of the data."""
    return version("genai-prices")


@lru_cache(256)
def is_known(provider: str) -> bool:
    """The catalog has prices of that provider."""
    from genai_prices.data_snapshot import find_provider_by_id, get_snapshot

    return find_provider_by_id(get_snapshot().providers, provider) is not None


@lru_cache(4096)
def find(model: str, provider: str) -> Listed | None:
    """The catalog's entry, None where it has none."""
    # Imported here: it takes 0.3 s, which a case without tokens need not wait for.
    from genai_prices.data_snapshot import find_provider_by_id, get_snapshot

    snapshot = get_snapshot()
    vendor = find_provider_by_id(snapshot.providers, provider)
    if vendor is None or not model:
        return None
    try:
        _, found = snapshot.find_provider_model(model, vendor, None, None)
    except LookupError:
        return None
    return Listed(found, any(found is one for one in vendor.models))
