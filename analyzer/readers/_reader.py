"""What a reader is: one module of this folder with a ``READER``; nothing else to register."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from analyzer.contract.types import Batch, Resume
from analyzer.readers._file import Head, InputFile
from analyzer.readers._mapping import Plan


@dataclass(frozen=True)
class Claim:
    """A reader's answer to "is this yours?".

    ``score`` 1 = certain, 0 = not at all. Between, ``why`` says what spoke against it; the highest
    of them names the closest reader when nothing claims a file.
    """

    score: float
    why: str

    @property
    def sure(self) -> bool:
        """Whether the reader claims the file."""
        return self.score >= 1


@dataclass(frozen=True)
class Options:
    """What the person who ingests can say about a file, and where to go on in one that grew.

    ``reference_ns``: a time told by the dated sources of the case, for logs without a year.
    ``today_ns``: the newest time a log line can have. ``mapping``: how to read foreign columns.
    """

    year: int | None = None
    zone: str | None = None
    reference_ns: int | None = None
    today_ns: int | None = None
    resume: Resume | None = None
    mapping: Plan | None = None


@dataclass(frozen=True)
class Reader:
    """One foreign format: how to recognise it, what it gives, and how to read it.

    ``read`` is pure: a file in, :class:`Batch` out, no globals, no store. Memory stays bounded
    whatever the size of the file.
    """

    title: str
    record_unit: str
    gives: tuple[str, ...]
    probe: Callable[[Head], Claim]
    read: Callable[[InputFile, Options], Iterator[Batch]]
    docs: str
    cannot: str = ""
    enable: str = ""
    checked_against: str = ""
    example: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    """What else somebody needs to know to use it, each under its name."""
    undated: bool = False
    version: int = 1
    name: str = field(default="", compare=False)
