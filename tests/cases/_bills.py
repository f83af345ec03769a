"""Calls, a client's log of them, and the bills of each kind that they would stand on."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS, prices, request_record, rfc3339, write_lines
from cases._build import at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

HOUR, DAY = 3_600 * NS, 86_400 * NS
T0 = at("2026-03-02T00:00:00Z")
KINDS = ("input_fresh", "cache_read", "cache_write_short", "output")
RATE = {
    "input_fresh": Decimal("2.50"),
    "cache_read": Decimal("0.25"),
    "cache_write_short": Decimal("3.125"),
    "output": Decimal("12.00"),
}
"""Of a million tokens."""
NAMES = {
    "input_fresh": "input",
    "cache_read": "cache_read",
    "cache_write_short": "cache_write_short",
    "output": "output",
}


@dataclass(frozen=True)
class Call:
    """One answered call."""

    at_ns: int
    model: str
    input_fresh: int = 0
    cache_read: int = 0
    cache_write_short: int = 0
    output: int = 0
    factor: Decimal = Decimal(1)
    """Of the list price, as it is billed."""

    def usd(self, kind: str) -> Decimal:
        """What a kind of token costs on the bill."""
        return getattr(self, kind) * RATE[kind] * self.factor / 1_000_000

    @property
    def whole_usd(self) -> Decimal:
        """All of it."""
        return sum((self.usd(kind) for kind in KINDS), Decimal(0))


def calls(
    model: str, *, days: int = 6, per_day: int = 60, start_ns: int = T0, writes: bool = True
) -> list[Call]:
    """So many a day, spread over all of it, none like the other."""
    step = DAY // per_day
    return [
        Call(
            start_ns + k * step + 31 * (k % 97) * NS // 10, model, 900 + 37 * (k % 41),
            4_000 + 211 * (k % 29), 600 + 13 * (k % 31) if writes else 0, 220 + 19 * (k % 23),
        )
        for k in range(days * per_day)
    ]  # fmt: skip


def write_log(folder: Path, told: Iterable[Call], *, vendor: str | None = None) -> None:
    """The client's log of the calls, and a price list."""
    told = list(told)
    lines = [
        request_record(
            f"rq-{k:05d}", vantage="client", started_ns=one.at_ns,
            durations_ns={"e2e": 4 * NS + 7_000_000 * (k % 50)}, model=one.model, status=200,
            finish_reason="stop", provider=vendor,
            usage={
                "input_tokens": one.input_fresh, "cache_read_input_tokens": one.cache_read,
                "cache_creation_input_tokens": one.cache_write_short,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": one.cache_write_short,
                    "ephemeral_1h_input_tokens": 0,
                },
                "output_tokens": one.output,
            },
        )
        for k, one in enumerate(told)
    ]  # fmt: skip
    write_lines(folder / "calls.jsonl", lines)
    rates = {NAMES[kind]: str(rate) for kind, rate in RATE.items()}
    write_lines(folder / "prices.json", [prices({one.model: rates for one in told})])


def buckets(
    told: Sequence[Call], length_ns: int, shift_ns: int = 0
) -> dict[tuple[int, str], list[Call]]:
    """Calls by period and model; periods begin ``shift_ns`` after those of UTC."""
    found: dict[tuple[int, str], list[Call]] = defaultdict(list)
    for one in told:
        begin = (one.at_ns - shift_ns) // length_ns * length_ns
        found[begin, one.model].append(one)
    return dict(sorted(found.items()))


def _sum(some: Iterable[Call], kind: str) -> int:
    return sum(getattr(one, kind) for one in some)


def _usd(some: Iterable[Call], kind: str) -> Decimal:
    return sum((one.usd(kind) for one in some), Decimal(0))


def _json(value: Any) -> str:
    """Decimals keep their digits."""
    marked = json.dumps(value, default=lambda one: f"@{one:f}@")
    return marked.replace('"@', "").replace('@"', "")


def _table(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def openai_usage(told: Sequence[Call], length_ns: int = HOUR, shift_ns: int = 0) -> str:
    """A page of the usage API, grouped by model, which the vendor calls by its snapshot."""
    page = [
        {
            "object": "bucket", "start_time": begin // NS, "end_time": (begin + length_ns) // NS,
            "results": [{
                "object": "organization.usage.completions.result", "model": f"{model}-2026-02-03",
                "input_tokens": sum(_sum(some, kind) for kind in KINDS[:3]),
                "input_uncached_tokens": _sum(some, "input_fresh"),
                "input_cached_tokens": _sum(some, "cache_read"),
                "input_cache_write_tokens": _sum(some, "cache_write_short"),
                "output_tokens": _sum(some, "output"), "num_model_requests": len(some),
                "batch": None, "service_tier": None, "project_id": None,
            }],
        }
        for (begin, model), some in buckets(told, length_ns, shift_ns).items()
    ]  # fmt: skip
    return _json({"object": "page", "data": page, "has_more": False, "next_page": None})


def openai_costs(told: Sequence[Call], shift_ns: int = 0, **more: Any) -> str:
    """A page of the costs API by line item; ``more``: item -> amount on the first day."""
    words = {
        "input_fresh": "input", "cache_read": "cached input", "cache_write_short": "cache write",
        "output": "output",
    }  # fmt: skip
    page = []
    for (begin, model), some in buckets(told, DAY, shift_ns).items():
        results = [
            _openai_cost(f"{model}-2026-02-03, {words[kind]}", _usd(some, kind)) for kind in KINDS
        ]
        if not page:
            results += [_openai_cost(item, amount) for item, amount in more.items()]
        page.append({
            "object": "bucket", "start_time": begin // NS, "end_time": (begin + DAY) // NS,
            "results": results,
        })  # fmt: skip
    return _json({"object": "page", "data": page, "has_more": False, "next_page": None})


def _openai_cost(item: str, amount: Decimal) -> dict[str, Any]:
    return {
        "object": "organization.costs.result", "line_item": item, "project_id": None,
        "amount": {"value": amount, "currency": "usd"},
    }  # fmt: skip


def anthropic_usage(told: Sequence[Call], length_ns: int = HOUR, shift_ns: int = 0) -> str:
    """A page of the usage report."""
    page = [
        {
            "starting_at": rfc3339(begin), "ending_at": rfc3339(begin + length_ns),
            "results": [{
                "uncached_input_tokens": _sum(some, "input_fresh"),
                "cache_read_input_tokens": _sum(some, "cache_read"),
                "cache_creation": {
                    "ephemeral_5m_input_tokens": _sum(some, "cache_write_short"),
                    "ephemeral_1h_input_tokens": 0,
                },
                "output_tokens": _sum(some, "output"),
                "server_tool_use": {"web_search_requests": 0}, "model": f"{model}-20260203",
                "workspace_id": None, "api_key_id": None, "service_tier": "standard",
                "context_window": "0-200k",
            }],
        }
        for (begin, model), some in buckets(told, length_ns, shift_ns).items()
    ]  # fmt: skip
    return _json({"data": page, "has_more": False, "next_page": None})


def anthropic_costs(told: Sequence[Call], searches: str | None = None) -> str:
    """The cost report, in cents."""
    words = {
        "input_fresh": "uncached_input_tokens", "cache_read": "cache_read_input_tokens",
        "cache_write_short": "cache_creation.ephemeral_5m_input_tokens", "output": "output_tokens",
    }  # fmt: skip
    page = []
    for (begin, model), some in buckets(told, DAY).items():
        results = [
            {
                "amount": f"{_usd(some, kind) * 100:f}", "currency": "USD", "cost_type": "tokens",
                "token_type": words[kind], "description": "x", "model": f"{model}-20260203",
                "context_window": "0-200k", "service_tier": "standard", "workspace_id": None,
            }
            for kind in KINDS
        ]  # fmt: skip
        if searches and not page:
            nothing = dict.fromkeys(("token_type", "model", "context_window", "service_tier"))
            results.append(
                {"amount": searches, "currency": "USD", "cost_type": "web_search",
                 "description": "Web search", "workspace_id": None} | nothing
            )  # fmt: skip
        page.append(
            {"starting_at": rfc3339(begin), "ending_at": rfc3339(begin + DAY), "results": results}
        )
    return _json({"data": page, "has_more": False, "next_page": None})


def aws_cur(told: Sequence[Call], tax: str | None = None) -> str:
    """A cost and usage report, hourly, in units of a thousand tokens."""
    words = {
        "input_fresh": "input-tokens", "cache_read": "cache-read-input-token-count",
        "cache_write_short": "cache-write-input-token-count", "output": "output-tokens",
    }  # fmt: skip
    rows = []
    for (begin, _), some in buckets(told, HOUR).items():
        rows += [
            _cur(
                begin, HOUR, f"USE1-Claude4.2Teal-{words[kind]}-cross-region-global",
                Decimal(_sum(some, kind)) / 1_000, _usd(some, kind),
            )
            for kind in KINDS
        ]  # fmt: skip
        rows.append(_cur(begin, HOUR, "USE1-BoxUsage:t3.small", Decimal(1), Decimal("0.0208")))
    if tax:
        rows.append(_cur(T0, DAY, "USE1-Tax", Decimal(1), Decimal(tax), "Tax"))
    return _table(rows)


def _cur(
    begin: int, length: int, usage: str, amount: Decimal, cost: Decimal, charge: str = "Usage"
) -> dict[str, Any]:
    tokens = "token" in usage
    return {
        **{f"identity_{k}": "x" for k in range(14)},
        "line_item_usage_account_id": "111122223333", "line_item_line_item_type": charge,
        "line_item_usage_start_date": _plain(begin),
        "line_item_usage_end_date": _plain(begin + length),
        "line_item_product_code": "AmazonBedrock" if tokens else "AmazonEC2",
        "line_item_usage_type": usage, "line_item_operation": "x", "line_item_resource_id": "",
        "line_item_usage_amount": f"{amount:f}", "line_item_currency_code": "USD",
        "line_item_unblended_cost": f"{cost:f}", "line_item_line_item_description": "x",
        "product": "{}", "pricing_public_on_demand_cost": f"{cost:f}",
        "pricing_unit": "1K tokens" if tokens else "Hrs",
    }  # fmt: skip


def _plain(ns: int) -> str:
    return rfc3339(ns)[:19].replace("T", " ")


def azure_costs(told: Sequence[Call]) -> str:
    """A cost export, daily, in units of a thousand or a million tokens; its writes are not told."""
    words = {
        "input_fresh": ("Inp", "1K"), "cache_read": ("cached Inp", "1M"), "output": ("Outp", "1K"),
    }  # fmt: skip
    rows = []
    for (begin, model), some in buckets(told, DAY).items():
        for kind, (word, unit) in words.items():
            size = 1_000 if unit == "1K" else 1_000_000
            rows.append({
                "SubscriptionId": "00000000-0000-0000-0000-000000000001",
                "Date": rfc3339(begin)[:10], "ProductName": "Azure OpenAI",
                "MeterCategory": "Cognitive Services", "MeterSubCategory": "Azure OpenAI",
                "MeterId": "m", "MeterName": f"{model.replace('-', ' ')} {word} glbl Tokens",
                "UnitOfMeasure": unit, "Quantity": f"{Decimal(_sum(some, kind)) / size:f}",
                "CostInBillingCurrency": f"{_usd(some, kind):f}", "ChargeType": "Usage",
                "BillingCurrencyCode": "USD",
            })  # fmt: skip
    return _table(rows)


def google_billing(told: Sequence[Call], credit: str | None = None) -> str:
    """Rows of the billing export, hourly."""
    words = {
        "input_fresh": "Text Input", "cache_read": "Text Input Caching", "output": "Text Output",
    }  # fmt: skip
    lines = []
    for (begin, _), some in buckets(told, HOUR).items():
        for kind, word in words.items():
            one = {"name": "c", "type": "PROMOTION", "amount": Decimal(credit or 0)}
            lines.append(_json({
                "service": {"id": "C7E2-9256-1C43", "description": "Vertex AI"},
                "sku": {"id": "A", "description": f"Gemini 3.1 Teal GA {word} - Predictions"},
                "usage_start_time": f"{_plain(begin)} UTC",
                "usage_end_time": f"{_plain(begin + HOUR)} UTC",
                "usage": {"amount": _sum(some, kind), "unit": "count"}, "cost": _usd(some, kind),
                "currency": "USD", "cost_type": "regular",
                "credits": [one] if credit and not lines else [],
            }))  # fmt: skip
    return "\n".join(lines) + "\n"


def deepseek(told: Sequence[Call], currency: str = "USD") -> dict[str, str]:
    """Both files of the export: quantities by kind, money of each model as a whole."""
    amounts, costs = [], []
    types = {
        "cache_read": "input_cache_hit_tokens", "input_fresh": "input_cache_miss_tokens",
        "output": "output_tokens",
    }  # fmt: skip
    for (begin, model), some in buckets(told, DAY).items():
        head = {
            "user_id": "u", "start_time_iso": rfc3339(begin), "end_time_iso": rfc3339(begin + DAY),
            "model": model,
        }  # fmt: skip
        key = {"api_key_name": "k", "api_key": "sk-1***"}
        told_of = [(word, _sum(some, kind)) for kind, word in types.items()]
        for word, many in [*told_of, ("request_count", len(some))]:
            amounts.append(head | key | {"type": word, "price": "1", "amount": many})
        whole = sum((_usd(some, kind) for kind in types), Decimal(0))
        costs.append(head | {"wallet_type": "topped-up", "cost": f"{whole:f}",
                             "currency": currency})  # fmt: skip
    return {"amount-3.csv": _table(amounts), "cost-3.csv": _table(costs)}


def focus(told: Sequence[Call]) -> str:
    """A FOCUS bill, hourly, in millions of tokens."""
    words = {
        "input_fresh": "input-tokens", "cache_read": "cache-read-tokens",
        "cache_write_short": "cache-write-5m-tokens", "output": "output-tokens",
    }  # fmt: skip
    rows = []
    for (begin, model), some in buckets(told, HOUR).items():
        for kind in KINDS:
            usd, many = f"{_usd(some, kind):f}", Decimal(_sum(some, kind)) / 1_000_000
            rows.append({
                "BilledCost": usd, "BillingAccountId": "12", "BillingCurrency": "USD",
                "ChargeCategory": "Usage", "ChargeDescription": "Model use",
                "ChargePeriodEnd": _plain(begin + HOUR), "ChargePeriodStart": _plain(begin),
                "ConsumedQuantity": f"{many:f}", "ConsumedUnit": "1M Tokens", "EffectiveCost": usd,
                "ListCost": usd, "PricingQuantity": f"{many:f}", "PricingUnit": "1M Tokens",
                "ProviderName": "Acme", "ServiceName": "Acme Models", "SkuId": "S",
                "SkuMeter": f"{model}-{words[kind]}", "SubAccountId": "34", "Tags": "{}",
            })  # fmt: skip
    return _table(rows)


VENDORS: dict[str, tuple[str, bool, Callable[[Sequence[Call]], dict[str, str]]]] = {
    "openai": (
        "gpt-heron-2", True,
        lambda told: {"usage.json": openai_usage(told), "costs.json": openai_costs(told)},
    ),
    "anthropic": (
        "claude-teal-3", True,
        lambda told: {"usage.json": anthropic_usage(told), "costs.json": anthropic_costs(told)},
    ),
    "aws": ("claude-teal-4-2", True, lambda told: {"cur.csv": aws_cur(told)}),
    "azure": ("gpt-heron-2", False, lambda told: {"azure.csv": azure_costs(told)}),
    "google": ("gemini-3.1-teal", False, lambda told: {"google.jsonl": google_billing(told)}),
    "deepseek": ("deepseek-teal", False, deepseek),
    "focus": ("lyra-7", True, lambda told: {"focus.csv": focus(told)}),
}  # fmt: skip
"""Vendor -> model, whether its bill tells cache writes, files of its bill."""


def write_bills(folder: Path, files: dict[str, str]) -> None:
    """Each bill into its file."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def dearer(told: Iterable[Call], factor: str) -> list[Call]:
    """The same calls at another price."""
    return [replace(one, factor=Decimal(factor)) for one in told]
