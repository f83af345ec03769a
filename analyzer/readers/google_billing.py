"""Google Cloud billing export of BigQuery: rows as JSON, a line each or a list, or as CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._bill import add_line, exact, moment, name
from analyzer.readers._bill_words import kind_in, model_in, slug, tier_in, words
from analyzer.readers._exports import begin_of, mapping, nested, read_rows
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._reader import Claim, Options, Reader

_NEEDED = {"usage_start_time", "cost"}
_SKU = ({"sku"}, {"sku.description"}, {"sku_description"})
_SERVICES = {"C7E2-9256-1C43"}
_MODELS = re.compile(r"vertex ai|gemini|generative language", re.IGNORECASE)
_CHARACTERS = re.compile(r"gemini-1[.-]|palm|bison")
_NOT_THE_NAME = frozenset({"ga", "text", "audio", "image", "video"})
_BY_CHARACTER = "models before Gemini 2 were billed by character: their counts are no tokens"
_MOST_SKUS = 20


def probe(head: Head) -> Claim:
    """Rows with ``usage_start_time``, ``cost`` and ``sku``."""
    for keys in begin_of(head, (b"usage_start_time", b"sku")).shapes():
        if keys >= _NEEDED and any(keys >= sku for sku in _SKU):
            return Claim(1, "")
    return Claim(0, "it has no rows with usage_start_time, cost and sku")


def _at(row: dict[str, Any], outer: str, inner: str) -> Any:  # noqa: ANN401
    """A field of a nested column, which a table may call ``sku.id`` or ``sku_id``."""
    told = mapping(row.get(outer)).get(inner)
    if told is None:
        told = row.get(f"{outer}.{inner}", row.get(f"{outer}_{inner}"))
    return told


class _Export:
    """The rows of one file; names each SKU of a model that says no kind of token, once."""

    def __init__(self) -> None:
        self.unknown: set[str] = set()

    def take(self, row: dict[str, Any], record: int, sink: Sink) -> None:
        begin, end = (moment(row.get(f"usage_{at}_time"), "usage time", sink) for at in _EDGES)
        amount = exact(row.get("cost"), "cost")
        if begin is None or amount is None:
            raise Bad("no line of a bill: it has no usage_start_time or no cost")
        sku, unit = name(_at(row, "sku", "description")), name(_at(row, "usage", "unit"))
        kind = self._kind(row, sku, unit, sink)
        model = slug(model_in(sku, _NOT_THE_NAME)) if kind and sku else None
        if kind and model and _CHARACTERS.search(model):
            sink.assumed.add(_BY_CHARACTER)
            kind = None
        charge, account = name(row.get("cost_type")), name(_at(row, "project", "id"))
        add_line(
            sink, record, (begin, end), model=model, token_kind=kind,
            quantity=exact(_at(row, "usage", "amount"), "usage.amount"),
            unit="tokens" if kind else unit, amount=amount,
            list_amount=exact(row.get("cost_at_list"), "cost_at_list"),
            currency=name(row.get("currency")), provider="google", item=sku, charge=charge,
            service_tier=tier_in(sku) if kind else None,
            long_context=True if kind and "long" in words(sku or "") else None, account=account,
        )  # fmt: skip
        self._credits(row, record, sink, model, account)

    def _kind(
        self, row: dict[str, Any], sku: str | None, unit: str | None, sink: Sink
    ) -> str | None:
        service = _at(row, "service", "description")
        of_models = name(_at(row, "service", "id")) in _SERVICES or (
            isinstance(service, str) and _MODELS.search(service)
        )
        if not sku or not of_models or unit not in ("count", "tokens"):
            return None
        kind = kind_in(sku)
        if kind is None and len(self.unknown) < _MOST_SKUS:
            self.unknown.add(sku)
            sink.assumed.add(f"SKU {'_'.join(sku.split())!r} names no kind of token that is known")
        return kind

    def _credits(
        self, row: dict[str, Any], record: int, sink: Sink, model: str | None, account: str | None
    ) -> None:
        """Each credit is a line of its own: the cost stands before them."""
        some = nested(row.get("credits"))
        for one in some if isinstance(some, list) else ():
            amount = exact(one.get("amount"), "credits.amount") if isinstance(one, dict) else None
            if amount is None:
                sink.problems.append(Problem(record, "a credit without an amount"))
                continue
            begin, end = (moment(row.get(f"usage_{at}_time"), "time", sink) for at in _EDGES)
            add_line(
                sink, record, (begin, end), model=model, amount=amount,
                currency=name(row.get("currency")), provider="google",
                item=name(one.get("type")), charge="credit", account=account,
            )  # fmt: skip


_EDGES = ("start", "end")


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``invoice_line`` row a row, and one a credit."""
    return read_rows(file, options, _Export().take, exact=True)


READER = Reader(
    title="Google Cloud billing export (BigQuery rows as JSON or CSV)",
    record_unit="row",
    gives=("invoice_line",),
    probe=probe,
    read=read,
    docs="https://cloud.google.com/billing/docs/how-to/export-data-bigquery-tables",
    cannot="single requests; storage of cached prompts by request (a line in hours that no log of "
    "tokens shows); tokens of models before Gemini 2, which are billed by character",
    enable="Billing > Billing export > Standard usage cost to BigQuery; then bq query or bq "
    "extract to JSON, with service, sku, usage, cost, credits and their times",
    checked_against="Google's description of the table and SKUs of its price list; no real export",
    facts=(
        ("credits", "lines of their own, negative; the cost of a line is before them"),
        ("count", "usage.unit count of a SKU for tokens is taken for tokens"),
    ),
)
