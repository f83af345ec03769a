"""Turns whole columns of foreign cells into our values; what cannot be read is marked, not guessed.

A column comes as text, integers or booleans. Each function gives the values (NULL where nothing is
told) and a mask of the cells that tell something which cannot be.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from analyzer.contract.tables import VANTAGES
from analyzer.readers._errors import error_class
from analyzer.readers._jsonl import Bad, usd
from analyzer.readers._mapping import UNIT_NS, Plan, Target
from analyzer.readers._rows import COUNTS
from analyzer.readers._times import DURATIONS, TIMES, Limits, time_to_ns

NESTED = "\0nested"
"""Stands for a cell that is a list or an object where a single value belongs."""
NS = 1_000_000_000
MOST_LABEL_CHARS = 200
_INT64 = 2**63
_OTHER = "; if it is written otherwise: format = '%d.%m.%Y %H:%M:%S' in place of its unit"
_NUMBER = r"^\+?([0-9]{1,18})(?:\.([0-9]*))?$"
_STAMP = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-5][0-9])(?:[.,]([0-9]+))?"
    r"\s*([Zz]|[+-][0-9]{2}:?[0-9]{2})?$"
)
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

Converted = tuple[pl.Series, pl.Series]


def trimmed(cells: pl.Series, plan: Plan) -> pl.Series:
    """Text without the space around it; NULL where it says that nothing is told."""
    if cells.dtype != pl.String:
        return cells
    cells = cells.str.strip_chars()
    return cells.set(cells.str.to_lowercase().is_in(list(plan.nulls)), None)


def convert(cells: pl.Series, target: Target, plan: Plan, zone: str) -> Converted:
    """The cells as ``target`` wants them."""
    if plan.file.decimal == "," and target.kind in ("duration", "count", "money", "time"):
        cells = _with_points(cells, target)
    if target.kind == "time":
        return _times(cells, target, zone)
    if target.kind == "duration":
        return _within(cells, scaled(cells, UNIT_NS[target.unit]), DURATIONS)
    if target.kind == "count":
        return _counts(cells)
    if target.kind == "flag":
        return _flags(cells)
    if target.kind == "money":
        return _money(cells)
    return _texts(cells, target)


def reason(target: Target) -> str:
    """What is wrong with a cell that could not be converted; the cell is not quoted."""
    what = {
        "duration": f"no duration in {target.unit}, or one beyond ten years",
        "count": "no whole number that can be",
        "flag": "neither true nor false",
        "money": "no amount of money",
        "text": "no text",
        "list": "no list of hashes",
    }
    if target.ours == "vantage":
        return f"{target.theirs!r} is none of {', '.join(VANTAGES)}"
    if target.format:
        return f"{target.theirs!r} is no time written as {target.format!r}, from 1990 to 2199"
    if target.kind == "time":
        unit = "RFC 3339 time" if target.unit == "rfc3339" else f"time in {target.unit}"
        span = "at all" if target.relative else "from 1990 to 2199"
        other = _OTHER if target.unit == "rfc3339" else ""
        return f"{target.theirs!r} is no {unit} {span}{other}"
    return f"{target.theirs!r} is {what[target.kind]}"


def _with_points(cells: pl.Series, target: Target) -> pl.Series:
    if cells.dtype != pl.String or target.unit == "rfc3339" or target.format:
        return cells
    return cells.str.replace(",", ".", literal=True)


def _within(cells: pl.Series, values: pl.Series, bounds: Limits) -> Converted:
    good = values.is_between(bounds.start, bounds.stop - 1).fill_null(value=False)
    return values.set(~good, None), cells.is_not_null() & ~good


def scaled(cells: pl.Series, unit: int) -> pl.Series:
    """Numbers times a unit, as exact integers: no float comes in between."""
    most = (_INT64 - 1) // unit - 1
    if cells.dtype == pl.Int64:
        return cells.set(~cells.is_between(-most, most).fill_null(value=False), None) * unit
    if cells.dtype != pl.String:
        return pl.Series([None] * len(cells), dtype=pl.Int64)
    digits = len(str(unit)) - 1
    parts = cells.str.extract_groups(_NUMBER).struct
    whole = parts.field("1").cast(pl.Int64)
    places = parts.field("2").fill_null("").str.slice(0, digits + 1).str.pad_end(digits + 1, "0")
    # A digit beyond the last one that counts rounds it.
    fraction = (places.cast(pl.Int64) + 5) // 10
    values = whole.set(~(whole <= most).fill_null(value=False), None) * unit + fraction
    return _by_one(cells, values, lambda text: _exact(text, unit))


def _by_one(cells: pl.Series, values: pl.Series, slow: Callable[[str], int | None]) -> pl.Series:
    """What the fast way did not take (1e-5, a leap second), each different text once."""
    left = cells.is_not_null() & values.is_null()
    if not left.any():
        return values
    texts = cells.filter(left).unique()
    known = pl.Series([slow(text) for text in texts], dtype=pl.Int64)
    found = cells.replace_strict(texts, known, default=None, return_dtype=pl.Int64)
    return values.fill_null(found)


def _exact(text: str, unit: int) -> int | None:
    if len(text) > 400 or "_" in text:
        return None
    try:
        value = Decimal(text) * unit
    except ArithmeticError:
        return None
    if not value.is_finite() or abs(value) >= _INT64 - 1:
        return None
    return int(value.to_integral_value())


def _times(cells: pl.Series, target: Target, zone: str) -> Converted:
    if target.format:
        return _within(cells, _written(cells, target.format, zone), TIMES)
    if target.unit == "rfc3339":
        return _within(cells, _stamps(cells, zone), TIMES)
    values = scaled(cells, UNIT_NS[target.unit.removeprefix("epoch_")])
    if target.relative:
        return _within(cells, values, DURATIONS)
    if target.origin_ns is not None:
        values, bad = _within(cells, values, DURATIONS)
        dated, beyond = _within(values, values + target.origin_ns, TIMES)
        return dated, bad | beyond
    return _within(cells, values, TIMES)


def _stamps(cells: pl.Series, zone: str) -> pl.Series:
    """RFC 3339 as nanoseconds since the epoch."""
    if cells.dtype != pl.String:
        return pl.Series([None] * len(cells), dtype=pl.Int64)
    parts = cells.str.extract_groups(_STAMP).struct
    offset = parts.field("4")
    local = (parts.field("1") + "T" + parts.field("2")).str.to_datetime(
        "%Y-%m-%dT%H:%M:%S", strict=False, time_unit="us"
    )
    there = local.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    minutes = _minutes(offset)
    second = pl.select(
        pl.when(offset.is_null())
        .then(there.dt.epoch("s"))
        .otherwise(local.dt.epoch("s") - minutes * 60)
    ).to_series()
    fraction = parts.field("3").fill_null("").str.slice(0, 9).str.pad_end(9, "0").cast(pl.Int64)
    second = second.set(~second.is_between(0, _INT64 // NS - 2).fill_null(value=False), None)
    return _by_one(cells, second * NS + fraction, lambda text: _stamp(text, zone))


def _written(cells: pl.Series, form: str, zone: str) -> pl.Series:
    """Times in a form of their own as nanoseconds since the epoch."""
    if cells.dtype != pl.String:
        cells = cells.cast(pl.String)
    # Python's %f is a fraction, that of Polars a whole number. What it does not read, Python does.
    plain = form.replace(".%f", "%.f")
    values = pl.Series([None] * len(cells), dtype=pl.Int64)
    if not re.search(r"%(?!\.f|[dmYHMS])", plain):
        local = cells.str.to_datetime(plain, strict=False, time_unit="ns")
        there = local.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
        values = there.dt.epoch("ns")
    return _by_one(cells, values, lambda text: _as_written(text, form, zone))


def _as_written(text: str, form: str, zone: str) -> int | None:
    try:
        told = datetime.strptime(text, form)  # noqa: DTZ007 - its zone comes next
        there = told if told.tzinfo else told.replace(tzinfo=ZoneInfo(zone))
        since = there - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return (since.days * 86_400 + since.seconds) * NS + since.microseconds * 1_000


def _minutes(offset: pl.Series) -> pl.Series:
    """``+05:30`` as 330; 0 for Z. What no zone can be is NULL."""
    digits = offset.str.slice(1).str.replace(":", "", literal=True)
    hours = digits.str.slice(0, 2).cast(pl.Int64, strict=False)
    minutes = digits.str.slice(2, 2).cast(pl.Int64, strict=False)
    total = hours * 60 + minutes
    total = total.set(~((hours < 24) & (minutes < 60)).fill_null(value=False), None)
    sign = offset.str.starts_with("-")
    signed = pl.select(pl.when(sign).then(-total).otherwise(total)).to_series()
    return signed.set(offset.str.to_lowercase() == "z", 0)


def _stamp(text: str, zone: str) -> int | None:
    return time_to_ns(text, zone) if len(text) < 100 and "-" in text[1:] else None


def _counts(cells: pl.Series) -> Converted:
    return _within(cells, _whole(cells), COUNTS)


def _whole(cells: pl.Series) -> pl.Series:
    if cells.dtype != pl.String:
        return scaled(cells, 1)
    plain = cells.str.extract(r"^\+?([0-9]{1,18})(?:\.0*)?$").cast(pl.Int64)
    return _by_one(cells, plain, _whole_number)


def _whole_number(text: str) -> int | None:
    if len(text) > 400 or "_" in text:
        return None
    try:
        value = Decimal(text)
    except ArithmeticError:
        return None
    fits = value.is_finite() and abs(value) < _INT64 - 1
    return int(value) if fits and value == value.to_integral_value() else None


def _flags(cells: pl.Series) -> Converted:
    if cells.dtype == pl.Boolean:
        return cells, pl.repeat(value=False, n=len(cells), eager=True)
    texts = cells.cast(pl.String).str.to_lowercase()
    values = texts.replace_strict(_FLAGS, default=None, return_dtype=pl.Boolean)
    return values, cells.is_not_null() & values.is_null()


def _money(cells: pl.Series) -> Converted:
    texts = cells.cast(pl.String)
    told = texts.drop_nulls().unique()
    amounts: dict[str, Any] = {text: _amount(text) for text in told}
    values = pl.Series([amounts.get(text) for text in texts], dtype=pl.Decimal(18, 9))
    return values, cells.is_not_null() & values.is_null()


def _amount(text: str) -> Decimal | None:
    try:
        return usd(text.removeprefix("$")) if len(text) < 100 else None
    except Bad:
        return None


def _texts(cells: pl.Series, target: Target) -> Converted:
    texts = cells.cast(pl.String)
    fine = pl.repeat(value=False, n=len(cells), eager=True)
    if target.ours == "error":
        known = {text: error_class(text) for text in texts.drop_nulls().unique()}
        return texts.replace_strict(known, default=None, return_dtype=pl.String), fine
    if target.ours == "vantage":
        texts = texts.str.to_lowercase()
        bad = ~texts.is_in(list(VANTAGES)).fill_null(value=False)
        return texts.set(bad, None), bad
    return _single(texts)


def _single(texts: pl.Series) -> Converted:
    bad = (texts == NESTED).fill_null(value=False)
    return texts.set(bad, None), bad


def labels(cells: pl.Series) -> Converted:
    """Values of a tag; what is longer than a label may be a prompt, and is not kept."""
    texts = cells.cast(pl.String)
    bad = ((texts.str.len_chars() > MOST_LABEL_CHARS) | (texts == NESTED)).fill_null(value=False)
    return texts.set(bad, None), bad
