"""FOCUS 1.x: the FinOps Foundation's common form of bills, as CSV.

Nothing is told by the word ``NULL``; a price may be in a currency of the vendor's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._bill import add_line, exact, in_tokens, moment, name
from analyzer.readers._bill_words import kind_in, model_in, tier_in, tokens_in, without_place
from analyzer.readers._exports import begin_of, read_rows
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._reader import Claim, Options, Reader

_NEEDED = {"BilledCost", "BillingCurrency", "ChargePeriodStart"}
_AWS = "x_UsageType"
_METERS = ("SkuMeter", "x_SkuMeterName", _AWS, "x_SkuDescription")
_ITEMS = ("SkuMeter", "x_SkuMeterName", _AWS, "SkuId", "SkuPriceId")
_CODE_CHARS = 3
_VIRTUAL = "its prices are in a currency of the vendor's own; amounts are in the billing currency"


def probe(head: Head) -> Claim:
    """A header with billed cost, billing currency and charge period."""
    if any(keys >= _NEEDED for keys in begin_of(head, (b"BilledCost",)).shapes()):
        return Claim(1, "")
    return Claim(0, "its header has no BilledCost, BillingCurrency and ChargePeriodStart")


def _take(row: dict[str, Any], record: int, sink: Sink) -> None:
    begin, end = (moment(row.get(f"ChargePeriod{at}"), "ChargePeriod", sink) for at in _EDGES)
    amount = exact(row.get("BilledCost"), "BilledCost")
    if begin is None or amount is None:
        raise Bad("no line of a bill: it has no ChargePeriodStart or no BilledCost")
    quantity, unit = exact(row.get("ConsumedQuantity"), "ConsumedQuantity"), _unit(row, "Consumed")
    if quantity is None:
        quantity = exact(row.get("PricingQuantity"), "PricingQuantity")
        unit = _unit(row, "Pricing")
    size = tokens_in(unit) if "token" in (unit or "").lower() else None
    meter, kind = _meter(row) if size else (None, None)
    currency, priced = name(row.get("BillingCurrency")), name(row.get("PricingCurrency"))
    if priced and priced != currency and not (priced.isupper() and len(priced) == _CODE_CHARS):
        sink.assumed.add(_VIRTUAL)
    charge = name(row.get("ChargeCategory"))
    provider = name(row.get("ProviderName")) or name(row.get("ServiceProviderName"))
    add_line(
        sink, record, (begin, end), model=model_in(meter) if meter else None, token_kind=kind,
        quantity=in_tokens(quantity, size), unit="tokens" if size else unit, amount=amount,
        effective_amount=exact(row.get("EffectiveCost"), "EffectiveCost"),
        list_amount=exact(row.get("ListCost"), "ListCost"), currency=currency,
        provider=provider.lower() if provider else None,
        item=next((told for one in _ITEMS if (told := name(row.get(one)))), None),
        charge=charge.lower() if charge else None, service_tier=tier_in(meter),
        account=name(row.get("SubAccountId")) or name(row.get("BillingAccountId")),
    )  # fmt: skip


_EDGES = ("Start", "End")


def _unit(row: dict[str, Any], which: str) -> str | None:
    return name(row.get(f"{which}Unit"))


def _meter(row: dict[str, Any]) -> tuple[str | None, str | None]:
    """The name of what was metered, and its kind of token; a description tells no model."""
    for one in _METERS:
        meter = name(row.get(one))
        if meter and (kind := kind_in(meter)):
            return without_place(meter) if one == _AWS else meter, kind
    described = row.get("ChargeDescription")
    return None, kind_in(described) if isinstance(described, str) else None


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``invoice_line`` row a charge."""
    return read_rows(file, options, _take, exact=True)


READER = Reader(
    title="FOCUS 1.x bill (CSV)",
    record_unit="row",
    gives=("invoice_line",),
    probe=probe,
    read=read,
    docs="https://focus.finops.org/focus-specification/",
    cannot="single requests; the model and kind of token, unless the vendor's meter names them",
    enable="the cloud's FOCUS export, hourly or daily, as CSV",
    checked_against="the FinOps Foundation's sample (1,000 rows, no model calls in it) and its "
    "example of a virtual currency",
    facts=(
        ("amount", "BilledCost; EffectiveCost as effective_amount, ListCost as list_amount"),
        ("negative", "credits and corrections are negative and stay so"),
        ("other services", "their lines are kept, without a kind of token"),
    ),
)
