"""``prices.json`` or ``.toml``: unit prices that beat the price book."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec

from analyzer.contract.native import ModelPrice, Prices
from analyzer.contract.types import Batch, Problem
from analyzer.readers._document import parse, read_all, small_document
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import usd
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import tables_of
from analyzer.readers._times import time_to_ns

_KINDS = ("input", "cache_read", "cache_write_short", "cache_write_long", "output")


def probe(head: Head) -> Claim:
    """One small object with ``models`` and ``unit: per_million_tokens``."""
    value = small_document(head)
    if value is None:
        return Claim(0, "it is no small JSON or TOML object")
    if value.get("unit") == "per_million_tokens" and isinstance(value.get("models"), dict):
        return Claim(1, "")
    return Claim(0.4 if "models" in value else 0, "it lacks 'unit': 'per_million_tokens'")


def _rows(model: str, price: ModelPrice, common: dict[str, Any]) -> Iterator[dict[str, Any]]:
    tiers: list[tuple[int | None, Any]] = [(None, price)]
    if price.long_context is not None:
        tiers.append((price.long_context.above_input_tokens, price.long_context))
    for above, tier in tiers:
        for kind in _KINDS:
            amount: Decimal | None = usd(getattr(tier, kind))
            if amount is not None:
                yield {
                    "record": 1, "model": model, "token_kind": kind, "above_input_tokens": above,
                    "usd_per_million_tokens": amount, **common,
                }  # fmt: skip


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``price`` row per model, token kind and tier."""
    try:
        prices = msgspec.convert(parse(read_all(file)), Prices, strict=False)
        common = {"currency": prices.currency, "valid_from_ns": time_to_ns(prices.valid_from)}
        rows = [
            row
            for model, price in prices.models.items()
            for row in _rows(model, price, common)
        ]  # fmt: skip
    except (ValueError, msgspec.ValidationError) as error:
        yield Batch(records=1, problems=(Problem(1, f"not a price file: {error}"),))
        return
    yield Batch(tables_of(price=rows), records=1, used=1)


READER = Reader(
    title="Price file (JSON or TOML)",
    record_unit="document",
    gives=("price",),
    probe=probe,
    read=read,
    docs="schemas/native/prices.schema.json",
    cannot="what was used",
    enable="add logs with usage",
    checked_against="generated files",
)
