"""Models without a price, whose tokens are in no sum of money.

main: 80 requests, 19 of them of a private model that no price file and no catalog knows.

twin: the price file has its price, dated before the first request.

The variants: other logs, a price in another currency, a catalog's model beside the unknown one.
The innocent ones are served by an engine of one's own, or nothing is priced at all.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from analyzer.simulate.writers import NS, Served, llm_span, write_lines
from cases._build import MS, at, expect, silent
from cases._calls import Call, openai_form, records, spend_logs, streams

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RULE = "cost.unpriced"
T0 = at("2026-05-20T13:00:00Z")
KNOWN, PRIVATE = "heron-2", "acme-internal-7b"
PRICE = {"input": 1.1, "cache_read": 0.11, "output": 4.4}
NOT = ["cost.cache-unpriced", "cost.long-context-tier"]


def mixed(count: int = 80, every: int = 4, private: str = PRIVATE, **fixed: Any) -> list[Call]:
    """Each ``every``-th request is of the unknown model, the first aside."""
    return [
        Call(
            at_ns=T0 + k * 30 * NS, session=f"s-{k}", prompt=2_000 + 37 * (k % 50), output=40,
            model=private if k % every == 3 and k > 3 else fixed.get("model", KNOWN),
        )
        for k in range(count)
    ]  # fmt: skip


def unknown(calls: list[Call], private: str = PRIVATE) -> dict:
    lost = [one for one in calls if one.model == private]
    tokens = sum(one.prompt + one.output for one in lost)
    wanted = expect(RULE, "none", len(lost), tokens, "tokens", NOT)
    return wanted | {"tolerance": 1e-9, "said": [private]}


def writer(
    files: dict[str, list[str]], *books: tuple[str, dict[str, Any]]
) -> Callable[[Path], None]:
    """Logs, and a price file a currency."""

    def write(folder: Path) -> None:
        for name, lines in files.items():
            write_lines(folder / name, lines)
        for n, (currency, models) in enumerate(books):
            book = {"currency": currency, "unit": "per_million_tokens", "models": models}
            write_lines(folder / f"prices{n or ''}.json", [json.dumps(book)])

    return write


def _engine(calls: list[Call]) -> dict[str, list[str]]:
    spans = [
        llm_span(
            Served(
                request_id=f"r-{k}", arrived_ns=one.at_ns, queue_ns=2 * MS, prefill_ns=90 * MS,
                decode_ns=800 * MS, prompt_tokens=one.prompt, output_tokens=one.output,
            )
        )
        for k, one in enumerate(calls)
    ]  # fmt: skip
    return {"spans.jsonl": spans}


MAIN = mixed()
CATALOG = mixed(model="gpt-4o")
DOLLARS = ("USD", {KNOWN: PRICE})
_TWIN = silent([RULE, *NOT])

CASES = {
    "main": (writer(records(MAIN, openai_form), DOLLARS), unknown(MAIN)),
    "twin": (
        writer(records(MAIN, openai_form), ("USD", {KNOWN: PRICE, PRIVATE: PRICE})), _TWIN,
    ),
    "streams": (writer(streams(mixed(40)), DOLLARS), unknown(mixed(40))),
    "gateway": (
        writer(spend_logs(MAIN, provider="openai"), DOLLARS), unknown(MAIN),
    ),
    "currency": (
        writer(records(MAIN, openai_form), DOLLARS, ("EUR", {PRIVATE: PRICE})), unknown(MAIN),
    ),
    "catalog": (writer(records(CATALOG, openai_form)), unknown(CATALOG)),
    "few": (writer(records(mixed(60, 20), openai_form), DOLLARS), unknown(mixed(60, 20))),
    "twin_nothing": (writer(records(MAIN, openai_form)), _TWIN),
    "twin_own": (writer(_engine(MAIN), DOLLARS), _TWIN),
}  # fmt: skip
