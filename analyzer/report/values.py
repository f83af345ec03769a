"""Numbers, times and foreign text as people read them: units, three digits, nothing hostile."""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from analyzer.contract.units import agreeing

NONE = "-"

TIME_KEYS = frozenset(
    {
        "at_ns",
        "bin_ns",
        "day_ns",
        "end_ns",
        "first_ns",
        "from_ns",
        "hour_ns",
        "last_ns",
        "minute_ns",
        "period_end_ns",
        "period_start_ns",
        "since_ns",
        "start_ns",
        "time_ns",
        "to_ns",
        "until_ns",
        "valid_from_ns",
    }
)
"""Keys whose nanoseconds count from the epoch; every other ``_ns`` is a duration."""

PLAIN_KEYS = frozenset({"year", "status", "port", "pid", "byte_offset", "attempt", "turn"})
"""Whole numbers that name something: grouping their digits would make them harder to search."""

_HASH_SHOWN = 12
"""Digits of a hash for people; machines get all of it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEPS = ((1, "ns"), (1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s"))
_CENT = Decimal("0.01")
_NS_PER_S = 1_000_000_000
_UNIT_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": _NS_PER_S}

# CSI, OSC (ended by BEL or ST) and the two-character escapes; a C1 byte may stand for ESC + letter.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)


def safe_text(text: str, *, lines: bool = False) -> str:
    """Foreign text without escapes, controls and direction overrides; ``lines`` keeps newlines.

    Logs are hostile input: an escape sequence could repaint the screen or set its title, and a
    direction override could make one id look like another.
    """
    plain = _ESCAPES.sub("", text)
    if plain.isascii() and plain.isprintable():
        return plain
    return "".join(_safe_char(char, lines=lines) for char in plain)


def _safe_char(char: str, *, lines: bool) -> str:
    if char in "\n\t\r":
        return ("" if char == "\r" else char) if lines else " "
    kind = unicodedata.category(char)
    if kind in {"Zl", "Zp"}:
        return " "
    if kind == "Cs":
        return "\N{REPLACEMENT CHARACTER}"
    return "" if kind in {"Cc", "Cf"} else char


def significant(value: float, digits: int = 3) -> str:
    """``digits`` significant digits, thousands grouped; whole parts are never cut."""
    if not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    rounded = round(value, digits - 1 - magnitude)
    magnitude = math.floor(math.log10(abs(rounded)))
    if magnitude < -6:
        return f"{value:.{digits - 1}e}"
    if magnitude >= digits:
        return f"{value:,.0f}"
    return f"{rounded:,.{max(0, digits - 1 - magnitude)}f}"


def duration(value_ns: float | None) -> str:
    """Nanoseconds as ``850 us``, ``12.3 ms``, ``4.01 s``, ``2 min 05 s``, ``3 h 12 min``."""
    if value_ns is None or not math.isfinite(value_ns):
        return NONE
    sign, size = ("-" if value_ns < 0 else ""), abs(value_ns)
    if size == 0:
        return "0 s"
    for factor, unit in _STEPS[:-1]:
        text = significant(size / factor)
        if float(text.replace(",", "")) < 1000:
            return f"{sign}{text} {unit}"
    if size < 120 * _NS_PER_S:
        return f"{sign}{significant(size / _NS_PER_S)} s"
    return sign + _long(round(size / _NS_PER_S))


def _long(seconds: int) -> str:
    minutes, second = divmod(seconds, 60)
    if minutes < 120:
        return f"{minutes} min {second:02d} s"
    hours, minute = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minute:02d} min"
    return f"{hours // 24} d {hours % 24:02d} h"


def percent(ratio: float | None) -> str:
    """Ratio from 0 to 1 as a percentage; what is short of all never reads as all."""
    if ratio is None or not math.isfinite(ratio):
        return NONE
    text = significant(ratio * 100)
    return ("> 99.9" if text == "100" and ratio < 1 else text.removesuffix(".0")) + " %"


def count(value: float | None) -> str:
    """Whole number with grouped digits."""
    return NONE if value is None or not math.isfinite(value) else f"{round(value):,}"


def size(value: float | None) -> str:
    """Bytes in SI units."""
    if value is None or not math.isfinite(value):
        return NONE
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 999.5 or unit == "TB":
            return f"{value:.0f} B" if unit == "B" else f"{significant(value)} {unit}"
        value /= 1000
    return NONE


def moment(value_ns: int | None) -> str:
    """Nanoseconds since the epoch as ``2026-09-17 14:10:03Z``."""
    if value_ns is None:
        return NONE
    try:
        return f"{_EPOCH + timedelta(seconds=value_ns // _NS_PER_S):%Y-%m-%d %H:%M:%SZ}"
    except OverflowError:
        return f"{value_ns} ns"


def rfc3339(value_ns: int) -> str:
    """Nanoseconds since the epoch for machines: every digit that matters, UTC."""
    try:
        base = f"{_EPOCH + timedelta(seconds=value_ns // _NS_PER_S):%Y-%m-%dT%H:%M:%S}"
    except OverflowError:
        return f"{value_ns} ns"
    rest = value_ns % _NS_PER_S
    return base + (f".{rest:09d}".rstrip("0") if rest else "") + "Z"


def window(pair: tuple[int, int] | None) -> str:
    """Half-open window; the date is said once where it can be."""
    if pair is None:
        return NONE
    start, end = moment(pair[0]), moment(pair[1])
    return f"{start} to {end[11:] if start[:10] == end[:10] and end[10:11] == ' ' else end}"


def quantity(value: float | str | Decimal | None, unit: str) -> str:
    """Value with the unit a finding states."""
    if value is None:
        return NONE
    if isinstance(value, bool | str):
        return str(value).lower() if isinstance(value, bool) else safe_text(value)
    if unit == "usd":
        return money(value)
    if unit == "time_ns":
        return moment(int(value))
    if unit in _UNIT_NS:
        return duration(float(value) * _UNIT_NS[unit])
    if unit == "ratio":
        # Ratios are shares up to 1; above, they compare two sizes and "530 %" would mislead.
        return percent(float(value)) if value <= 1 else f"{significant(float(value))} times"
    if unit == "bytes":
        return size(float(value))
    text = plain_number(value)
    if unit in {"", "1"}:
        return text
    return f"{text} {agreeing(safe_text(unit)) if text == '1' else safe_text(unit)}"


def money(value: float | Decimal) -> str:
    """Dollars: to the cent from one on, below to four digits that matter."""
    exact = value if isinstance(value, Decimal) else Decimal(repr(value))
    if not exact.is_finite():
        return NONE
    size = abs(exact)
    digits = 2 if size >= 1 or size == 0 else 4 if size >= _CENT else 6
    text = f"{size:,.{digits}f}"
    return f"-${text}" if value < 0 else f"${text}"


def plain_number(value: float | Decimal) -> str:
    """Write a number without a unit: whole ones grouped, others to three digits, money as is."""
    if isinstance(value, Decimal):
        return f"{value.normalize():f}" if value == value.to_integral_value() else f"{value:f}"
    return f"{value:,}" if isinstance(value, int) else significant(value)


def cell(key: str, value: Any) -> str:  # noqa: ANN401 - one cell of a foreign table
    """One value of a table; its key says the unit."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return safe_text(value[:_HASH_SHOWN] if key == "sha256" else value)
    if isinstance(value, dict):
        return ", ".join(f"{safe_text(str(k))} {cell(str(k), v)}" for k, v in value.items()) or NONE
    if isinstance(value, list | tuple):
        return ", ".join(cell("", item) for item in value) or NONE
    if not isinstance(value, int | float | Decimal):
        return safe_text(str(value))
    return _number_cell(key, value)


def _number_cell(key: str, value: float | Decimal) -> str:
    if key in TIME_KEYS and isinstance(value, int):
        return moment(value)
    if key.endswith("_ns"):
        return duration(float(value))
    if key.endswith(("_ratio", "share", "coverage")):
        return percent(float(value))
    if key == "bytes" or key.endswith("_bytes"):
        return size(float(value))
    if key.endswith("_usd"):
        return money(value)
    if key.endswith("_per_s"):
        return f"{significant(float(value))} /s"
    if key in PLAIN_KEYS:
        return str(value)
    return plain_number(value)


def raw(value: Any, unit: str = "") -> str:  # noqa: ANN401 - any cell
    """Number as JSON has it, with its unit; nothing for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return ""
    if not math.isfinite(value):
        return ""
    text = f"{float(f'{value:.9g}')!r}" if isinstance(value, float) else f"{value:f}"
    if isinstance(value, int):
        text = str(value)
    return text if unit in {"", "1"} else f"{text} {safe_text(unit)}"


def raw_cell(key: str, value: Any, unit: str = "") -> str:  # noqa: ANN401 - any cell
    """Raw value of a table's cell: its key says the unit where none is given."""
    if key in TIME_KEYS:
        told = isinstance(value, int) and not isinstance(value, bool)
        return rfc3339(value) if told else ""
    return raw(value, unit or ("ns" if key.endswith("_ns") else ""))


def label(key: str) -> str:
    """Column's heading: the key in words, without the unit that each cell shows."""
    words = key.removesuffix("_ns").removesuffix("_ratio").removesuffix("_per_s")
    return safe_text(words.replace("_usd", " (USD)").replace("_", " ")) or safe_text(key)


def plural(number: int, word: str) -> str:
    """``1 check``, ``12 checks``."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")
