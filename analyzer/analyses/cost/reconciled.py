"""Bills against logs: every vendor's lines, records of single calls, what stands beside them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from analyzer.analyses.cost._bill_lines import NOBODY, Bill, Cell, bills_of
from analyzer.analyses.cost._bill_models import bill_of
from analyzer.analyses.cost._bill_reasons import UNKNOWN, explain, weigh
from analyzer.analyses.cost._bill_rows import Row, compared, day_shift
from analyzer.analyses.cost._bill_sources import HOUR

RECORDS = "records"
_NEARLY = Decimal("0.9")
_STEP = Decimal("1e-15")
_RECORDS = {
    "matched": ("matched", None, False),
    "hidden": ("bill only", "attempts billed and not tracked", True),
    "unmetered": ("bill only", "answered, but no log tells its usage", False),
    "bill only": ("bill only", "no log of this call", False),
    "log only": ("log only", "no record of the provider", False),
    "price difference": ("price difference", UNKNOWN, False),
    "token difference": ("token difference", UNKNOWN, False),
}
"""Class of a record -> class here, reason, whether another finding tells it."""


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One tuple a row, bill by bill, in order of time."""
    suspects = [line for line in told if line["told"] == "suspect"]
    records = _records([line for line in told if line["told"] == "record"])
    bills = bills_of(told)
    named = {bill.who: bill.keys for bill in bills}
    for bill in bills:
        shift = day_shift(bill)
        found = compared(bill, shift)
        explain(bill, found, shift, suspects)
        own = [one for one in records if bill_of("", one.model, named) == bill.who]
        _count_once(bill, found, own, shift)
        found += [_beside(bill, what, line) for what, line in bill.beside]
        yield from map(_tuple, sorted(found, key=_order))
    yield from map(_tuple, records)


def _count_once(bill: Bill, found: list[Row], records: list[Row], shift_ns: int) -> None:
    """Records of single calls count where they tell nearly all that the bill does; else it does.

    A bill that tells far more is of other calls too, whose difference no record shows.
    """
    by_model = bill.by_model and bill.money_by_model
    for key in {row.where[1] for row in found} if by_model else {NOBODY}:
        own = [one for one in records if not by_model or bill.key(one.model) == key]
        placed = [(bill.grid.at(one.start_ns + shift_ns), one) for one in own]
        times = {at for at, one in placed if at is not None and _tokens_or_usd(one.cell)}
        same = [row for row in found if not by_model or row.where[1] == key]
        within = [row for row in same if row.where[0] in times]
        finer = _tells_all([one for at, one in placed if at in times], within)
        for row in within:
            row.counts = not finer
        counted = {row.where[0] for row in same if row.counts}
        for at, one in placed:
            one.counts = at not in counted


def _tells_all(records: list[Row], rows: list[Row]) -> bool:
    """Nearly all: calls at the edge of a period may be booked in the next one."""
    tokens = [sum(row.cell.billed_tokens or 0 for row in some) for some in (records, rows)]
    usd = [sum(row.cell.billed_usd or 0 for row in some) for some in (records, rows)]
    told, whole = tokens if all(tokens) else usd
    return bool(rows) and told >= _NEARLY * whole


def _tokens_or_usd(cell: Cell) -> bool:
    return bool(cell.billed_tokens or cell.billed_usd)


def _beside(bill: Bill, what: str, line: dict[str, Any]) -> Row:
    """A fee, a credit, a tax: on the bill alone, as the bill itself says."""
    at = bill.grid.at(line["start_ns"]) or 0
    start, end = bill.grid.periods[at]
    cell = Cell()
    cell.bill(line, tokens=False, money=True)
    row = Row(bill.who, start, end, line["model"], None, (at, NOBODY, what), cell, by_tokens=False)
    row.kind_class, row.usd = "bill only", cell.billed_usd
    row.explain(what, line["item"] or line["charge"], harmless=True)
    return row


def _records(told: list[dict[str, Any]]) -> list[Row]:
    """Records of single calls, by the hour; where there are none, logs alone are no difference."""
    if all(line["item"] == "log only" for line in told):
        return []
    found = []
    for line in told:
        known = _RECORDS.get(line["item"])
        if known is None:
            continue
        cell = Cell(
            billed_tokens=line["quantity"], billed_usd=line["amount"],
            logged_tokens=line["logged"] or 0, logged_usd=line["usd"],
        )  # fmt: skip
        where = (line["start_ns"] // HOUR, NOBODY, line["item"])
        start, model = line["start_ns"], line["model"]
        row = Row(RECORDS, start, start + HOUR, model, "all", where, cell, by_tokens=True)
        row.tokens = int(cell.billed_tokens or 0) - cell.logged_tokens
        if cell.billed_usd is not None or cell.logged_usd is not None:
            row.usd = (cell.billed_usd or Decimal(0)) - (cell.logged_usd or Decimal(0))
        row.kind_class, row.reason, row.harmless = known
        if line["charge"] and row.reason:
            row.evidence = f"for the caller: {line['charge']}"
        found.append(row)
    weigh(found)
    return found


def _order(row: Row) -> tuple[Any, ...]:
    return (row.start_ns, row.model or "", row.kind or "~", row.reason or "")


def _tuple(row: Row) -> tuple[Any, ...]:
    cell = row.cell
    billed = round(cell.billed_tokens) if cell.billed_tokens is not None else None
    logged_usd = None if cell.unpriced else cell.logged_usd
    return (
        row.bill, row.start_ns, row.end_ns, row.model, row.kind, cell.logged_tokens, billed,
        _money(logged_usd), _money(cell.billed_usd), row.tokens, _money(row.usd), row.kind_class,
        row.reason, row.evidence, row.harmless, row.counts,
        row.material and row.kind_class != "matched",
    )  # fmt: skip


def _money(value: Decimal | None) -> Decimal | None:
    return None if value is None else value.quantize(_STEP)
