"""OpenAI's costs: pages of the organization's costs API, and the CSV export of costs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._bill import add_line, exact, in_tokens, name
from analyzer.readers._bill_pages import (
    Period,
    is_empty_page,
    period_of,
    read_pages,
    result_keys,
    take_buckets,
)
from analyzer.readers._bill_words import kind_in, tier_in, tokens_in
from analyzer.readers._exports import begin_of
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip
from analyzer.readers._reader import Claim, Options, Reader

_BUCKET = {"object", "start_time", "end_time", "results"}
_TABLE = {"start_time", "end_time", "amount_value", "amount_currency"}
_EDGES = ("start_time", "end_time")
_ITEM = re.compile(r"(?P<model>[\w.:-]*\d[\w.:-]*)\s*[,| ]\s*(?P<rest>\S.*)")
_NO_MONEY = "an interval without costs"


def probe(head: Head) -> Claim:
    """Buckets whose results are costs, or the header with ``amount_value``."""
    keys = result_keys(begin_of(head, (b"end_time", b"results", b"amount")), _BUCKET)
    if keys and "amount" in keys:
        return Claim(1, "")
    if any(keys >= _TABLE for keys in begin_of(head, (b"amount_currency",)).shapes()):
        return Claim(1, "")
    if is_empty_page(head):
        return Claim(0.9, "a usage or cost report without a line: ask for the days of the logs")
    return Claim(0, "it has no buckets of OpenAI's costs API")


def _take(row: dict[str, Any], record: int, sink: Sink) -> None:
    if take_buckets(row, _EDGES, record, sink, _take_result):
        return
    if not row.keys() >= set(_EDGES):
        raise Bad("no bucket and no row of OpenAI's costs: it has no start_time and end_time")
    if row.get("amount_value") is None:
        raise Skip(_NO_MONEY)
    money = {"value": row["amount_value"], "currency": row.get("amount_currency")}
    _take_result(row | {"amount": money}, period_of(row, _EDGES, sink), record, sink)


def _take_result(row: dict[str, Any], period: Period, record: int, sink: Sink) -> None:
    money = row.get("amount")
    if not isinstance(money, dict):
        raise Bad("a cost without an amount")
    amount = exact(money.get("value"), "amount")
    if amount is None:
        raise Bad("a cost without an amount")
    item = name(row.get("line_item"))
    model, kind = _item(item)
    unit = name(row.get("quantity_unit"))
    quantity, size = exact(row.get("quantity"), "quantity"), _size(unit)
    currency = name(money.get("currency"))
    add_line(
        sink, record, period, model=model, token_kind=kind,
        quantity=in_tokens(quantity, size), unit="tokens" if size else unit,
        amount=amount, currency=currency.upper() if currency else None, provider="openai",
        item=item, service_tier=tier_in(item), account=name(row.get("project_id")),
    )  # fmt: skip


def _item(item: str | None) -> tuple[str | None, str | None]:
    """Model and kind of token of ``gpt-x, cached input``; other spellings tell neither."""
    match = _ITEM.fullmatch(item or "")
    kind = kind_in(match["rest"]) if match else None
    return (match["model"], kind) if match and kind else (None, None)


def _size(unit: str | None) -> Any:  # noqa: ANN401
    return tokens_in(unit.replace("_", " ")) if unit and "token" in unit else None


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``invoice_line`` row a cost."""
    return read_pages(file, options, _take)


READER = Reader(
    title="OpenAI costs (API pages, CSV)",
    record_unit="bucket or row",
    gives=("invoice_line",),
    probe=probe,
    read=read,
    docs="https://platform.openai.com/docs/api-reference/usage/costs",
    cannot="anything below a day; single requests; the model and the kind of token, unless grouped "
    "by line_item",
    enable="GET /v1/organization/costs with group_by=line_item and project_id; fetch every page "
    "(next_page)",
    checked_against="the fields of OpenAI's SDK and headers in public code; no real export",
    facts=(
        ("line_item", "a text whose spellings differ; one that names no token keeps its name"),
        ("pages", "a page with has_more is only a part: put all of them into the folder"),
    ),
)
