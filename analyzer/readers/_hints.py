"""What a reader tells of its own fields that people most often get wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches

from analyzer.readers._times import NO_TIME, TIMES, seconds_to_ns

_FINER = (("milliseconds", 1_000), ("microseconds", 1_000_000), ("nanoseconds", 1_000_000_000))
_NUMBER = re.compile(r"\d{1,30}(?:\.\d*)?")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}")
"""Any other key may be text of a prompt."""
_MOST = 8
_LIKE = 0.75


def no_time(value: object) -> str:
    """What is wrong with a time that is none; a unit that would make it one is named."""
    text = value if isinstance(value, str) else ""
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        text = str(value)
    if _NUMBER.fullmatch(text.strip()):
        for unit, parts in _FINER:
            if seconds_to_ns(Decimal(text.strip()) / parts) in TIMES:
                return f"is no time in Unix seconds: it looks like {unit}, divide by {parts:,}"
    return NO_TIME


@dataclass
class Unused:
    """Keys of a native log that no field of ours is called, over a whole file."""

    known: frozenset[str]
    _found: dict[str, None] = field(default_factory=dict)
    _more: bool = False

    def take(self, keys: Iterable[str]) -> None:
        """Some more keys, in any order; only the first few are kept."""
        for key in sorted(keys):
            if key in self._found:
                continue
            if len(self._found) < _MOST and _KEY.fullmatch(key):
                self._found[key] = None
            else:
                self._more = True

    def notes(self) -> tuple[str, ...]:
        """One line for all of them; nothing where every key is known."""
        if not self._found and not self._more:
            return ()
        names = [self._name(key) for key in self._found]
        if self._more:
            names.append("others")
        return (f"unknown fields, not used: {', '.join(names)}",)

    def _name(self, key: str) -> str:
        if key in self.known:
            return f"{key} (no field of the event it stands on)"
        near = get_close_matches(key.lower(), self.known, 1, _LIKE)
        return f"{key} (did you mean {near[0]}?)" if near else key
