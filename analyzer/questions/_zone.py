"""Days and hours in the user's zone: its offsets from UTC over the time of a case, as SQL."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from analyzer.errors import AnalyzerError, near

_FIXED = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d))?", re.IGNORECASE)
_NS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
_FIRST, _LAST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
"""Times beyond are no requests; the offset next to them holds for them."""


def zone_named(name: str) -> tzinfo:
    """A zone by its name (``Europe/Berlin``) or by its offset (``+09:00``, ``UTC+9``)."""
    text = name.strip()
    if text.upper() in ("", "UTC", "Z", "GMT"):
        return UTC
    fixed = _FIXED.fullmatch(text)
    if fixed:
        sign, hours, minutes = fixed.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if offset < _DAY:
            return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    cities = {zone.rpartition("/")[2].lower(): zone for zone in sorted(available_timezones())}
    own = cities.get(text.lower().replace(" ", "_"))
    meant = [own] if own else near(text, cities.values())
    hint = f"did you mean {' or '.join(meant)}?" if meant else "write Europe/Berlin, or +09:00"
    raise AnalyzerError(f"no time zone {name!r}", hint)


def offset_sql(zone: tzinfo, column: str, span: tuple[int, int]) -> str:
    """Offset from UTC at ``column``, ns, as an expression that holds for all of ``span``."""
    changes = _changes(zone, *span)
    first = _offset(zone, max(_moment(span[0]), _FIRST))
    if not changes:
        return f"CAST({first} AS BIGINT)"
    offsets = [first, *(offset for _, offset in changes)]
    whens = "".join(
        f" WHEN {column} < {until} THEN {offset}"
        for (until, _), offset in zip(changes, offsets, strict=False)
    )
    return f"CAST(CASE{whens} ELSE {offsets[-1]} END AS BIGINT)"


def _changes(zone: tzinfo, first_ns: int, last_ns: int) -> list[tuple[int, int]]:
    """Moments at which the offset changes, ns, and what it is from then on."""
    at, end = max(_moment(first_ns), _FIRST), min(_moment(last_ns) + _DAY, _LAST)
    found = []
    while at < end:
        after = at + _DAY
        if _offset(zone, at) != _offset(zone, after):
            low, high = at, after
            while high - low > timedelta(seconds=1):
                middle = low + timedelta(seconds=(high - low) // timedelta(seconds=1) // 2)
                low, high = (
                    (middle, high) if _offset(zone, middle) == _offset(zone, at) else (low, middle)
                )
            turn = -(-(high - _EPOCH) // timedelta(seconds=1)) * _NS
            found.append((turn, _offset(zone, after)))
        at = after
    return found


def _moment(at_ns: int) -> datetime:
    """To the second below; SQL compares exactly."""
    return _EPOCH + timedelta(seconds=at_ns // _NS)


def _offset(zone: tzinfo, at: datetime) -> int:
    return (at.astimezone(zone).utcoffset() or timedelta()) // timedelta(seconds=1) * _NS


def day_of(local_ns: int) -> str:
    """Date of a moment that is told in local time, as if that were UTC."""
    return f"{_EPOCH + timedelta(seconds=local_ns // _NS):%Y-%m-%d}"


def hour_of(local_ns: int, offset_ns: int) -> str:
    """Hour of such a moment with its offset, which tells apart the hour that comes twice."""
    start = f"{_EPOCH + timedelta(seconds=local_ns // _NS):%Y-%m-%dT%H:00}"
    if not offset_ns:
        return f"{start}Z"
    minutes = abs(offset_ns) // (60 * _NS)
    return f"{start}{'-' if offset_ns < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
