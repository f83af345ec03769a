"""Exact parts as columns of money, and money for people."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

PLACES = 15
"""Decimals of a money column."""


def to_money(usd: Fraction) -> Decimal:
    """To the last decimal of a money column; halves to even, so that signs do not matter."""
    return _decimal(round(usd * 10**PLACES))


def in_money(parts: Mapping[str, Fraction]) -> dict[str, Decimal]:
    """Each part in whole units of the last decimal, adding up to their sum so rounded.

    What cutting them off leaves goes to those that lost most by it, one unit each; to the earlier
    one of equals. What is exactly nothing stays so.
    """
    exact = {name: one * 10**PLACES for name, one in parts.items()}
    units = {name: _cut(one) for name, one in exact.items()}
    rest = round(sum(exact.values(), Fraction())) - sum(units.values())
    sign = 1 if rest > 0 else -1
    order = sorted(exact, key=lambda name: -sign * (exact[name] - units[name]))
    for name in order[: abs(rest)]:
        units[name] += sign
    return {name: _decimal(one) for name, one in units.items()}


def _cut(value: Fraction) -> int:
    whole = abs(value.numerator) // value.denominator
    return whole if value >= 0 else -whole


def _decimal(units: int) -> Decimal:
    return Decimal((int(units < 0), tuple(int(one) for one in str(abs(units))), -PLACES))


def dollars(usd: Decimal | Fraction) -> str:
    """To the cent from one on, below to four digits that matter."""
    size = abs(float(usd))
    digits = 2 if size >= 1 or size == 0 else 4 if size >= 0.01 else 6
    return f"{'-' if usd < 0 else ''}${size:,.{digits}f}"


def signed(usd: Fraction) -> str:
    """The same, with a plus where it is one."""
    return f"{'+' if usd > 0 else ''}{dollars(usd)}"
