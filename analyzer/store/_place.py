"""Whether ``--db`` names a place where a case can be, said before DuckDB is puzzled by it."""

from __future__ import annotations

from pathlib import Path

from analyzer.errors import AnalyzerError

_MAGIC, _MAGIC_AT = b"DUCK", 8
"""What every DuckDB file has behind its first checksum."""


def check_place(path: Path, *, write: bool) -> None:
    """Raise :class:`AnalyzerError` for a folder, an empty file to read, and what is no DuckDB."""
    if path.is_dir():
        raise AnalyzerError(
            f"{path} is a folder, no case", "--db names the case's file, such as analyze.duckdb"
        )
    try:
        with path.open("rb") as file:
            head = file.read(_MAGIC_AT + len(_MAGIC))
    except OSError:
        return  # missing, or not ours to read: opening it says so
    if not head and write:
        # An empty file is as good as none: mktemp makes one to hold a name.
        path.unlink()
    elif not head:
        raise AnalyzerError(
            f"{path} is empty, so it holds no case", f"analyze --db {path} ingest PATH... fills it"
        )
    elif head[_MAGIC_AT:] != _MAGIC:
        raise AnalyzerError(
            f"{path} is no DuckDB file, so no case",
            "--db names the case that ingest makes; logs to read come after ingest",
        )
