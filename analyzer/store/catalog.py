"""The sources of a case that is being written, in memory: a folder can hold thousands of files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from analyzer.contract.types import Resume
from analyzer.store.resume import load_resume


@dataclass(frozen=True)
class KnownSource:
    """A source the case already holds."""

    source_id: int
    path: str
    sha256: str
    bytes: int
    reader: str | None
    stored: str | None
    """Where reading goes on, as :func:`dump_resume` wrote it."""

    @cached_property
    def resume(self) -> Resume | None:
        """Where reading goes on once the file has grown; None where it cannot."""
        return load_resume(self.stored)


class Catalog:
    """Every source, and the hash of everything that was read, in whatever form."""

    def __init__(self, sources: Iterable[KnownSource], shorter: Iterable[str]) -> None:
        self.sources: dict[int, KnownSource] = {}
        self.hashes = set(shorter)
        self._last = 0
        for one in sources:
            self.add(one)

    def add(self, source: KnownSource) -> None:
        """One more, or a known one that has grown; its shorter form stays known."""
        self.sources[source.source_id] = source
        self._last = max(self._last, source.source_id)
        self.hashes.add(source.sha256)

    def forget(self, source_id: int) -> None:
        """A source that could not be stored."""
        self.hashes.discard(self.sources.pop(source_id).sha256)

    @property
    def next_id(self) -> int:
        """Number of a source to come."""
        return self._last + 1
