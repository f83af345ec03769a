"""AWS cost and usage reports (CUR), legacy (``lineItem/UsageType``) and 2.0, as CSV.

What a line is for stands in its usage type alone; the unit differs from service to Marketplace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._bill import add_line, exact, in_tokens, moment, name
from analyzer.readers._bill_words import (
    kind_in,
    model_in,
    tier_in,
    tokens_in,
    tokens_told,
    without_place,
)
from analyzer.readers._exports import begin_of, mapping, read_rows
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._reader import Claim, Options, Reader

_NEEDED = ("line_item_usage_type", "line_item_usage_start_date", "line_item_unblended_cost")
_FEWEST = 25
"""Cells up to the costs; later columns may lack where a header has one name too many."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TOKENS = re.compile(r"tokens?(?![a-z])|TokenCount", re.IGNORECASE)
_EDITION = re.compile(r"\s*\(Amazon Bedrock Edition\)\s*$")
_NO_UNIT = "a line for tokens does not tell how many its unit holds: its quantity is as billed"


def probe(head: Head) -> Claim:
    """A header with usage type, start and unblended cost, however it is spelled."""
    for needle in (b"lineItem/", b"line_item_"):
        for keys in begin_of(head, (needle,)).shapes():
            if {snake(key) for key in keys} >= set(_NEEDED):
                return Claim(1, "")
    return Claim(0, "its header has no lineItem/UsageType or line_item_usage_type")


@lru_cache(maxsize=1_000)
def snake(column: str) -> str:
    """``lineItem/UsageType`` as CUR 2.0 calls it: ``line_item_usage_type``."""
    return _HUMP.sub("_", column).replace("/", "_").lower()


def _take(told: dict[str, Any], record: int, sink: Sink) -> None:
    row = {snake(key): value for key, value in told.items()}
    begin = moment(row.get("line_item_usage_start_date"), "UsageStartDate", sink)
    end = moment(row.get("line_item_usage_end_date"), "UsageEndDate", sink)
    amount = exact(row.get("line_item_unblended_cost"), "UnblendedCost")
    if begin is None or amount is None:
        raise Bad("no line of a bill: it has no UsageStartDate or no UnblendedCost")
    usage = name(row.get("line_item_usage_type"))
    quantity = exact(row.get("line_item_usage_amount"), "UsageAmount")
    unit, kind = name(row.get("pricing_unit")), _kind(usage)
    size = _size(row, unit, sink) if kind else None
    add_line(
        sink, record, (begin, end), model=_model(usage, row) if kind else None, token_kind=kind,
        quantity=in_tokens(quantity, size), unit="tokens" if size else unit, amount=amount,
        list_amount=exact(row.get("pricing_public_on_demand_cost"), "publicOnDemandCost"),
        currency=name(row.get("line_item_currency_code")), provider="aws", item=usage,
        charge=_lower(row.get("line_item_line_item_type")),
        service_tier=tier_in(usage) if kind else None,
        long_context=True if kind and usage and "long-context" in usage else None,
        account=name(row.get("line_item_usage_account_id")),
    )  # fmt: skip


def _lower(value: Any) -> str | None:  # noqa: ANN401
    told = name(value)
    return told.lower() if told else None


def _kind(usage: str | None) -> str | None:
    return kind_in(usage) if usage and _TOKENS.search(usage) else None


def _model(usage: str | None, row: dict[str, Any]) -> str | None:
    """What the usage type begins with; on the Marketplace, the product bears the model's name."""
    told = model_in(without_place(usage or ""))
    if told is None:
        product = row.get("product_product_name") or mapping(row.get("product")).get("product_name")
        told = _EDITION.sub("", name(product) or "") or None
    return told


def _size(row: dict[str, Any], unit: str | None, sink: Sink) -> Decimal | None:
    """Tokens of one unit, from the pricing unit, else from the description; never assumed."""
    size = tokens_in(unit)
    if size is None:
        described = row.get("line_item_line_item_description")
        size = tokens_told(unit) or tokens_told(described if isinstance(described, str) else None)
    if size is None:
        sink.assumed.add(_NO_UNIT)
    return size


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``invoice_line`` row a line item."""
    return read_rows(file, options, _take, exact=True, fewest=_FEWEST)


READER = Reader(
    title="AWS cost and usage report (CUR, CUR 2.0; CSV)",
    record_unit="row",
    gives=("invoice_line",),
    probe=probe,
    read=read,
    docs="https://docs.aws.amazon.com/cur/latest/userguide/table-dictionary-cur2-line-item.html",
    cannot="single requests; anything below an hour; the last 24 to 48 hours, and yesterday whole; "
    "the lifetime of cache writes whose usage type does not name it; the model, where only the "
    "Marketplace product would name it and that column is missing",
    enable="Billing > Data exports > Standard export CUR 2.0, hourly, text/csv with gzip, with the "
    "product and pricing columns",
    checked_against="the fields of two reports of public test data (no model calls in them); usage "
    "types of AWS's price list",
    facts=(
        ("amount", "unblended cost; public on-demand cost as list_amount"),
        ("tokens", "quantities of units of 1K or 1M tokens are turned into tokens"),
        ("other services", "their lines are kept, without a kind of token"),
    ),
)
