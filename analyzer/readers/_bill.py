"""Lines of bills: exact amounts, periods, and quantities in tokens where the unit is told."""

from __future__ import annotations

import re
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from analyzer.contract.types import Problem
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._rows import text_or_none
from analyzer.readers._times import time_to_ns

DAY_NS = 86_400_000_000_000
MONTH_FIRST = "dates such as 3/4/2026 were read month first"
_CONTEXT = Context(prec=60)
_STEP = Decimal("1e-12")
_MOST = Decimal("1e18")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+\.\d+")
_COMMA = re.compile(r"[-+]?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))")
_MOST_CHARS = 120
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_MONTH_FIRST = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}|\d\d)")
_NO_TIME = "is no date or time that is known: 2026-03-04, 3/4/2026 or RFC 3339"


def exact(value: Any, name: str) -> Decimal | None:  # noqa: ANN401 - foreign JSON
    """A number with all its digits, never by way of a float; :class:`Bad` where it is none."""
    if value is None or (isinstance(value, str) and value.strip() in ("", "NULL", "null")):
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, Decimal)):
        raise Bad(f"{name!r} is no number")
    try:
        text = str(value).strip()
    except ValueError:
        raise Bad(f"{name!r} is beyond any bill") from None
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    elif _COMMA.fullmatch(text):
        text = text.replace(",", ".")
    if not _NUMBER.fullmatch(text):
        raise Bad(f"{name!r} is no number")
    try:
        found = Decimal(text).quantize(_STEP, context=_CONTEXT)
    except InvalidOperation:
        raise Bad(f"{name!r} is beyond any bill") from None
    if abs(found) >= _MOST:
        raise Bad(f"{name!r} is beyond any bill")
    return found


def name(value: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    """A name or id; None where there is none, or a text too long for one."""
    text = text_or_none(value)
    text = text.strip() if text else None
    fits = text and len(text) <= _MOST_CHARS and text.upper() != "NULL"
    return text if fits else None


def above_usual(window: Any) -> bool | None:  # noqa: ANN401
    """Whether a context window such as ``200k-1M`` or ``> 200k`` lies above the usual price."""
    text = name(window)
    if text is None or not any(char.isdigit() for char in text):
        return None
    return not text.startswith(("0", "\u2264", "<"))


def moment(value: Any, column: str, sink: Sink) -> int | None:  # noqa: ANN401
    """A time of a bill, which is in UTC where it names no zone; :class:`Bad` where it is none."""
    ns, _ = _moment(value, column, sink)
    return ns


def day(value: Any, column: str, sink: Sink) -> tuple[int | None, int | None]:  # noqa: ANN401
    """Where a day begins and ends; a moment that is no whole day has no end."""
    ns, whole = _moment(value, column, sink)
    return ns, ns + DAY_NS if ns is not None and whole else None


def _moment(value: Any, column: str, sink: Sink) -> tuple[int | None, bool]:  # noqa: ANN401
    if value is None or (isinstance(value, str) and value.strip() in ("", "NULL", "null")):
        return None, False
    whole = False
    if isinstance(value, str):
        text = re.sub(r" ?UTC$", "Z", value.strip()[:40])
        if match := _MONTH_FIRST.fullmatch(text):
            month, of_month, year = match.groups()
            sink.assumed.add(MONTH_FIRST)
            text = f"{year if len(year) == 4 else '20' + year}-{month:0>2}-{of_month:0>2}"
        if _DATE.fullmatch(text):
            text, whole = f"{text}T00:00:00Z", True
        value = text
    ns = time_to_ns(value, "UTC")
    if ns is None:
        raise Bad(f"{column!r} {_NO_TIME}")
    return ns, whole


def add_line(
    sink: Sink,
    record: int,
    period: tuple[int | None, int | None],
    **columns: Any,  # noqa: ANN401
) -> None:
    """One line; an end that is not after its begin is a problem and not told."""
    begin, end = period
    if begin is not None and end is not None and end <= begin:
        sink.problems.append(Problem(record, "its period ends before it begins: no end was read"))
        end = None
    item = columns.get("item")
    if item is not None:
        columns["item"] = re.sub(r"\s+", "_", item)
    sink.add("invoice_line", record, period_start_ns=begin, period_end_ns=end, **columns)


def in_tokens(quantity: Decimal | None, size: Decimal | None) -> Decimal | None:
    """A quantity of units that hold ``size`` tokens each."""
    if quantity is None or size is None:
        return quantity
    found = _CONTEXT.multiply(quantity, size).quantize(_STEP, context=_CONTEXT)
    if abs(found) >= _MOST:
        raise Bad("a quantity of tokens beyond any bill")
    return found
