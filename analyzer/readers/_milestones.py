"""Differences of a request's own stamps, all read from one clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analyzer.readers._times import DURATIONS, seconds_to_ns


class Milestones:
    """Stamps of one request. Differences that cannot be are not told, and named in ``strange``."""

    def __init__(self, stamps: Mapping[str, int | None]) -> None:
        self._stamps = stamps
        self.strange: list[str] = []

    @classmethod
    def of_seconds(cls, holder: object) -> Milestones:
        """From a JSON object of seconds; 0 is a milestone that was never reached."""
        given: Mapping[str, Any] = holder if isinstance(holder, dict) else {}
        return cls({name: stamp_of(value) for name, value in given.items()})

    def first(self, *names: str) -> int | None:
        """The first of these stamps that is told."""
        return next((ns for name in names if (ns := self._stamps.get(name)) is not None), None)

    def between(self, name: str, earlier: int | None, later: int | None) -> int | None:
        """``later - earlier`` as the duration ``name``; None where it is none."""
        if earlier is None or later is None:
            return None
        if later - earlier not in DURATIONS:
            self.strange.append(name)
            return None
        return later - earlier

    def span(self, name: str, earlier: str, later: str) -> int | None:
        """The duration between two named stamps."""
        return self.between(name, self.first(earlier), self.first(later))

    def doubt(self) -> str:
        """What could not be believed, as a sentence; empty where all is well."""
        if not self.strange:
            return ""
        return f"{', '.join(self.strange)}: its stamps run backwards or lie years apart; not read"


def stamp_of(value: object) -> int | None:
    """Seconds of some clock in ns; 0, which stands for unset, is none."""
    ns = seconds_to_ns(value) if isinstance(value, (int, float)) else None
    return ns or None
