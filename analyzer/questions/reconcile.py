"""Where bills and the logs disagree, and why: tokens and money, and the sums of both."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from analyzer.contract.types import Table
from analyzer.engines.duckdb import Engine

NAME = "analyze.cost.reconciliation"
_RECORDS, _WHOLE = "records", "all"
_ATTEMPTS = "attempts given up and billed"

_ROWS = """SELECT bill, period_start_ns, period_end_ns, model, token_kind, logged_tokens,
  billed_tokens, difference_tokens, logged_usd, billed_usd, difference_usd, class, reason,
  evidence, is_harmless AS harmless, counts, is_material AS material
FROM cost_reconciled
ORDER BY CASE WHEN NOT counts THEN 4 WHEN is_material AND NOT is_harmless THEN 0
    WHEN is_material THEN 1 WHEN class <> 'matched' THEN 2 ELSE 3 END,
  abs(difference_usd) DESC NULLS LAST, abs(difference_tokens) DESC NULLS LAST, period_start_ns,
  bill, model, token_kind, class, reason, evidence"""

_RECORD_SUMS = """SELECT
  sum(CASE WHEN bill_key IS NOT NULL THEN billed_usd END) AS billed_usd,
  sum(CASE WHEN class IN ('matched', 'log only') THEN coalesce(logged_usd, billed_usd) END)
    AS tracked_usd,
  sum(CASE WHEN class = 'hidden' THEN billed_usd END) AS hidden_usd,
  sum(CASE WHEN class IN ('bill only', 'unmetered') THEN billed_usd END) AS unlogged_usd,
  sum(CASE WHEN class = 'log only' THEN logged_usd END) AS log_only_usd,
  sum(CASE WHEN class = 'matched' THEN billed_usd - logged_usd END) AS price_difference_usd,
  count(bill_key) AS requests_billed,
  count(CASE WHEN class IN ('matched', 'log only') THEN 1 END) AS requests_tracked,
  count(CASE WHEN class = 'hidden' THEN 1 END) AS requests_hidden,
  count(CASE WHEN class IN ('bill only', 'unmetered') THEN 1 END) AS requests_unlogged,
  count(CASE WHEN bill_key IS NOT NULL AND NOT is_charged THEN 1 END) AS requests_at_our_prices,
  CAST(coalesce(sum(billed_tokens), 0) AS BIGINT) AS billed_tokens,
  CAST(coalesce(sum(logged_tokens), 0) AS BIGINT) AS tracked_tokens
FROM cost_matched AS m
LEFT JOIN (
  SELECT DISTINCT period_start_ns, coalesce(model, '') AS model
  FROM cost_reconciled
  WHERE bill = 'records' AND NOT counts
) AS n
  ON m.start_ns - m.start_ns % 3600000000000 = n.period_start_ns AND coalesce(m.model, '') = n.model
WHERE m.class NOT IN ('not billed', 'suspected', 'not compared') AND n.model IS NULL"""
"""Of the records that count: where a bill tells more calls than they do, it does."""

_SUSPECTED = """SELECT count(*) AS requests_suspected, sum(low_usd) AS suspected_low_usd,
  sum(high_usd) AS suspected_high_usd
FROM cost_hidden WHERE NOT is_billed"""

_BILLED_REQUESTS = "SELECT bill, sum(requests) AS n FROM cost_bill_source GROUP BY bill"

_TRACKED_REQUESTS = """SELECT count(*) FROM cost_tracked AS t
JOIN resolve_request AS q ON t.request_key = q.request_key
CROSS JOIN (
  SELECT min(period_start_ns) AS first_ns, max(period_end_ns) AS last_ns
  FROM cost_reconciled
  WHERE counts
) AS w
WHERE t.is_metered AND q.start_ns >= w.first_ns AND q.start_ns < w.last_ns"""

Row = dict[str, Any]


def reconciled(engine: Engine) -> tuple[dict[str, Any] | None, Table]:
    """Sums of both sides, and every period, model and kind of token; None without a bill.

    Sums are made of the lines that count: no call stands in two of them. ``billed_usd`` is what is
    tracked and hidden, and ``unlogged_usd + price_difference_usd - log_only_usd + beside_usd``.
    """
    rows = tuple(engine.rows(_ROWS))
    table = Table(NAME, rows)
    if not any(_is_billed(row) for row in rows):
        return None, table
    suspected = engine.rows(_SUSPECTED)[0]
    counted = [row for row in rows if row["counts"]]
    sums: dict[str, Any] = {}
    if any(row["bill"] == _RECORDS and _is_billed(row) for row in counted):
        sums = engine.rows(_RECORD_SUMS)[0]
    invoices = [row for row in counted if row["bill"] != _RECORDS]
    if invoices:
        sums = _added(sums, _of_invoices(engine, invoices, rows))
    told = {name: _money(name, value) for name, value in (sums | suspected).items()}
    return told | _reasons(counted), table


def _added(records: dict[str, Any], bills: dict[str, Any]) -> dict[str, Any]:
    """Sums of records and of bills over other calls; what the logs track is counted over both."""
    out = records | bills
    for name in records.keys() & bills.keys():
        told = [side[name] for side in (records, bills) if side[name] is not None]
        out[name] = sum(told[1:], told[0]) if told else None
    if bills["requests_tracked"] is not None:
        out["requests_tracked"] = bills["requests_tracked"]
    return out


def _is_billed(row: Row) -> bool:
    return row["billed_tokens"] is not None or row["billed_usd"] is not None


def _money(name: str, value: Any) -> Any:  # noqa: ANN401 - a scalar of any SQL type
    """What no row tells of money is nothing where other rows do."""
    if value is None and name in ("hidden_usd", "unlogged_usd", "log_only_usd"):
        return Decimal(0)
    return value


def _of_invoices(engine: Engine, rows: list[Row], all_rows: tuple[Row, ...]) -> dict[str, Any]:
    """Sums over bills: money where money is told, tokens where tokens are; nothing twice."""
    usage = [row for row in rows if row["token_kind"] is not None]
    beside = [row for row in rows if row["token_kind"] is None]
    money = [row for one in _by_bill(usage) for row in _money_rows(one)]
    counted = [row for row in usage if row["token_kind"] != _WHOLE]
    has_money = any(row["billed_usd"] is not None for row in [*money, *beside])
    same = [row for row in money if row["class"] in ("matched", "price difference")]
    billed = _sum(money, "billed_usd") + _sum(beside, "billed_usd")
    attempts = [row for row in counted or money if row["reason"] == _ATTEMPTS]
    return {
        "billed_usd": billed if has_money else None,
        "tracked_usd": _sum(money, "logged_usd"),
        "hidden_usd": _sum(attempts, "difference_usd"),
        "unlogged_usd": _sum(
            [r for r in money if r["class"] in ("bill only", "token difference")
             and r["reason"] != _ATTEMPTS and (r["difference_usd"] or 0) > 0],
            "difference_usd",
        ),
        "log_only_usd": -_sum(
            [r for r in money if r["class"] in ("log only", "token difference")
             and (r["difference_usd"] or 0) < 0],
            "difference_usd",
        ),
        "price_difference_usd": _sum(same, "difference_usd") if has_money else None,
        "beside_usd": _sum(beside, "billed_usd"),
        "requests_billed": _billed_requests(engine, all_rows),
        "requests_tracked": engine.value(_TRACKED_REQUESTS) if usage else None,
        "billed_tokens": sum(row["billed_tokens"] or 0 for row in counted),
        "tracked_tokens": sum(row["logged_tokens"] or 0 for row in counted)
        or sum(row["logged_tokens"] or 0 for row in money),
    }  # fmt: skip


def _billed_requests(engine: Engine, rows: tuple[Row, ...]) -> int | None:
    """Calls that bills count, of bills whose lines all count: records tell those of the others."""
    partly = {row["bill"] for row in rows if _is_billed(row) and not row["counts"]}
    told = [
        row["n"]
        for row in engine.rows(_BILLED_REQUESTS)
        if row["bill"] not in partly and row["n"] is not None
    ]
    return int(sum(told)) if told else None


def _by_bill(rows: list[Row]) -> list[list[Row]]:
    names = sorted({row["bill"] for row in rows})
    return [[row for row in rows if row["bill"] == name] for name in names]


def _money_rows(rows: list[Row]) -> list[Row]:
    """The rows of one bill at which its money stands; all of them where it tells none."""
    whole = [row for row in rows if row["token_kind"] == _WHOLE]
    if whole:
        return whole
    if any(row["model"] is None and row["billed_usd"] is not None for row in rows):
        return [row for row in rows if row["model"] is None]
    return rows


def _sum(rows: list[Row], name: str) -> Decimal:
    return sum((row[name] for row in rows if row[name] is not None), Decimal(0))


def _reasons(rows: list[Row]) -> dict[str, Any]:
    """Money of the differences by whether a reason was found for them."""
    told = [
        row
        for row in rows
        if row["class"] != "matched" and not row["harmless"] and row["token_kind"] is not None
    ]
    unknown = [row for row in told if row["reason"] == "not explained"]
    return {
        "differences": len(told),
        "not_explained": len(unknown),
        "not_explained_usd": _sum(unknown, "difference_usd"),
    }
