"""Azure cost exports (CSV): EA, MCA and older ones, with English or bilingual headers.

Meters are names without a rule: model, ``cached|cchd|Cd``, ``Inp|Inpt|Outp|opt|Wr``, place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from analyzer.contract.types import Batch
from analyzer.readers._bill import add_line, day, exact, in_tokens, name
from analyzer.readers._bill_words import kind_in, model_in, slug, tier_in, tokens_in, words
from analyzer.readers._exports import begin_of, read_rows
from analyzer.readers._file import Head, InputFile
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._reader import Claim, Options, Reader

_DATES = ("date", "usagedatetime", "usagedate")
_COSTS = ("costinbillingcurrency", "cost", "pretaxcost", "extendedcost")
_QUANTITIES = ("quantity", "usagequantity", "consumedquantity")
_CURRENCIES = ("billingcurrencycode", "billingcurrency", "currency")
_BILINGUAL = re.compile(r".*\(([A-Za-z0-9]+)\)")
_MODELS = re.compile(r"openai|foundry", re.IGNORECASE)
_PLACES = frozenset({"data", "std", "dz", "reg"})
_MOST_METERS = 20


def probe(head: Head) -> Claim:
    """A header with meter, unit, date, quantity and cost, in any of its spellings."""
    for needle in (b"MeterName", b"meterName"):
        for keys in begin_of(head, (needle,)).shapes():
            have = {plain(key) for key in keys}
            if have >= {"metername", "unitofmeasure"} and all(
                have & set(names) for names in (_DATES, _COSTS, _QUANTITIES)
            ):
                return Claim(1, "")
    return Claim(0, "its header has no MeterName, UnitOfMeasure, date, quantity and cost")


@lru_cache(maxsize=1_000)
def plain(column: str) -> str:
    """``Ma\u00dfeinheit (UnitOfMeasure)`` and ``unitOfMeasure`` are ``unitofmeasure``."""
    match = _BILINGUAL.fullmatch(column)
    return (match[1] if match else column).lower()


def _any(row: dict[str, Any], names: tuple[str, ...]) -> Any:  # noqa: ANN401
    return next((row[one] for one in names if row.get(one)), None)


class _Export:
    """The rows of one file; names each meter of a model that says no kind of token, once."""

    def __init__(self) -> None:
        self.unknown: set[str] = set()

    def take(self, told: dict[str, Any], record: int, sink: Sink) -> None:
        row = {plain(key): value for key, value in told.items()}
        period = day(_any(row, _DATES), "Date", sink)
        amount = exact(_any(row, _COSTS), "Cost")
        if period[0] is None or amount is None:
            raise Bad("no line of a bill: it has no date or no cost")
        meter, unit = name(row.get("metername")), name(row.get("unitofmeasure"))
        kind = self._kind(row, meter, unit, sink)
        size = tokens_in(unit) if kind else None
        currency, charge = name(_any(row, _CURRENCIES)), name(row.get("chargetype"))
        add_line(
            sink, record, period,
            model=slug(model_in(meter, _PLACES)) if kind and meter else None, token_kind=kind,
            quantity=in_tokens(exact(_any(row, _QUANTITIES), "Quantity"), size),
            unit="tokens" if size else unit, amount=amount, currency=currency, provider="azure",
            item=meter, charge=charge.lower() if charge else None,
            service_tier=tier_in(meter) if kind else None,
            long_context=_long(meter) if kind else None,
            account=name(_any(row, ("subscriptionid", "subscriptionguid"))),
        )  # fmt: skip

    def _kind(
        self, row: dict[str, Any], meter: str | None, unit: str | None, sink: Sink
    ) -> str | None:
        """The kind of token of a meter whose unit can be tokens."""
        of_models = any(
            _MODELS.search(row.get(one) or "")
            for one in ("metersubcategory", "metercategory", "productname")
        )
        if not meter or not (of_models or {"token", "tokens"} & {*words(meter)}):
            return None
        kind = kind_in(meter) if tokens_in(unit) else None
        if kind is None and len(self.unknown) < _MOST_METERS:
            self.unknown.add(meter)
            sink.assumed.add(f"meter {meter!r} names no kind of token that is known")
        return kind


def _long(meter: str | None) -> bool | None:
    told = words(meter or "")
    return True if "long" in told else False if "short" in told else None


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``invoice_line`` row a line of the export."""
    return read_rows(file, options, _Export().take, exact=True)


READER = Reader(
    title="Azure cost export (CSV)",
    record_unit="row",
    gives=("invoice_line",),
    probe=probe,
    read=read,
    docs="https://learn.microsoft.com/azure/cost-management-billing/automate/understand-usage-details-fields",
    cannot="single requests; anything below a day; the lifetime of cache writes; which day is "
    "meant by a date like 3/4/2026, which is read month first; models whose meters follow no rule",
    enable="Cost Management > Exports > Cost and usage details (actual), daily, CSV",
    checked_against="a real anonymised EA export (27 rows) and three headers, one of them German; "
    "meters of models only as Azure's price list names them",
    facts=(
        (
            "meters",
            "one of a model service that names no kind of token is named among what was assumed",
        ),
        ("tokens", "quantities of units of 1K or 1M are turned into tokens on meters of models"),
        ("other services", "their lines are kept, without a kind of token"),
    ),
)
