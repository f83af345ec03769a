"""Sizes and rates with their unit, as people write them: ``80GB``, ``3.35TB/s``, ``8B``."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBER = re.compile(r"\s*([0-9_.]+(?:e[+-]?\d+)?)\s*([a-z]*)\s*(/\s*s)?\s*", re.IGNORECASE)
_BYTES = {
    "": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
    "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40,
}  # fmt: skip
_DOLLARS = re.compile(r"\s*\$?\s*(\d{1,6}(?:\.\d{1,6})?)\s*")
_PARAMS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}


class Amount(click.ParamType[float]):
    """A number above 0 with one of the units; ``rate`` takes ``/s`` and must have a unit."""

    def __init__(self, name: str, units: Mapping[str, float], example: str, *, rate: bool) -> None:
        self.name, self._units, self._example, self._rate = name, units, example, rate

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read number and unit; a unit that is missing or unknown is refused, never guessed."""
        if not isinstance(value, str):
            return float(value)
        match = _NUMBER.fullmatch(value)
        unit = match[2].lower() if match else ""
        told = match is not None and unit in self._units
        if not match or not told or (self._rate and not unit) or (match[3] and not self._rate):
            self.fail(f"{value!r} is no {self.name}; write {self._example}", param, ctx)
        try:
            number = float(match[1]) * self._units[unit]
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            self.fail(f"{value!r} is no {self.name}; write {self._example}", param, ctx)
        return number


SIZE = Amount("size", _BYTES, "80GB or a number of bytes", rate=False)
RATE = Amount("bandwidth", _BYTES, "3350GB/s or 3.35TB/s", rate=True)
PARAMS = Amount("count", _PARAMS, "7e9 or 7B", rate=False)


class Dollars(click.ParamType[Decimal]):
    """Dollars above 0, as written: ``2.99`` or ``$2.99``."""

    name = "dollars"

    def convert(
        self, value: str | Decimal, param: click.Parameter | None, ctx: click.Context | None
    ) -> Decimal:
        """Read them without a detour over binary fractions."""
        if isinstance(value, Decimal):
            return value
        if not (match := _DOLLARS.fullmatch(value)) or not (amount := Decimal(match[1])):
            self.fail(f"{value!r} is no price; write 2.99", param, ctx)
        return amount
