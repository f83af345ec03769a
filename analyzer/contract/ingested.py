"""What ingest did, file by file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FileRead:
    """What ingest did with one file. ``outcome``: read, grown, replaced, known, unrecognised."""

    path: str
    outcome: str
    reader: str | None = None
    record_unit: str = "record"
    records: int = 0
    used: int = 0
    ignored: int = 0
    problems: int = 0
    rows: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    bytes: int = 0
    why: str = ""
    in_part: int = 0
    """Of the records with a problem, those that gave a row all the same."""

    @property
    def nothing(self) -> bool:
        """Whether there was something in it, and each record of it is a problem."""
        return self.records > 0 and self.problems == self.records and not self.rows


@dataclass(frozen=True)
class IngestResult:
    """What was read, what was not, what was assumed, and what to run next."""

    db: str
    files: tuple[FileRead, ...]
    problems: tuple[dict[str, Any], ...]
    assumed: tuple[tuple[str, str], ...]
    next_command: str

    @property
    def clean(self) -> bool:
        """Every file was recognised and every record of it could be read."""
        return not any(f.problems or f.outcome in ("unrecognised", "failed") for f in self.files)
