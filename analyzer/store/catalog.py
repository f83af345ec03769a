"""The sources of a case that is being written, in memory: a folder can hold thousands of files."""

from __future__ import annotations

import builtins
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
    begin: builtins.bytes | None = None
    """Its first bytes, where this very run read it: no other file begins with it then."""

    @cached_property
    def resume(self) -> Resume | None:
        """Where reading goes on once the file has grown; None where it cannot."""
        return load_resume(self.stored)


class Catalog:
    """Every source, and the hash of everything that was read, in whatever form."""

    def __init__(self, sources: Iterable[KnownSource], shorter: Iterable[str]) -> None:
        self.sources: dict[int, KnownSource] = {}
        self.hashes = set(shorter)
        self._alike: dict[tuple[str | None, bytes | None], dict[int, KnownSource]] = {}
        self._begins: set[int] = set()
        self._last = 0
        for one in sources:
            self.add(one)

    def add(self, source: KnownSource) -> None:
        """One more, or a known one that has grown; its shorter form stays known."""
        self._drop(source.source_id)
        self.sources[source.source_id] = source
        self._last = max(self._last, source.source_id)
        self.hashes.add(source.sha256)
        if source.bytes:
            alike = self._alike.setdefault((source.reader, source.begin), {})
            alike[source.source_id] = source
        if source.begin is not None:
            self._begins.add(len(source.begin))

    def _drop(self, source_id: int) -> None:
        if (known := self.sources.pop(source_id, None)) is not None:
            self._alike.get((known.reader, known.begin), {}).pop(source_id, None)

    def forget(self, source_id: int) -> None:
        """A source that could not be stored."""
        self.hashes.discard(self.sources[source_id].sha256)
        self._drop(source_id)

    def shorter(self, reader: str, begin: bytes) -> list[KnownSource]:
        """What a file that begins like this may have grown from, if it is longer.

        To look at every other file of a folder of thousands would take longer than to read them.
        """
        begins = {None, *(begin[:length] for length in self._begins)}
        found: list[KnownSource] = []
        for some in begins:
            found += self._alike.get((reader, some), {}).values()
        return found

    def known(self, reader: str) -> list[KnownSource]:
        """Sources of earlier runs that this reader read."""
        return list(self._alike.get((reader, None), {}).values())

    @property
    def next_id(self) -> int:
        """Number of a source to come."""
        return self._last + 1
