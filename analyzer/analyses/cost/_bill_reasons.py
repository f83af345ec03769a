"""The usual reasons why a bill and the logs differ, each tried with what would show it."""

from __future__ import annotations

import itertools
from collections import defaultdict
from decimal import Decimal
from statistics import median
from typing import Any

from analyzer.analyses.cost._bill_lines import ALL, DAY, Bill
from analyzer.analyses.cost._bill_rows import MATERIAL, PRICE, Row
from analyzer.analyses.cost._bill_sources import HOUR

UNKNOWN = "not explained"
_HOLE = 2 * HOUR
"""A pause of the logs that much longer than on other days is a hole."""
_NEAR = Decimal("0.01")
_HALF, _TENTH_MORE = Decimal("0.5"), Decimal("1.1")
_INPUTS = ("input_fresh", "cache_read")
_GAP_LOW, _GAP_HIGH = Decimal("0.8"), Decimal("1.25")
"""How far a gap may lie outside what the attempts given up can have cost."""
_ROUND = "rounding"
_PRICE = "price difference"
_PAST_END = "usage after the logs end"
_BEFORE = "usage before the logs begin"
_CUT = "the logs do not cover the whole period"
_LAG = "the bill's last period is not complete yet"


def explain(bill: Bill, rows: list[Row], shift_ns: int, suspects: list[dict[str, Any]]) -> None:
    """A reason for every row that differs, and whether what shares a reason weighs."""
    _other_kinds(rows)
    _edges(bill, rows, shift_ns)
    _late_buckets(bill, rows)
    _given_up(bill, rows, suspects, shift_ns)
    _absent(bill, rows, shift_ns)
    _same_as_tokens(rows)
    _prices(rows)
    for row in rows:
        if row.kind_class == "matched":
            _matched(bill, row, shift_ns)
        elif row.reason is None:
            row.explain(UNKNOWN)
    weigh(rows)


def weigh(rows: list[Row]) -> None:
    """Material: the differences of one reason together make a percent of the bill."""
    tokens = sum((row.cell.billed_tokens or Decimal(0) for row in rows), Decimal(0))
    usd = sum((row.cell.billed_usd or Decimal(0) for row in rows), Decimal(0))
    # Where the bill tells no money, what the logs cost by our prices is the measure.
    usd = usd or sum((row.cell.logged_usd or Decimal(0) for row in rows), Decimal(0))
    if not tokens and not usd:
        tokens = Decimal(sum(row.cell.logged_tokens for row in rows))
    by_tokens: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    by_usd: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for row in rows:
        if row.kind_class != "matched" and row.reason:
            group = (row.kind_class, row.reason)
            by_usd[group] += abs(row.usd or Decimal(0))
            if row.kind_class != _PRICE:
                by_tokens[group] += abs(row.tokens or 0)
    for row in rows:
        group = (row.kind_class, row.reason or "")
        row.material = bool(
            (usd and by_usd[group] >= max(MATERIAL * usd, _NEAR))
            or (tokens and by_tokens[group] >= MATERIAL * tokens and by_tokens[group])
        )


def _differ(rows: list[Row]) -> list[Row]:
    """Rows still without a reason, whose usage differs; where money alone is told, it may."""
    counted = any(row.by_tokens for row in rows)
    return [
        row
        for row in rows
        if row.reason is None
        and row.kind_class != "matched"
        and (row.kind_class != _PRICE or not counted)
    ]


def _more_billed(row: Row) -> bool:
    size = row.tokens if row.by_tokens else row.usd
    return bool(size and size > 0)


def _edges(bill: Bill, rows: list[Row], shift_ns: int) -> None:
    """Periods of the bill that the logs do not reach, or reach in part; a last one half booked."""
    bins = sorted({line["start_ns"] + shift_ns for line in bill.logs})
    if not bins:
        return
    first, last = bins[0], bins[-1] + HOUR // 2
    day_first, day_last = _usual_hours(bill, bins)
    inner = sum(start >= first and end <= last for start, end in bill.grid.periods)
    billed = [row.where[0] for row in rows if row.cell.billed_tokens or row.cell.billed_usd]
    newest = max(billed, default=-1)
    for row in _differ(rows):
        length = row.end_ns - row.start_ns
        slack = length // 10
        more = _more_billed(row)
        if more and row.end_ns <= first:
            row.explain(_BEFORE, harmless=True)
        elif more and row.start_ns >= last:
            row.explain(_PAST_END, harmless=True)
        elif more and (
            row.start_ns + day_first + slack < first < row.end_ns
            or row.start_ns < last < row.end_ns - day_last - slack
        ):
            seen = min(last, row.end_ns) - max(first, row.start_ns)
            if inner or seen * 4 < length:
                row.explain(_CUT, f"they cover {100 * seen // length} % of it", harmless=True)
        elif not more and row.where[0] >= newest >= 0 and _else_fits(rows, row, newest):
            row.explain(_LAG, harmless=True)


def _else_fits(rows: list[Row], last: Row, newest: int) -> bool:
    """The periods before the last billed one mostly agree, in the same model and kind."""
    before = [
        row.kind_class == "matched"
        for row in rows
        if row.where[1:] == last.where[1:] and row.where[0] < newest
    ]
    return sum(before) * 2 > len(before)


def _usual_hours(bill: Bill, bins: list[int]) -> tuple[int, int]:
    """How long after a period's begin its first request usually comes, and its last before the end.

    Only periods between the first and the last count.
    """
    by_period: dict[int, list[int]] = defaultdict(list)
    for one in bins:
        at = bill.grid.at(one)
        if at is not None:
            by_period[at].append(one)
    inner = sorted(by_period)[1:-1]
    if not inner:
        return 0, 0
    return (
        int(median(by_period[at][0] - bill.grid.periods[at][0] for at in inner)),
        int(median(bill.grid.periods[at][1] - by_period[at][-1] - HOUR // 2 for at in inner)),
    )


def _late_buckets(bill: Bill, rows: list[Row]) -> None:
    """Usage booked a bucket later or earlier: neighbours differ, and their sum does not."""
    if bill.grid.length > DAY // 2:
        return
    series: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        if row.by_tokens:
            series[row.where[1:]].append(row)
    for told in series.values():
        told.sort(key=lambda row: row.where[0])
        whole = sum((row.cell.billed_tokens or Decimal(0) for row in told), Decimal(0))
        net = sum(row.tokens or 0 for row in told)
        if not whole or abs(net) > max(PRICE * whole, Decimal(10)):
            continue
        running = 0
        for before, row in zip([None, *told], told, strict=False):
            carried = running
            running += row.tokens or 0
            near = max(row.cell.logged_tokens, before.cell.logged_tokens if before else 0)
            if (
                row.kind_class not in ("matched", _PRICE)
                and max(abs(carried), abs(running)) <= near
            ):
                row.explain(
                    "booked in the next period", "neighbouring periods add up to the same",
                    harmless=True,
                )  # fmt: skip


def _other_kinds(rows: list[Row]) -> None:
    """The prompt agrees as a whole: one side tells cached tokens apart otherwise."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        if row.by_tokens and row.kind and row.kind.startswith(("input", "cache")):
            groups[row.where[:2]].append(row)
    for told in groups.values():
        apart = _differ(told)
        net = sum(row.tokens or 0 for row in told)
        gross = sum(abs(row.tokens or 0) for row in told)
        if len(apart) > 1 and abs(net) <= gross / 50:
            for row in apart:
                row.explain(
                    "cached tokens are told apart otherwise", "the prompt as a whole agrees"
                )


def _given_up(bill: Bill, rows: list[Row], suspects: list[dict[str, Any]], shift_ns: int) -> None:
    """More billed, as much as the attempts that were given up in the period can have cost."""
    low: dict[Any, Decimal] = defaultdict(Decimal)
    high: dict[Any, Decimal] = defaultdict(Decimal)
    many: dict[Any, int] = defaultdict(int)
    for one in suspects:
        at = bill.grid.at(one["start_ns"] + shift_ns)
        where = (at, bill.key(one["model"]))
        low[where] += one["quantity"] or Decimal(0)
        high[where] += one["amount"] or Decimal(0)
        many[where] += one["n"]
    gaps: dict[Any, list[Row]] = defaultdict(list)
    for row in _differ(rows):
        if row.where[:2] in many and _more_billed(row):
            gaps[row.where[:2]].append(row)
    for where, told in gaps.items():
        gap = sum((row.usd or Decimal(0) for row in told), Decimal(0))
        if high[where] and _GAP_LOW * low[where] <= gap <= _GAP_HIGH * high[where]:
            for row in told:
                row.explain(
                    "attempts given up and billed",
                    f"{many[where]} of them can have cost {low[where]:.4f} to "
                    f"{high[where]:.4f} USD, the gap is {gap:.4f}",
                )


def _absent(bill: Bill, rows: list[Row], shift_ns: int) -> None:
    """Models, periods and hours that one side does not tell at all."""
    logged = {row.where[1] for row in rows if row.cell.logged_tokens}
    billed = {row.where[1] for row in rows if row.cell.billed_tokens or row.cell.billed_usd}
    active = {row.where[0] for row in rows if row.cell.logged_tokens}
    holes = _holes(bill, shift_ns)
    for row in _differ(rows):
        at, key, _ = row.where
        if _more_billed(row):
            if at not in active:
                row.explain("no logs for this period")
            elif key not in logged:
                row.explain("the model is in no log")
            elif at in holes:
                row.explain("a hole in the logs", holes[at])
        elif "byok" in row.cell.logged_tiers:
            row.explain("billed to a key of one's own (BYOK)", harmless=True)
        elif key not in billed:
            row.explain("the model is not on the bill")


def _holes(bill: Bill, shift_ns: int) -> dict[int, str]:
    """Days with a pause of the logs far longer than the usual one."""
    if bill.grid.length < DAY // 2:
        return {}
    bins = sorted({line["start_ns"] + shift_ns for line in bill.logs})
    longest: dict[int, tuple[int, int]] = {}
    for before, after in itertools.pairwise(bins):
        at = bill.grid.at(before)
        if at is not None and at == bill.grid.at(after):
            longest[at] = max(longest.get(at, (0, 0)), (after - before, before))
    if len(longest) < 3:
        return {}
    usual = median(pause for pause, _ in longest.values())
    return {
        at: f"no request for {pause // HOUR} hours, usually at most {usual / HOUR:.1f}"
        for at, (pause, _) in longest.items()
        if pause >= usual + _HOLE
    }


def _same_as_tokens(rows: list[Row]) -> None:
    """Money of all kinds together that differs as the tokens of the period do: told there."""
    tokens: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        if row.by_tokens and row.kind_class not in ("matched", _PRICE):
            tokens[row.where[:2]].append(row)
    for row in rows:
        same = tokens.get(row.where[:2], [])
        if row.kind != ALL or row.kind_class == "matched" or not same or row.usd is None:
            continue
        told = sum((one.usd or Decimal(0) for one in same), Decimal(0))
        if abs(row.usd - told) <= _NEAR * max(abs(row.usd), abs(told)):
            row.kind_class = "token difference"
            first = max(same, key=lambda one: abs(one.usd or Decimal(0)))
            row.explain(first.reason or UNKNOWN, "its tokens differ as much", harmless=True)


def _prices(rows: list[Row]) -> None:
    """Why the same tokens cost another sum."""
    found = [row for row in rows if row.reason is None and row.kind_class == _PRICE]
    ratios = [row.ratio for row in found if row.ratio]
    steady = ratios and max(ratios) - min(ratios) <= 2 * PRICE * max(ratios)
    for row in found:
        cell, ratio = row.cell, row.ratio
        tiers = cell.tiers - cell.logged_tiers - {"standard", "default", "auto"}
        if cell.billed_usd == 0:
            row.explain("free quota, or included in a plan", "tokens are billed at 0")
        elif cell.list_usd is not None and _is_near(cell.list_usd, cell.logged_usd):
            row.explain("discount of the bill", "its list price agrees", harmless=True)
        elif tiers and ratio:
            row.explain(f"billed at {min(tiers)}, which the logs do not tell", _times(ratio))
        elif cell.is_long:
            row.explain("price of long prompts", _times(ratio))
        elif ratio and abs(ratio - _HALF) <= _NEAR:
            row.explain("half price, as of batch and flex", _times(ratio))
        elif ratio and abs(ratio - _TENTH_MORE) <= PRICE:
            row.explain("surcharge of a tenth, as for a region", _times(ratio))
        elif ratio and steady and len(ratios) > 1:
            what = "discount" if ratio < 1 else "surcharge"
            row.explain(f"the same {what} on everything", _times(ratio))
        else:
            row.explain(UNKNOWN, _times(ratio))


def _times(ratio: Decimal | None) -> str | None:
    return f"billed {ratio:.3f} times our price" if ratio else None


def _is_near(one: Decimal, other: Decimal | None) -> bool:
    return other is not None and abs(one - other) <= PRICE * max(abs(one), abs(other))


def _matched(bill: Bill, row: Row, shift_ns: int) -> None:
    """Nothing differs; what had to be done for it."""
    if shift_ns:
        hour = (-shift_ns) % DAY // (HOUR // 2)
        begins = f"its days begin at {hour // 2:02d}:{30 * (hour % 2):02d} UTC"
        row.explain("day of another zone", begins, harmless=True)
    elif row.cell.other_currency:
        row.explain("another currency", row.cell.other_currency, harmless=True)
    elif alias := bill.alias(row.where[1]):
        row.explain("another name of the model", f"on the bill: {alias}", harmless=True)
    elif row.usd and row.cell.billed_usd is not None and abs(row.usd) > Decimal("0.000001"):
        row.explain(_ROUND, harmless=True)
