"""Anthropic's costs: pages of the cost report, whose amounts are cents, and the console's CSV."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._bill import above_usual, add_line, day, exact, in_tokens, name
from analyzer.readers._bill_pages import Period, period_of, read_pages, result_keys, take_buckets
from analyzer.readers._bill_words import kind_in
from analyzer.readers._exports import begin_of, mapping
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink, Skip
from analyzer.readers._reader import Claim, Options, Reader

_BUCKET = {"starting_at", "ending_at", "results"}
_ANALYTICS = {"starting_at", "ending_at", "cost", "group"}
_TABLE = {"usage_date_utc", "cost_usd", "token_type"}
_EDGES = ("starting_at", "ending_at")
_CENT = Decimal("0.01")
_OVERLAP = "the share of a group: groups overlap and do not add up"
_FRESH = {"uncached_input_tokens", "input_no_cache"}
"""Names that say ``cache`` of tokens which were not in it."""


def probe(head: Head) -> Claim:
    """Buckets whose results cost something, or the header of the console's export."""
    begin = begin_of(head, (b"starting_at", b"amount"))
    if {"amount", "currency"} <= (result_keys(begin, _BUCKET) or set()):
        return Claim(1, "")
    tables = begin_of(head, (b"usage_date_utc",))
    if any(keys >= _ANALYTICS for keys in begin.shapes()) or any(
        keys >= _TABLE for keys in tables.shapes()
    ):
        return Claim(1, "")
    return Claim(0, "it has no buckets of Anthropic's cost report")


def _take(row: dict[str, Any], record: int, sink: Sink) -> None:
    if take_buckets(row, _EDGES, record, sink, _take_result):
        return
    if isinstance(row.get("cost"), dict):
        group = mapping(row.get("group"))
        _take_result(group | row["cost"], period_of(row, _EDGES, sink), record, sink)
        return
    period = day(row.get("usage_date_utc"), "usage_date_utc", sink)
    if period[0] is None:
        raise Bad("no bucket and no row of Anthropic's costs: it has no usage_date_utc")
    amount = exact(row.get("cost_usd"), "cost_usd")
    batch = "batch" if "batch" in str(row.get("usage_type", "")).lower() else None
    _line(row, period, record, sink, amount, None, "USD", batch)


def _take_result(row: dict[str, Any], period: Period, record: int, sink: Sink) -> None:
    if any("rbac" in key and value for key, value in row.items()):
        raise Skip(_OVERLAP)
    amount, listed = (exact(row.get(key), key) for key in ("amount", "list_amount"))
    currency = name(row.get("currency"))
    _line(
        row, period, record, sink, in_tokens(amount, _CENT), in_tokens(listed, _CENT),
        currency.upper() if currency else None, name(row.get("service_tier")),
    )  # fmt: skip


def _line(
    row: dict[str, Any], period: Period, record: int, sink: Sink, amount: Decimal | None,
    listed: Decimal | None, currency: str | None, tier: str | None,
) -> None:  # fmt: skip
    if amount is None:
        raise Bad("a cost without an amount")
    kind = name(row.get("token_type"))
    add_line(
        sink, record, period, model=name(row.get("model") or row.get("model_version")),
        token_kind="input_fresh" if kind in _FRESH else kind_in(kind or ""),
        amount=amount, list_amount=listed, currency=currency, provider="anthropic",
        item=kind or name(row.get("cost_type")), service_tier=tier,
        long_context=above_usual(row.get("context_window")),
        account=name(row.get("workspace_id") or row.get("workspace")),
    )  # fmt: skip


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``invoice_line`` row a cost; cents become whole units of the currency."""
    return read_pages(file, options, _take)


READER = Reader(
    title="Anthropic costs (cost report, console CSV)",
    record_unit="bucket or row",
    gives=("invoice_line",),
    probe=probe,
    read=read,
    docs="https://platform.claude.com/docs/en/build-with-claude/usage-cost-api",
    cannot="how many tokens were billed: they stand in the usage report; anything below a day; "
    "single requests; money of the priority tier; model and kind of token, unless grouped by "
    "description",
    enable="GET /v1/organizations/cost_report with group_by[] description and workspace_id; fetch "
    "every page (next_page)",
    checked_against="Anthropic's published example of the API and headers in public code; no real "
    "export",
    facts=(
        ("cents", "amount and list_amount of the API are cents, cost_usd of the CSV is dollars"),
        ("groups", "of the analytics report, rows of one RBAC group overlap and are left out"),
    ),
)
