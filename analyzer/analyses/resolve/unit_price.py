"""Looks up what tokens cost: a lane once, whatever the number of requests in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.catalogs._price_file import FilePrice
from analyzer.catalogs.price_book import Lane, PriceBook, Quote

_KINDS = (
    "input", "cache_read", "cache_write_short", "cache_write_long", "output", "reasoning",
    "input_audio", "read_audio", "output_audio", "input_image", "read_image", "output_image",
    "web_search", "request",
)  # fmt: skip
_OTHER = ("input", "cache_read", "cache_write_short", "cache_write_long", "output")


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a lane and stretch; ``told`` are the lanes, then the rows of price files."""
    book = PriceBook([_price(row) for row in told if row["kind"] == "price"])
    price_id = 0
    for row in told:
        if row["kind"] != "lane":
            continue
        lane = Lane(
            row["model"], row["provider"], row["service_tier"], row["speed"], row["geo"],
            bool(row["is_own"]),
        )  # fmt: skip
        for quote in book.quotes(lane):
            price_id += 1
            yield _row(price_id, lane, quote)


def _price(row: dict[str, Any]) -> FilePrice:
    return FilePrice(
        model=row["model"],
        token_kind=row["token_kind"],
        provider=row["provider"],
        tier=row["service_tier"],
        above=row["above_input_tokens"],
        usd=row["usd"],
        factor=row["factor"],
        valid_from_ns=row["valid_from_ns"],
        catalog=row["catalog"],
        currency=row["currency"],
        path=row["path"],
        order=(row["source_id"], row["record"]),
    )


def _row(price_id: int, lane: Lane, quote: Quote) -> tuple[Any, ...]:
    return (
        price_id, lane.model, lane.provider, lane.service_tier, lane.speed, lane.geo, lane.is_own,
        quote.from_ns, quote.until_ns, quote.from_of_day_ns, quote.until_of_day_ns,
        quote.above, quote.upto,
        *(quote.prices.get(kind) for kind in _KINDS),
        quote.source, quote.version, quote.date, quote.note, quote.other_source,
        *(quote.other.get(kind) for kind in _OTHER),
    )  # fmt: skip
