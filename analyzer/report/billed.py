"""The bill held against the logs, as people read it on a terminal and in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.report.blocks import Grid
from analyzer.report.turns import shortly
from analyzer.report.values import NONE, moment, money, plural, raw, safe_text

if TYPE_CHECKING:
    from decimal import Decimal

    from analyzer.contract.types import Table

    Row = dict[str, Any]

_SUMS = (
    ("billed", "billed_usd", "requests_billed"),
    ("in the logs", "tracked_usd", "requests_tracked"),
    ("billed and never tracked", "hidden_usd", "requests_hidden"),
    ("on the bill alone", "unlogged_usd", "requests_unlogged"),
    ("in the logs alone", "log_only_usd", None),
    ("price difference", "price_difference_usd", None),
    ("fees, credits and tax", "beside_usd", None),
    ("not explained", "not_explained_usd", None),
)
_DIFFERENCES = 15


def facts(told: Row) -> list[tuple[str, str]]:
    """What is billed and what of it the logs know, in words; what is nothing is left out."""
    out = []
    for name, usd, requests in _SUMS:
        amount, number = told.get(usd), told.get(requests) if requests else None
        if amount or (amount is not None and name in ("billed", "in the logs")):
            said = f", {plural(int(number), 'request')}" if number is not None else ""
            out.append((name, _to_the_mill(amount) + said))
        elif number:
            out.append((name, plural(int(number), "request")))
    if told.get("requests_suspected"):
        low, high = told.get("suspected_low_usd"), told.get("suspected_high_usd")
        worth = "" if low is None or high is None else f", {money(low)} to {money(high)}"
        number = plural(int(told["requests_suspected"]), "request")
        out.append(("perhaps billed too", f"{number}{worth}"))
    return out


def _to_the_mill(usd: Decimal) -> str:
    """So many digits that the sums of a small bill still add up."""
    whole, _, digits = f"{abs(usd):,.4f}".partition(".")
    return f"{'-' if usd < 0 else ''}${whole}.{digits.rstrip('0').ljust(2, '0')}"


def differences(table: Table) -> Grid | None:
    """The lines of the bill that differ from the logs, what weighs most first."""
    rows = [row for row in table.rows if row["counts"] and row["class"] != "matched"]
    rows = rows[:_DIFFERENCES]
    if not rows:
        return None
    return Grid(
        header=("from", "model", "tokens", "in the logs", "billed", "money", "why"),
        rows=tuple(
            (
                moment(row["period_start_ns"])[:16],
                safe_text(str(row["model"] or NONE)),
                safe_text(str(row["token_kind"] or NONE)).replace("_", " "),
                shortly(row["logged_tokens"]),
                shortly(row["billed_tokens"]),
                _gap(row["difference_usd"]),
                _why(row),
            )
            for row in rows
        ),
        right=(False, False, False, True, True, True, False),
        keep=(True, False, False, True, True, True, False),
        raw=tuple(
            (
                *("", "", ""), raw(row["logged_tokens"], "tokens"),
                raw(row["billed_tokens"], "tokens"), raw(row["difference_usd"], "usd"), "",
            )
            for row in rows
        ),
    )  # fmt: skip


def _gap(usd: Decimal | None) -> str:
    return NONE if usd is None else f"{'+' if usd > 0 else ''}{_to_the_mill(usd)}"


def _why(row: Row) -> str:
    told = [str(row[key]) for key in ("reason", "evidence") if row[key]]
    return safe_text(": ".join(told) or str(row["class"]))


def matched(table: Table) -> str:
    """How many lines agree, and how many are not listed: that differ, or are of the same calls."""
    counted = [row for row in table.rows if row["counts"]]
    same = sum(row["class"] == "matched" for row in counted)
    other = len(counted) - same
    more = (
        f"; {other - _DIFFERENCES:,} more differ (-f json has all)" if other > _DIFFERENCES else ""
    )
    left = len(table.rows) - len(counted)
    said = f"{same:,} of {plural(len(counted), 'line')} agree{more}."
    if left:
        said += f" {plural(left, 'line')} more of calls that these tell too, not counted."
    return said
