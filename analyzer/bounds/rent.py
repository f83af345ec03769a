"""What an hour of a GPU is offered for, on demand, by day and source."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Offer:
    """One vendor's price of one GPU hour, as a transcription of ``source`` said on a day."""

    vendor: str
    offer: str
    usd: Decimal
    as_of: str
    source: str


@cache
def _offers() -> dict[str, tuple[Offer, ...]]:
    text = files("analyzer.catalogs").joinpath("gpu_prices.csv").read_text(encoding="utf-8")
    found: dict[str, list[Offer]] = {}
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for row in csv.DictReader(lines):
        usd = Decimal(row["usd_per_gpu_hour"])
        one = Offer(row["vendor"], row["offer"], usd, row["as_of"], row["source"])
        found.setdefault(row["key"], []).append(one)
    return {key: tuple(sorted(some, key=lambda one: one.usd)) for key, some in found.items()}


def offers(key: str) -> tuple[Offer, ...]:
    """Offers of a part of the accelerators' catalog, cheapest first; empty where none is known."""
    return _offers().get(key, ())


def cheapest() -> Decimal:
    """What the cheapest of all offers costs an hour."""
    return min(some[0].usd for some in _offers().values())
