"""The dated override file, and the second catalog that is held against the first."""

from __future__ import annotations

import csv
import re
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from typing import Any

from analyzer.catalogs._listed import Prices
from analyzer.errors import AnalyzerError

SECOND = "litellm 1.110.2"
_KEYS = frozenset({
    "why", "source", "checked", "provider", "models", "tier", "speed", "geo", "from", "until",
    "above_input_tokens", "set", "of_input", "multiply",
})  # fmt: skip
_DATED = re.compile(r"(?:[@-]20\d{6}|-20\d\d-\d\d-\d\d)(?:-v\d+(?::\d+)?)?$")


@dataclass(frozen=True)
class Fact:
    """One fact of ``price_overrides.toml``."""

    why: str
    provider: tuple[str, ...]
    models: tuple[re.Pattern[str], ...]
    tier: str | None
    speed: str | None
    geo: re.Pattern[str] | None
    begins: datetime | None
    ends: datetime | None
    above: int | None
    set: Prices
    of_input: Prices
    multiply: Prices | Decimal | None

    def concerns(self, model: str, provider: str, tier: str, speed: str, geo: str) -> bool:
        """It is about such requests, at some time and of some size."""
        return (
            provider in self.provider
            and (not self.models or any(one.search(model) for one in self.models))
            and self.tier in (None, tier)
            and self.speed in (None, speed)
            and (self.geo is None or self.geo.fullmatch(geo) is not None)
        )

    def holds(self, at: datetime, tokens: int) -> bool:
        """And of this one."""
        return (
            (self.begins is None or at >= self.begins)
            and (self.ends is None or at < self.ends)
            and (self.above is None or tokens > self.above)
        )

    def factor(self, kind: str) -> Decimal:
        """What a price of that kind is multiplied with."""
        if isinstance(self.multiply, Decimal):
            return self.multiply
        return (self.multiply or {}).get(kind, Decimal(1))


@lru_cache(1)
def facts() -> tuple[Fact, ...]:
    """All of them, in the order of the file."""
    return tuple(_fact(one) for one in _file()["fact"])


@lru_cache(1)
def checked_days() -> frozenset[str]:
    """Days on which tiers were checked, which is not when they began."""
    return frozenset(day.isoformat() for day in _file()["tiers_checked"]["days"])


@lru_cache(1)
def overrides_version() -> str:
    """The newest day on which a fact was checked."""
    return max(str(one["checked"]) for one in _file()["fact"])


@lru_cache(1)
def _file() -> dict[str, Any]:
    text = files("analyzer.catalogs").joinpath("price_overrides.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _fact(told: dict[str, Any]) -> Fact:
    lacks = {"why", "source", "checked", "provider"} - told.keys()
    if lacks or told.keys() - _KEYS:
        wrong = ", ".join(sorted(lacks or told.keys() - _KEYS))
        raise AnalyzerError(f"price_overrides.toml: {told.get('why', 'a fact')}: see to {wrong}")
    multiply = told.get("multiply")
    return Fact(
        told["why"],
        tuple(told["provider"]),
        tuple(re.compile(one) for one in told.get("models", ())),
        told.get("tier"),
        told.get("speed"),
        re.compile(told["geo"]) if "geo" in told else None,
        _moment(told.get("from")),
        _moment(told.get("until")),
        told.get("above_input_tokens"),
        _decimals(told.get("set", {})),
        _decimals(told.get("of_input", {})),
        _decimals(multiply) if isinstance(multiply, dict) else multiply and Decimal(multiply),
    )


def _decimals(told: dict[str, str]) -> Prices:
    return {kind: Decimal(value) for kind, value in told.items()}


def _moment(value: datetime | None) -> datetime | None:
    return value.astimezone(UTC) if value is not None else None


Steps = dict[int, Prices]
"""Prompt size above which they hold -> prices."""


@lru_cache(1)
def _second() -> dict[tuple[str, str], Steps]:
    text = files("analyzer.catalogs").joinpath("prices_litellm.csv").read_text(encoding="utf-8")
    found: dict[tuple[str, str], Steps] = {}
    for row in csv.DictReader(text.splitlines()):
        place = row.pop("provider"), row.pop("model")
        above = int(row.pop("above_input_tokens") or -1)
        prices = {kind: Decimal(value) for kind, value in row.items() if value}
        found.setdefault(place, {})[above] = prices
    return found


def second(model: str, provider: str, told: dict[tuple[str, str], Steps]) -> Steps | None:
    """What the second catalog says; ``told``: the user's own copy of it, which comes first."""
    for names in (told, _second()):
        for name in (model, _DATED.sub("", model)):
            found = names.get((provider, name)) or names.get(("", name))
            if found is not None:
                return found
    return None


def at_step(steps: Steps, tokens: int) -> Prices:
    """Prices of a prompt of that size."""
    prices: Prices = {}
    for above in sorted(steps):
        if above < 0 or tokens > above:
            prices = prices | steps[above]
    return prices
