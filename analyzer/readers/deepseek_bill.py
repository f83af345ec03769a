"""DeepSeek's usage export: ``amount-*.csv`` with quantities, ``cost-*.csv`` with money."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._bill import add_line, exact, name
from analyzer.readers._bill_pages import period_of
from analyzer.readers._exports import begin_of, read_rows
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._reader import Claim, Options, Reader

_AMOUNTS = {"start_time_iso", "end_time_iso", "model", "type", "price", "amount"}
_COSTS = {"start_time_iso", "end_time_iso", "wallet_type", "cost", "currency"}
_EDGES = ("start_time_iso", "end_time_iso")
_KINDS = {
    "input_cache_hit_tokens": "cache_read",
    "input_cache_miss_tokens": "input_fresh",
    "output_tokens": "output",
}


def probe(head: Head) -> Claim:
    """One of the two headers."""
    for keys in begin_of(head, (b"start_time_iso",)).shapes():
        if keys >= _AMOUNTS or keys >= _COSTS:
            return Claim(1, "")
    return Claim(0, "its header is none of DeepSeek's amount and cost files")


def _take(row: dict[str, Any], record: int, sink: Sink) -> None:
    period = period_of(row, _EDGES, sink)
    # The amount of the one file is a count; money is the cost of the other.
    kind, quantity = name(row.get("type")), exact(row.get("amount"), "amount")
    amount = exact(row.get("cost"), "cost")
    if amount is None and (kind is None or quantity is None):
        raise Bad("no row of DeepSeek's export: it has neither type and amount nor a cost")
    known = kind in _KINDS or kind == "request_count"
    if amount is None and not known:
        raise Bad("its type is none that is known: please report it")
    unit = None if amount is not None else "tokens" if kind in _KINDS else "requests"
    add_line(
        sink, record, period, model=name(row.get("model")), token_kind=_KINDS.get(kind or ""),
        quantity=quantity if unit else None, unit=unit, amount=amount,
        currency=name(row.get("currency")), provider="deepseek",
        item=kind if amount is None else name(row.get("wallet_type")),
    )  # fmt: skip


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``invoice_line`` row a row: a quantity of the one file, an amount of the other."""
    return read_rows(file, options, _take, exact=True)


READER = Reader(
    title="DeepSeek usage export (amount and cost CSV)",
    record_unit="row",
    gives=("invoice_line",),
    probe=probe,
    read=read,
    docs="https://platform.deepseek.com/usage",
    cannot="single requests; money by kind of token: the costs only tell the whole; reasoning "
    "apart from the rest of the output",
    enable="platform.deepseek.com > Usage > Export; ingest the ZIP or both of its files",
    checked_against="headers in public code; no real export",
    facts=(
        ("currency", "may be CNY; nothing is converted"),
        ("price", "the price column is not kept: its unit is not told"),
    ),
)
