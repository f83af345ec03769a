"""Errors people can act on: what happened, where, and what to do next."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LIKE = 0.65
_NEAR = 3


class AnalyzerError(Exception):
    """An expected failure. Printed as message and hint, never as a traceback.

    Exit codes: 1 a gate that was asked for failed, 2 could not do it.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class GateFailed(AnalyzerError):
    """A condition the caller asked to be held to (``--strict``, ``--fail-on``) did not hold."""

    exit_code = 1


def near(word: str, known: Iterable[str]) -> list[str]:
    """The known names that somebody who typed ``word`` may mean, best first.

    Of dotted names each part counts as well: ``admision-limit`` is near ``queue.admission-limit``.
    """
    names = sorted(known)
    typed = word.lower()
    begin = [name for name in names if typed and name.startswith(typed)]
    parts = {part: name for name in names for part in (*name.split("."), name)}
    close = [parts[one] for one in get_close_matches(typed, parts, _NEAR, _LIKE)]
    return list(dict.fromkeys([*begin, *close]))[:_NEAR]


def hint_of(word: str, known: Iterable[str]) -> str:
    """``did you mean a or b?``; all that is known where nothing is near."""
    names = list(known)
    meant = near(word, names)
    return f"did you mean {' or '.join(meant)}?" if meant else f"known: {', '.join(names)}"
