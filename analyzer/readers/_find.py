"""Lists the readers by looking at this folder, and picks one for a file by its content."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from functools import cache

import analyzer.readers
from analyzer.errors import AnalyzerError, hint_of
from analyzer.readers._file import Head
from analyzer.readers._reader import Claim, Reader


@cache
def all_readers() -> dict[str, Reader]:
    """Name -> reader, for every module of this folder that does not start with ``_``."""
    names = sorted(
        module.name
        for module in pkgutil.iter_modules(analyzer.readers.__path__)
        if not module.name.startswith("_")
    )
    return {name: _load(name) for name in names}


def _load(name: str) -> Reader:
    module = importlib.import_module(f"analyzer.readers.{name}")
    reader: Reader = module.READER
    return dataclasses.replace(reader, name=name)


def reader_named(name: str) -> Reader:
    """The reader the user forces; an unknown name lists the known ones."""
    readers = all_readers()
    if name not in readers:
        raise AnalyzerError(f"no reader named {name!r}", hint_of(name, readers))
    return readers[name]


LIKE = 0.5
"""From this score on, what spoke against the closest reader helps; below, it leads astray."""

_BROKEN = 0.01
"""Score of a reader that fails over a file."""


@dataclasses.dataclass(frozen=True)
class Pick:
    """The reader for a file, or why there is none: the closest one and what spoke against it."""

    reader: Reader | None
    closest: Reader | None = None
    why: str = ""


def pick(head: Head) -> Pick:
    """Recognise a file by content. Two readers that both claim it are named, never guessed at."""
    claims: list[tuple[Claim, Reader]] = [(_claim(r, head), r) for r in all_readers().values()]
    sure = [reader for claim, reader in claims if claim.sure]
    if len(sure) == 1:
        return Pick(sure[0])
    if sure:
        names = " and ".join(reader.name for reader in sure)
        return Pick(None, sure[0], f"claimed by {names}; choose with --reader NAME")
    best, reader = max(claims, key=lambda pair: (pair[0].score, pair[1].name))
    if best.score < LIKE:
        broken = next((pair for pair in claims if pair[0].score == _BROKEN), None)
        if broken:
            return Pick(None, broken[1], broken[0].why)
        return Pick(None, None, "no reader knows anything like it")
    return Pick(None, reader, best.why)


_IN_A_ROW = 12
"""So many files of one kind make a folder of that kind."""


class Usual:
    """Recognises file after file. Of a long row of one kind, the next is asked of its reader first.

    A folder of transcripts has thousands of files, and dozens of readers look at each.
    """

    def __init__(self) -> None:
        self._reader: Reader | None = None
        self._in_a_row = 0

    def pick(self, head: Head) -> Pick:
        """As :func:`pick`."""
        usual = self._reader
        if usual is not None and self._in_a_row >= _IN_A_ROW and _claim(usual, head).sure:
            return Pick(usual)
        found = pick(head)
        if found.reader is not None:
            self._in_a_row = self._in_a_row + 1 if found.reader is usual else 1
            self._reader = found.reader
        return found


def _claim(reader: Reader, head: Head) -> Claim:
    """What a reader says of a file; one that fails over it must not keep the others from it."""
    try:
        return reader.probe(head)
    except Exception as error:  # whatever a reader's mistake raises
        return Claim(
            _BROKEN, f"it failed over this file ({type(error).__name__}): please report it"
        )
