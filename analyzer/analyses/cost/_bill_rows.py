"""A bill's cells compared: what agrees, what one side alone tells, what differs and by how much."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal

from analyzer.analyses.cost._bill_lines import ALL, DAY, NOBODY, Bill, Cell
from analyzer.analyses.cost._bill_models import Key

TOKENS = Decimal("0.001")
"""Share of the tokens that bills lose by rounding to units of a thousand."""
FEW = 10
"""Tokens that are no difference in any cell."""
PRICE = Decimal("0.005")
"""Share of the money that rounding can make."""
CENT = Decimal("0.006")
"""What rounding a line to the cent can make."""
MATERIAL = Decimal("0.01")
"""Share of a bill from which the differences of one reason weigh."""
_HALF_HOUR = 1_800_000_000_000
_WIDEST = 28
"""Half hours: zones lie within 14 hours of UTC."""
_DAY_LEAST, _DAY_MOST = DAY * 20 // 24, DAY * 28 // 24
Where = tuple[int, Key, str]


@dataclass
class Row:
    """One line of the reconciliation."""

    bill: str
    start_ns: int
    end_ns: int
    model: str | None
    kind: str | None
    where: Where
    cell: Cell
    by_tokens: bool
    """Tokens are told on both sides; else money alone is compared."""
    kind_class: str = "matched"
    tokens: int | None = None
    usd: Decimal | None = None
    reason: str | None = None
    evidence: str | None = None
    harmless: bool = False
    counts: bool = True
    """No finer bill tells the same calls."""
    material: bool = False

    @property
    def ratio(self) -> Decimal | None:
        """Billed over what the logs' tokens cost here."""
        billed, logged = self.cell.billed_usd, self.cell.logged_usd
        if billed is None or not logged or self.cell.unpriced:
            return None
        return billed / logged

    def explain(self, reason: str, evidence: str | None = None, *, harmless: bool = False) -> None:
        """Set the reason."""
        self.reason, self.evidence, self.harmless = reason, evidence, harmless


def compared(bill: Bill, shift_ns: int) -> list[Row]:
    """One row a cell, with its class and its differences."""
    rows = []
    for where, cell in sorted(bill.cells(shift_ns).items()):
        at, key, kind = where
        start, end = bill.grid.periods[at]
        by_tokens = at in bill.token_times and kind != ALL and not (bill.by_model and key == NOBODY)
        row = Row(bill.who, start, end, bill.name(key), kind, where, cell, by_tokens)
        if by_tokens:
            row.tokens = round(cell.billed_tokens or 0) - cell.logged_tokens
        if row.tokens or cell.billed_tokens or cell.logged_tokens or cell.billed_usd:
            rows.append(row)
    _price(rows)
    for row in rows:
        row.kind_class = _class(row)
    _price_differences(rows)
    return rows


def _price(rows: list[Row]) -> None:
    """Money of each difference: the bill's where it tells one, else tokens by our prices."""
    each: dict[tuple[Key, str], list[Decimal]] = defaultdict(lambda: [Decimal(0), Decimal(0)])
    for row in rows:
        if row.cell.logged_usd is not None and not row.cell.unpriced:
            sums = each[row.where[1:]]
            sums[0] += row.cell.logged_usd
            sums[1] += row.cell.logged_tokens
    for row in rows:
        cell = row.cell
        usd, tokens = each.get(row.where[1:], (Decimal(0), Decimal(0)))
        if cell.unpriced:
            continue
        if cell.billed_usd is not None:
            row.usd = cell.billed_usd - (cell.logged_usd or Decimal(0))
        elif row.by_tokens and row.tokens is not None and tokens:
            row.usd = row.tokens * usd / tokens
        elif not row.by_tokens and cell.other_currency is None:
            row.usd = -(cell.logged_usd or Decimal(0))


def _class(row: Row) -> str:
    cell = row.cell
    billed = cell.billed_tokens if row.by_tokens else cell.billed_usd
    if row.by_tokens and row.tokens is not None:
        size = max(cell.billed_tokens or Decimal(0), Decimal(cell.logged_tokens))
        if abs(row.tokens) <= max(TOKENS * size, Decimal(FEW)):
            return "matched"
    if not row.by_tokens and cell.other_currency:
        return "matched"
    if not cell.logged_tokens:
        return "bill only"
    if not billed and (row.by_tokens or billed is None):
        return "log only"
    return "token difference" if row.by_tokens else "matched"


def _price_differences(rows: list[Row]) -> None:
    """Tokens agree and money does not: beyond rounding in a cell, or by little in all of them."""
    sums: dict[tuple[Key, str], list[Decimal]] = defaultdict(lambda: [Decimal(0)] * 3)
    same = [
        row
        for row in rows
        if row.kind_class == "matched" and row.cell.billed_usd is not None and row.usd is not None
    ]
    for row in same:
        usd = row.usd or Decimal(0)
        told = sums[row.where[1:]]
        told[0] += usd
        told[1] += abs(usd)
        told[2] += abs(row.cell.billed_usd or row.cell.logged_usd or Decimal(0))
    for row in same:
        usd, billed = row.usd or Decimal(0), row.cell.billed_usd or Decimal(0)
        net, gross, whole = sums[row.where[1:]]
        steady = abs(net) > PRICE * whole and abs(net) > Decimal("0.8") * gross
        if abs(usd) > PRICE * max(abs(billed), abs(row.cell.logged_usd or Decimal(0))) and (
            abs(usd) > CENT or (steady and abs(net) > CENT)
        ):
            row.kind_class = "price difference"


def day_shift(bill: Bill) -> int:
    """How much later the logs' times have to be for the bill's days to fit; 0 where they do."""
    if not _DAY_LEAST <= bill.grid.length <= _DAY_MOST or not bill.logs:
        return 0
    first, last = _span(bill)
    inside = range(first + 1, last) if last - first > 2 else range(first, last + 1)
    plain, whole = _mismatch(bill, 0, inside)
    if not whole or plain <= MATERIAL * whole:
        return 0
    tried = [
        (_mismatch(bill, by * _HALF_HOUR, inside)[0], abs(by), by * _HALF_HOUR)
        for by in range(-_WIDEST, _WIDEST + 1)
        if by
    ]
    best, _, shift = min(tried)
    return shift if best <= max(plain / 5, PRICE * whole) and len(inside) > 1 else 0


def _span(bill: Bill) -> tuple[int, int]:
    at = [one for line in bill.logs if (one := bill.grid.at(line["start_ns"])) is not None]
    return (min(at), max(at)) if at else (0, 0)


def _mismatch(bill: Bill, shift_ns: int, inside: range) -> tuple[Decimal, Decimal]:
    """What differs in all cells of some periods, and what was billed in them."""
    off, whole = Decimal(0), Decimal(0)
    for (at, _, kind), cell in bill.cells(shift_ns).items():
        if at not in inside:
            continue
        if at in bill.token_times and kind != ALL:
            billed = cell.billed_tokens or Decimal(0)
            off += abs(billed - cell.logged_tokens)
            whole += billed
        elif at not in bill.token_times and cell.billed_usd is not None:
            off += abs(cell.billed_usd - (cell.logged_usd or Decimal(0)))
            whole += cell.billed_usd
    return off, whole
