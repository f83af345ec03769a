"""Values in a text that differ from call to call: times, ids and numbers, by their look alone."""

from __future__ import annotations

import re
from typing import NamedTuple

TIMESTAMP, ID, NUMBER = "timestamp", "id", "number"
_ORDER = (TIMESTAMP, ID, NUMBER)
_MARKS = {name: f"\0{name}\0" for name in _ORDER}
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},?\ "
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_NTH = r"[0-3]?[0-9](?:st|nd|rd|th)?"
_CLOCK = (
    r"(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]+)?)?(?![0-9:])"
    r"(?:\ ?[AaPp]\.?[Mm]\b)?"
)
_ZONE = r"(?:\ ?(?:Z\b|(?:UTC|GMT)?[+-][0-9]{2}:?[0-9]{2}\b|UTC\b|GMT\b|[A-Z]{1,3}[SD]T\b))?"
_DATE = (
    r"(?:[12][0-9]{3}-[01]?[0-9]-[0-3]?[0-9]|[12][0-9]{3}/[01]?[0-9]/[0-3]?[0-9]"
    r"|[0-3]?[0-9](?P<between>[/.-])[0-3]?[0-9](?P=between)(?:19|20)[0-9]{2}"
    rf"|(?:{_DAY})?(?:{_MONTH}\ {_NTH}|{_NTH}[\ -]{_MONTH})(?![0-9A-Za-z])"
    r"(?:[,-]?\ ?[12][0-9]{3})?)"
    r"(?![0-9])"
)
_TIME = (
    rf"{_DATE}(?:(?:T|,?\ (?:at\ )?){_CLOCK}{_ZONE}(?:\ [12][0-9]{{3}}\b)?)?"
    r"|[12][0-9]{7}T[0-9]{4,6}Z?\b"
    rf"|(?<![.:/]){_CLOCK}{_ZONE}"
)
_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"
# A word is looked at once: what stands before its last underscore, then what may be a value.
_VALUE = re.compile(
    rf"\b((?:[A-Za-z]++_)*+)(?:(?P<time>{_TIME})|(?P<uuid>{_UUID})"
    r"|(?P<word>[A-Za-z_]*+[0-9][A-Za-z0-9_]*+(?:(?<![A-Za-z_])\.[0-9]+\b)?))",
    re.ASCII,
)
_RUN = re.compile(r"[0-9]+|[A-Za-z]+")
_DIGITS = re.compile(r"[0-9]+")
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{7,}")
_DATE8 = re.compile(r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")
_UNIX = {10: 10**9, 13: 10**12, 16: 10**15, 19: 10**18}
"""Digits of a Unix time in s, ms, us and ns -> its least value: September 2001."""
_LAST_UNIX = 2.2
"""Times of that many times the least value and more are none: they lie after 2039."""
_SHORT_ID, _LONG_ID = 10, 16


class Masked(NamedTuple):
    """A text without its volatile values."""

    text: str
    classes: str | None
    """Those that occur, with commas between."""
    first: int | None
    """Where the first time or id stands; where there is none, the first number."""


def masked(text: str) -> Masked:
    """The text with each volatile value replaced by its class."""
    firsts: dict[str, int] = {}

    def mark(match: re.Match[str]) -> str:
        before, word = match[1], match["word"]
        if word is None:
            name = TIMESTAMP if match["uuid"] is None else ID
            plain = _MARKS[name]
        else:
            name, plain = _word(word)
        if name not in firsts:
            firsts[name] = match.end(1) if word is None or name != NUMBER else _digit(match)
        return before + plain

    plain = _VALUE.sub(mark, text)
    if not firsts:
        return Masked(text, None, None)
    strong = [firsts[name] for name in (TIMESTAMP, ID) if name in firsts]
    classes = ",".join(name for name in _ORDER if name in firsts)
    return Masked(plain, classes, min(strong) if strong else firsts[NUMBER])


def _digit(match: re.Match[str]) -> int:
    found = _DIGITS.search(match["word"])
    return match.start("word") + (found.start() if found else 0)


def _word(word: str) -> tuple[str, str]:
    """The class of a word with digits, and what stands for it."""
    whole, _, _ = word.partition(".")
    if whole.isdecimal():
        name = TIMESTAMP if _is_time(whole) else NUMBER
        return name, _MARKS[name]
    parts = whole.split("_")
    if any(_is_id(part) for part in parts):
        return ID, _MARKS[ID]
    if any(part.isdecimal() and _is_time(part) for part in parts):
        return TIMESTAMP, _DIGITS.sub(_MARKS[TIMESTAMP], word)
    return NUMBER, _DIGITS.sub(_MARKS[NUMBER], word)


def _is_time(digits: str) -> bool:
    """Unix time, or a date without dashes."""
    least = _UNIX.get(len(digits))
    if least is not None:
        return least <= int(digits) < _LAST_UNIX * least
    return _DATE8.fullmatch(digits) is not None


def _is_id(word: str) -> bool:
    """Letters and digits mixed as no word is: long hex, or base 62 with many changes."""
    if len(word) < 7 or word.isdecimal() or word.isalpha():
        return False
    if _HEX.fullmatch(word):
        return True
    changes = len(_RUN.findall(word)) - 1
    if len(word) >= _LONG_ID:
        return changes >= 2 or not (word.islower() or word.isupper())
    return len(word) >= _SHORT_ID and changes >= 3
