"""Says in words that a case cannot be written for want of room, which DuckDB tells in many ways."""

from __future__ import annotations

from pathlib import Path

import duckdb

from analyzer.errors import AnalyzerError

_FULL = ("no space left", "file too large", "quota exceeded", "could not write", "failed to write")
_SPENT = ("database has been invalidated", "out of memory", "could not allocate")


def no_room(path: Path, error: duckdb.Error) -> AnalyzerError | None:
    """The error people can act on, where that is what happened; None for any other.

    What was stored before stays stored: each file is one transaction.
    """
    text = str(error).splitlines()[0]
    small = text.lower()
    hint = "what was read stays read: make room and run the same command again"
    if any(sign in small for sign in _FULL):
        reason = text.rpartition(": ")[2]
        return AnalyzerError(f"{path} cannot be written ({reason})", hint)
    if any(sign in small for sign in _SPENT):
        return AnalyzerError(f"{path}: DuckDB ran out of room or memory ({text[:120]})", hint)
    return None
