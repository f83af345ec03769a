"""What a field of a fast-read JSON line may look like, and how its text becomes a column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from analyzer.readers._times import TIMES

_WHOLE = r"(?:0|[1-9][0-9]{0,8})"
_FRACTION = r"(?:\.[0-9]{1,20})?"
_RFC3339 = (
    r"(?:199[0-9]|20[0-9]{2}|21[0-9]{2})-[01][0-9]-[0-3][0-9]T"
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)


@dataclass(frozen=True)
class Kind:
    """Patterns of a value as JSON text and as JSON number; None where it is none.

    ``convert(column, form)`` makes the column of what was cut out, NULL where the reader itself
    must look at the line. A word is part of the shape: it has few values.
    """

    text: str | None = None
    number: str | None = None
    convert: Callable[[pl.Expr, str], pl.Expr] | None = None
    is_word: bool = False

    def told(self, name: str, form: str) -> pl.Expr:
        """The column of what was cut out."""
        return self.convert(pl.col(name), form) if self.convert else pl.col(name)


def decimal(column: pl.Expr, digits: int) -> pl.Expr:
    """Decimal text as a whole number of its ``digits``-th decimals, half to even, no float."""
    return column.cast(pl.Decimal(38, digits), strict=False).to_physical().cast(pl.Int64)


def _moment(column: pl.Expr, form: str) -> pl.Expr:
    ns = decimal(column, 9) if form == "number" else _rfc3339(column)
    return _told_moment(ns)


def _told_moment(ns: pl.Expr) -> pl.Expr:
    return pl.when(ns.is_between(TIMES.start, TIMES.last)).then(ns)


def _rfc3339(column: pl.Expr) -> pl.Expr:
    naive = column.str.slice(0, 19).str.to_datetime(
        "%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False
    )
    fraction = column.str.extract(r"\.([0-9]+)").str.pad_end(9, "0").cast(pl.Int64).fill_null(0)
    offset = column.str.extract(r"([+-][0-9]{2}:[0-9]{2})$")
    minutes = offset.str.slice(1, 2).cast(pl.Int64) * 60 + offset.str.slice(4).cast(pl.Int64)
    ahead = pl.when(offset.str.starts_with("-")).then(-minutes).otherwise(minutes).fill_null(0)
    return (naive.dt.epoch("us") - ahead * 60_000_000) * 1000 + fraction


_PLAIN = r'[^"\\\x00-\x1f]'
TEXT = Kind(text=f"{_PLAIN}*")
NAME = Kind(text=f"{_PLAIN}+")
"""Text that is not empty."""
WORD = Kind(is_word=True)
"""One of few words, or true or false."""
SMALL = Kind(number=_WHOLE, convert=lambda column, _: column.cast(pl.Int64))
"""A count below a billion."""
MS = Kind(number=_WHOLE + _FRACTION, convert=lambda column, _: decimal(column, 6))
"""Milliseconds, to whole nanoseconds."""
COUNT = Kind(text=_WHOLE, number=_WHOLE, convert=lambda column, _: column.cast(pl.Int64))
"""A count below a billion, as a number or as its text."""
FLOAT_SECONDS = Kind(
    number=r"(?:0|[1-9][0-9]{0,5})" + _FRACTION + "(?:[eE]-[0-9]{1,2})?",
    # The shortest text of the nearest float, which is what the reader makes of a number.
    convert=lambda column, _: decimal(column.cast(pl.Float64).cast(pl.String), 9),
)
"""Seconds that were a float where they were written, to whole nanoseconds."""
NANOS = Kind(
    text="[1-9][0-9]{17,18}", number="[1-9][0-9]{17,18}",
    convert=lambda column, _: _told_moment(column.cast(pl.Int64, strict=False)),
)  # fmt: skip
"""Unix nanoseconds, as a number or as their text."""
SECONDS = Kind(
    number=r"(?:0|[1-9][0-9]{0,7})" + _FRACTION, convert=lambda column, _: decimal(column, 9)
)
"""Seconds, to whole nanoseconds."""
MOMENT = Kind(text=_RFC3339, number="[1-9][0-9]{8,9}" + _FRACTION, convert=_moment)
"""RFC 3339 or Unix seconds, to nanoseconds; only moments that a log can tell."""
USD = Kind(
    text=r"(?:0|[1-9][0-9]{0,7})" + _FRACTION,
    number=r"(?:0|[1-9][0-9]{0,7})" + _FRACTION,
    convert=lambda column, _: column.cast(pl.Decimal(38, 9), strict=False),
)
"""Money, as the contract holds it."""
