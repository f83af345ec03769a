"""``prices.json`` or ``.toml``: unit prices that beat the price book."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from analyzer.contract._native_prices import ModelPrice, Prices, Terms, TierPrice
from analyzer.contract.types import Batch, Problem
from analyzer.readers._document import parse, read_all, small_document
from analyzer.readers._file import BOM, Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, converted, usd
from analyzer.readers._price_keys import unknown
from analyzer.readers._reader import Claim, Options, Reader

_TIER_KINDS = ("input", "cache_read", "cache_write_short", "cache_write_long", "output")
_KINDS = (
    *_TIER_KINDS, "reasoning", "input_audio", "output_audio", "input_image", "output_image",
    "web_search",
)  # fmt: skip
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIERS = ("batch", "flex", "priority", "fast")
_UNIT, _LONGEST = "per_million_tokens", 40
# A key of its own: in logs of talk about prices it stands inside of text, where quotes are escaped.
_SAYS_UNIT = re.compile(
    rb'\A\s*\{.*"unit"\s*:\s*"per_million_tokens"|^[ \t]*unit\s*=\s*["\']per_million_tokens',
    re.DOTALL | re.MULTILINE,
)


def probe(head: Head) -> Claim:
    """One small object with ``models`` or ``providers`` and ``unit: per_million_tokens``."""
    value = small_document(head)
    if value is None:
        # Broken, and still nothing else: reading it says where it breaks.
        is_one = head.whole and _SAYS_UNIT.search(head.data.removeprefix(BOM))
        return Claim(1 if is_one else 0, "it is no small JSON or TOML object")
    models = value.get("models")
    told = isinstance(models, dict) or isinstance(value.get("providers"), dict)
    if value.get("unit") == _UNIT and told:
        return Claim(1, "")
    prices = models.values() if isinstance(models, dict) else ()
    like = any(isinstance(one, dict) and one.keys() & {"input", "output"} for one in prices)
    return Claim(
        0.6 if like else 0.4 if "models" in value else 0,
        f"a price file has to say 'unit': '{_UNIT}'",
    )


def _prices(told: Any, kinds: tuple[str, ...], common: dict[str, Any]) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - structs that share field names
    for kind in kinds:
        amount = _amount(kind, getattr(told, kind, None))
        if amount is not None:
            yield {"token_kind": kind, "usd_per_million_tokens": amount, **common}


def _amount(name: str, value: str | float | None) -> Decimal | None:
    try:
        amount = usd(value)
    except Bad:
        msg = f"{name!r} is no amount of money: give a number, as 1.25"
        raise ValueError(msg) from None
    if amount is not None and amount < 0:
        raise ValueError(f"{name!r} is below zero: {value}")
    return amount


def _terms(told: ModelPrice | Terms, common: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if told.discount is not None:
        off = _amount("discount", told.discount)
        if off is None or off > 1:
            raise ValueError(f"a discount of {told.discount}: give the share, 0 to 1, as 0.15")
        yield {"factor": 1 - off, **common}
    for tier in _TIERS:
        price = getattr(told, tier)
        if isinstance(price, TierPrice):
            yield from _prices(price, _TIER_KINDS, {"service_tier": tier, **common})
        elif price is not None:
            yield {"service_tier": tier, "factor": _amount(tier, price), **common}


def _model(price: ModelPrice, common: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from _prices(price, _KINDS, common)
    if price.long_context is not None:
        above = {"above_input_tokens": price.long_context.above_input_tokens}
        yield from _prices(price.long_context, _TIER_KINDS, common | above)
    yield from _terms(price, common)


def _begins(sink: Sink, told: object) -> int | None:
    """When a price begins to hold; a date alone means its first moment, UTC."""
    is_day = isinstance(told, str) and _DAY.fullmatch(told)
    return sink.time(1, "valid_from", f"{told}T00:00:00Z" if is_day else told)


def _rows(prices: Prices, sink: Sink) -> Iterator[dict[str, Any]]:
    valid_from = _begins(sink, prices.valid_from)

    def common(told: ModelPrice | Terms, **more: Any) -> dict[str, Any]:  # noqa: ANN401
        begins = _begins(sink, told.valid_from)
        row = {"currency": prices.currency, "valid_from_ns": begins or valid_from, **more}
        return {name: value for name, value in row.items() if value is not None}

    for model, dated in prices.models.items():
        for price in dated if isinstance(dated, list) else [dated]:
            try:
                yield from _model(price, common(price, model=model, provider=price.provider))
            except ValueError as error:
                msg = f"{model[:_LONGEST]}: {error}"
                raise ValueError(msg) from None
    for provider, several in prices.providers.items():
        for terms in several if isinstance(several, list) else [several]:
            who = None if provider == "*" else provider
            yield from _terms(terms, common(terms, provider=who))


def _take(value: object, sink: Sink) -> None:
    """Its rows; ``ValueError`` says what has to be mended."""
    if not isinstance(value, dict) or value.get("unit") != _UNIT:
        msg = f"a price file has to say 'unit': '{_UNIT}': dollars for a million tokens"
        raise ValueError(msg)
    prices = converted(value, Prices)
    sink.assumed.update(unknown(value))
    for row in _rows(prices, sink):
        sink.add("price", 1, **row)
    if sink.problems:  # without its date or its tier a price would hold for everything
        sink.rows.clear()
    elif not sink.rows:
        msg = "it holds no price: 'models' needs a model with its 'input' and 'output'"
        raise ValueError(msg)


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``price`` row per model, token kind, prompt step and tier; one per factor."""
    sink = Sink()
    try:
        _take(parse(read_all(file)), sink)
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
