"""LiteLLM's ``model_prices_and_context_window.json``: a catalog to hold ours against."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from analyzer.contract.types import Batch, Problem
from analyzer.readers._file import BOM, Head, InputFile
from analyzer.readers._json_stream import Item, each_item
from analyzer.readers._jsonl import Bad, Sink, Skip, usd
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt, text_or_none

_KINDS = {
    "input": ("input_cost_per_token{}",),
    "cache_read": ("cache_read_input_token_cost{}",),
    "cache_write_short": ("cache_creation_input_token_cost{}",),
    "cache_write_long": (
        "cache_creation_input_token_cost_above_1hr{}",
        "cache_creation_input_token_cost_above_12hr{}",
    ),
    "output": ("output_cost_per_token{}",),
}
_STEP = re.compile(r"(?:input|output)_cost_per_token_above_(\d{1,6})k_tokens")
_ENTRY = re.compile(rb'\s*\{\s*"[^"\\]+"\s*:\s*\{')
_MILLION = 1_000_000
_EXPLAINS, _OTHERWISE = "what the fields mean", "not priced by the token"
_BATCH = 5_000


def probe(head: Head) -> Claim:
    """An object of models whose entries name a ``litellm_provider`` and token prices."""
    if not _ENTRY.match(head.data.removeprefix(BOM)):
        return Claim(0, "it is no JSON object of models")
    missing = [k for k in ("litellm_provider", "cost_per_token") if k.encode() not in head.data]
    if missing:
        return Claim(0.3 * (2 - len(missing)), f"its models lack {', '.join(missing)}")
    return Claim(1, "")


def _take(item: Item, record: int, sink: Sink) -> None:
    entry, model = item.value, item.path[-1] if item.path else None
    if not isinstance(entry, dict) or not isinstance(model, str):
        raise Bad("no entry of a model: an object with litellm_provider and prices is needed")
    if model == "sample_spec":
        raise Skip(_EXPLAINS)
    provider = text_or_none(entry.get("litellm_provider"))
    steps = [int(match[1]) * 1000 for match in map(_STEP.fullmatch, entry) if match]
    rows = []
    for above in (None, *sorted(set(steps))):
        suffix = "" if above is None else f"_above_{above // 1000}k_tokens"
        for kind, names in _KINDS.items():
            price = next(
                (v for n in names if (v := _price(entry, n.format(suffix))) is not None), None
            )
            if price is not None:
                rows.append((kind, above, price))
    if not rows:
        raise Skip(_OTHERWISE)
    for kind, above, price in rows:
        sink.add(
            "price", record, model=model, provider=provider, token_kind=kind, catalog="litellm",
            above_input_tokens=above, usd_per_million_tokens=price, currency="USD",
        )  # fmt: skip


def _price(entry: dict[str, Any], name: str) -> Decimal | None:
    told = entry.get(name)
    if told is None or isinstance(told, bool) or not isinstance(told, (int, Decimal)):
        return None
    price = usd(str(Decimal(told) * _MILLION))
    if price is not None and price < 0:
        raise Bad(f"{name} is below zero")
    return price


def read(file: InputFile, options: Options) -> Iterator[Batch]:  # noqa: ARG001 - reader contract
    """One ``price`` row a model, kind of token and prompt step, marked as LiteLLM's."""
    sink, first, record = Sink(), 0, 0
    for item in each_item(file, [()], exact=True):
        record += 1
        if item.broken:
            around = excerpt(item.value)
            sink.problems.append(Problem(record, item.broken, around, item.offset))
            continue
        try:
            _take(item, record, sink)
        except Skip as skip:
            sink.ignored[str(skip)] += 1
        except (Bad, ArithmeticError) as bad:
            sink.problems.append(Problem(record, str(bad), "", item.offset))
        if record - first >= _BATCH:
            yield sink.batch(record - first)
            sink, first = Sink(), record
    yield sink.batch(record - first)


READER = Reader(
    title="LiteLLM's price catalog (JSON)",
    record_unit="model",
    gives=("price",),
    probe=probe,
    read=read,
    docs="https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json",
    cannot="since when a price holds; its prices of tiers (batch, flex, priority) are not read",
    enable="download the file and put it beside the logs: prices that differ from ours are "
    "reported, and models that only it has are priced by it",
    checked_against="the catalog of LiteLLM 1.110.2 (955 models)",
)
