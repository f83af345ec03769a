"""Times as integers: nanoseconds since the Unix epoch, UTC, without a float in between."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

NS = 1_000_000_000


class Limits:
    """Whole numbers from ``start`` up to ``stop``; what is no whole number is not in it.

    Not a ``range``: that one walks to its end to find that None or a float is not there.
    """

    def __init__(self, start: int, stop: int) -> None:
        """Half-open, as a range."""
        self.start, self.stop = start, stop
        self.last = stop - 1

    def __contains__(self, value: object) -> bool:
        """Whether ``value`` is a whole number within."""
        return type(value) is int and self.start <= value < self.stop


TIMES = Limits(631_152_000 * NS, 7_258_118_400 * NS)
"""Every moment a log can tell: from 1990 up to 2200."""
DURATIONS = Limits(0, 320_000_000 * NS)
"""Up to ten years. Bounds keep the sums of all analyses within int64."""
NO_TIME = "is neither RFC 3339 nor Unix seconds, or no time from 1990 to 2199"
_INT64 = 2**63

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?\s*([Zz]|[+-]\d\d:?\d\d)?"
)


def seconds_to_ns(value: float | str | Decimal | None) -> int | None:
    """Seconds, as a number or its text, to nanoseconds; None where it is no number.

    What is beyond int64 becomes its first number beyond, which no column takes.
    """
    return _to_ns(value, NS)


def ms_to_ns(value: float | str | Decimal | None) -> int | None:
    """Milliseconds to nanoseconds, as :func:`seconds_to_ns`."""
    return _to_ns(value, 1_000_000)


def _to_ns(value: float | str | Decimal | None, unit_ns: int) -> int | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        # repr of a float is its shortest exact text, so 1785585600.25 stays what the log said.
        exact = Decimal(str(value)) * unit_ns
    except (ArithmeticError, ValueError):
        return None
    if exact.is_nan():
        return None
    return int(exact.to_integral_value()) if abs(exact) < _INT64 - 1 else _INT64


def zone_note(value: object, zone: str | None) -> str | None:
    """What is assumed of a date and time that names no offset; None where nothing is."""
    if not isinstance(value, str):
        return None
    match = _RFC3339.fullmatch(value.strip())
    if match is None or match[8] is not None:
        return None
    return f"its times name no zone: {zone or 'UTC'} was taken" + (
        "" if zone else ", for want of a better (--zone)"
    )


def time_to_ns(value: object, zone: str | None = None) -> int | None:
    """RFC 3339 text or Unix seconds to nanoseconds; a text without an offset is in ``zone``.

    None where it is no time, or none of :data:`TIMES`.
    """
    ns = _time_to_ns(value, zone)
    return ns if ns is not None and ns in TIMES else None


def _time_to_ns(value: object, zone: str | None) -> int | None:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return seconds_to_ns(value)
    if not isinstance(value, str):
        return None
    match = _RFC3339.fullmatch(value.strip())
    if match is None:
        return seconds_to_ns(value) if re.fullmatch(r"[\d.]+(?:[eE][+-]?\d+)?", value) else None
    *parts, fraction, offset = match.groups()
    numbers = [int(part) for part in parts]
    leap = numbers[5] == 60  # a leap second is told as :60; the epoch has no room for it
    try:
        year, month, day, hour, minute, second = numbers
        second -= leap
        whole = datetime(year, month, day, hour, minute, second, tzinfo=_zone(offset, zone))
    except ValueError:
        return None
    delta = whole - datetime(1970, 1, 1, tzinfo=UTC)
    digits = (fraction or "").ljust(9, "0")[:9]
    return (delta.days * 86_400 + delta.seconds + leap) * NS + int(digits)


def _zone(offset: str | None, zone: str | None) -> tzinfo:
    if offset is None:
        return ZoneInfo(zone) if zone else UTC
    if offset in "Zz":
        return UTC
    sign = -1 if offset[0] == "-" else 1
    hours, minutes = int(offset[1:3]), int(offset[-2:])
    return timezone(sign * timedelta(hours=hours, minutes=minutes))


def year_that_fits(
    month_day_time: tuple[int, int, int, int, int],
    zone: str | None,
    reference_ns: int | None,
    today_ns: int | None,
) -> int:
    """The year of a time stamp that lacks one.

    Nearest to the case's dated sources where there are any, else the newest that is not after
    today. A 29 February only fits a leap year.
    """
    month, day, hour, minute, second = month_day_time
    anchor = reference_ns if reference_ns is not None else today_ns
    if anchor is None:
        anchor = int(datetime.now(tz=UTC).timestamp()) * NS
    around = datetime.fromtimestamp(anchor // NS, tz=UTC).year
    candidates = []
    for year in range(around + 1, around - 9, -1):
        try:
            stamp = datetime(year, month, day, hour, minute, second, tzinfo=_zone(None, zone))
        except ValueError:
            continue
        candidates.append((year, int(stamp.timestamp()) * NS))
    if not candidates:
        return around
    if reference_ns is not None:
        return min(candidates, key=lambda pair: (abs(pair[1] - reference_ns), -pair[0]))[0]
    slack = 86_400 * NS  # a log written today in a zone ahead of UTC is not in the future
    fitting = [year for year, stamp in candidates if stamp <= anchor + slack]
    return max(fitting) if fitting else around
