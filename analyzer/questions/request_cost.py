"""What one request costs: part by part, with where its price is from."""

from __future__ import annotations

from typing import Any

from analyzer.engines.duckdb import Engine

_PARTS = ("fresh", "read", "write", "visible", "reasoning", "tools")
_ASKED = """SELECT usd, fresh_usd, read_usd, write_usd, visible_usd, reasoning_usd, tools_usd,
  unpriced_tokens, is_long_context, is_lower_bound, is_subscription, reported_usd, price_source,
  price_version, price_date, price_note
FROM cost_request WHERE request_key = {key} AND has_usage"""


def of_request(engine: Engine, key: int) -> tuple[tuple[str, Any], ...]:
    """Name and value of what is known; empty where its usage is not told."""
    rows = engine.rows(_ASKED.format(key=key))
    if not rows:
        return ()
    row = rows[0]
    out: dict[str, Any] = {"cost_usd": row["usd"]}
    out |= {f"{name}_usd": row[f"{name}_usd"] for name in _PARTS if row[f"{name}_usd"]}
    out |= {"unpriced_tokens": row["unpriced_tokens"]} if row["unpriced_tokens"] else {}
    said = {
        "is_long_context": "the price of long prompts",
        "is_lower_bound": "a lower bound: for how long it was written to the cache is not told",
        "is_subscription": "API-equivalent: a plan may include it",
    }
    words = [text for name, text in said.items() if row[name]]
    out |= {"counts_as": "; ".join(words)} if words else {}
    for name in ("reported_usd", "price_source", "price_version", "price_date", "price_note"):
        out |= {name: row[name]} if row[name] is not None else {}
    return tuple(out.items())
