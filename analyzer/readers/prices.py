"""``prices.json`` or ``.toml``: unit prices that beat the price book."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from analyzer.contract.native import ModelPrice, Prices
from analyzer.contract.types import Batch, Problem
from analyzer.readers._document import parse, read_all, small_document
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Sink, converted, usd
from analyzer.readers._reader import Claim, Options, Reader

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
                    "model": model, "token_kind": kind, "above_input_tokens": above,
                    "usd_per_million_tokens": amount, **common,
                }  # fmt: skip


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``price`` row per model, token kind and tier."""
    sink = Sink()
    try:
        prices = converted(parse(read_all(file)), Prices)
        valid_from = sink.time(1, "valid_from", prices.valid_from)
        common = {"currency": prices.currency, "valid_from_ns": valid_from}
        for model, price in prices.models.items():
            for row in _rows(model, price, common):
                sink.add("price", 1, **row)
        if sink.problems:  # without its date or its tier a price would hold for everything
            sink.rows.clear()
    except ValueError as error:
        yield Batch(records=1, problems=(Problem(1, str(error)),))
        return
    yield sink.batch(1)


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
