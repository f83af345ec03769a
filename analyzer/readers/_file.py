"""Opens what people have: plain, gzip or zstd files as bounded blocks of bytes and whole lines.

Members of archives are files of their own: :mod:`analyzer.readers._archive`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

# Intel's: it unpacks in a third of zlib's time.
from isal import isal_zlib

HEAD_BYTES = 64 * 1024
BLOCK_BYTES = 8 * 1024 * 1024
_BEGIN_BYTES = 1024
_HASH_BYTES = 256 * 1024
"""Small enough to stay in the processor's cache between reading and hashing."""
MAX_LINE_BYTES = 64 * 1024 * 1024
MOST_FOR_FREE = 1024 * 1024 * 1024
"""Unpacked bytes that no ratio is asked for."""
MOST_RATIO = 1_000
"""Unpacked to packed bytes; logs reach a hundred, gzip cannot do more than 1,032."""
BOM = b"\xef\xbb\xbf"

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True)
class Head:
    """The first 64 KiB of a file, enough to recognise it."""

    path: str
    data: bytes
    whole: bool
    """The file ends within these bytes."""
    columns: tuple[str, ...] = ()
    """Columns of a Parquet file, which names them at its end."""

    @cached_property
    def lines(self) -> list[bytes]:
        """Non-blank lines; a last line that the head cuts off is left out."""
        lines = self.data.removeprefix(BOM).split(b"\n")
        if not self.whole and len(lines) > 1:
            lines = lines[:-1]
        return [line.strip() for line in lines if line.strip()]


@dataclass(frozen=True)
class Lines:
    """Whole lines of one block. ``first_record`` counts from 1, ``offset`` is in bytes."""

    data: bytes
    """The lines as they lie there, with their newlines."""
    first_record: int
    offset: int
    unterminated: bool
    """The last line has no newline: the file ends in it and may still grow."""

    @cached_property
    def lines(self) -> list[bytes]:
        """Each line without its newline."""
        lines = self.data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        return lines

    @cached_property
    def count(self) -> int:
        """How many lines there are."""
        if "lines" in vars(self):
            return len(self.lines)
        return self.data.count(b"\n") + (not self.data.endswith(b"\n"))

    @cached_property
    def starts(self) -> list[int]:
        """Offset of each line."""
        sizes = (len(line) + 1 for line in self.lines)
        return list(accumulate(sizes, initial=self.offset))[:-1]

    @cached_property
    def end(self) -> int:
        """Offset of what follows the block."""
        return self.offset + len(self.data)

    @property
    def last_record(self) -> int:
        """Number of the last line."""
        return self.first_record + self.count - 1


class InputFile:
    """One input, decompressed on the fly. ``cut`` tells, after reading, that it ended too early."""

    passed: tuple[str, int] | None = None
    """SHA-256 and size of all bytes, once a watched file was read to its end."""
    _watched = False

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        """Path shown to people: relative to the ingest argument."""
        self.cut: str | None = None
        self.position = 0
        """Bytes of the file as it lies on disk that were read so far; for progress only."""

    @property
    def size(self) -> int:
        """Bytes of the file as it lies on disk."""
        return self.path.stat().st_size

    def open_raw(self) -> BinaryIO:
        """The bytes as they lie there, from the first; the stream can seek."""
        return self.path.open("rb")

    @cached_property
    def packing(self) -> str:
        """plain, gzip or zstd, by content."""
        with self.open_raw() as stream:
            magic = stream.read(4)
        if magic.startswith(_GZIP_MAGIC):
            return "gzip"
        return "zstd" if magic == _ZSTD_MAGIC else "plain"

    @property
    def container(self) -> str:
        """What the file lies in, as the source row names it."""
        return self.packing

    def watch(self) -> None:
        """Fingerprint the bytes as they are read, where unpacking twice would cost much."""
        self._watched = True

    def blocks(self, size: int = BLOCK_BYTES, offset: int = 0) -> Generator[bytes]:
        """Decompressed bytes from ``offset`` on, in blocks of about ``size``."""
        blocks = self._unpacked(size, offset)
        return self._passing(blocks) if self._watched and not offset else blocks

    def _passing(self, blocks: Iterator[bytes]) -> Generator[bytes]:
        digest, total = hashlib.sha256(), 0
        for block in blocks:
            digest.update(block)
            total += len(block)
            yield block
        self.passed = digest.hexdigest(), total

    def _unpacked(self, size: int, offset: int) -> Generator[bytes]:
        if self.packing == "plain":
            with self.open_raw() as stream:
                stream.seek(offset)
                while block := stream.read(size):
                    self.position = stream.tell()
                    yield block
            return
        skip = offset
        inflate = self._gunzip if self.packing == "gzip" else self._unzstd
        for block in self._bounded(inflate(size)):
            if skip >= len(block):
                skip -= len(block)
                continue
            yield block[skip:] if skip else block
            skip = 0

    def _bounded(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Stop where what comes out is out of all proportion to what lies there."""
        total, most = 0, max(MOST_FOR_FREE, MOST_RATIO * self.size)
        for block in blocks:
            room = most - total
            total += len(block)
            if total > most:
                yield block[:room]
                self.cut = (
                    f"{self.packing} data unpacks to over {MOST_RATIO:,} times its size, as a bomb "
                    "does: reading stopped; if it is a log, unpack it and ingest the result"
                )
                return
            yield block

    def _gunzip(self, size: int) -> Iterator[bytes]:
        # gzip.GzipFile loses the last block of a cut file; decompressobj gives all that is there.
        step = isal_zlib.decompressobj(wbits=31)
        fresh = True
        try:
            with self.open_raw() as stream:
                while data := stream.read(max(1, size // 4)):
                    self.position = stream.tell()
                    while data:
                        if step.eof:
                            if not data.strip(b"\0"):
                                return
                            step, fresh = isal_zlib.decompressobj(wbits=31), True
                        out = step.decompress(data, size)
                        fresh = False
                        data = step.unconsumed_tail or step.unused_data
                        if out:
                            yield out
                while out := step.decompress(b"", size):
                    yield out
        except isal_zlib.error as error:  # type: ignore[misc] # a class, whatever its stub says
            self.cut = f"gzip data is damaged ({error}); what came before was read"
            return
        if not step.eof and not fresh:
            self.cut = "gzip data ends in the middle; what came before was read"

    def _unzstd(self, size: int) -> Iterator[bytes]:
        step = zstandard.ZstdDecompressor().decompressobj()
        fresh = True
        # One call gives all that its input unpacks to, so little goes in until that is known.
        portion = 1024
        try:
            with self.open_raw() as stream:
                while data := stream.read(portion):
                    self.position = stream.tell()
                    came = 0
                    while data:
                        if step.eof:
                            step, fresh = zstandard.ZstdDecompressor().decompressobj(), True
                        out = step.decompress(data)
                        fresh = False
                        data = step.unused_data if step.eof else b""
                        came += len(out)
                        if out:
                            yield out
                    portion = max(64, portion // 2) if came > size else min(portion * 2, 16 * 1024)
        except zstandard.ZstdError as error:
            self.cut = f"zstd data is damaged ({error}); what came before was read"
            return
        if not step.eof and not fresh:
            # zstandard reports no error for a frame that is cut off.
            self.cut = "zstd data ends in the middle; what came before was read"

    @cached_property
    def head(self) -> Head:
        """The first 64 KiB, decompressed."""
        data = b""
        for block in self.blocks(HEAD_BYTES):
            data += block
            if len(data) > HEAD_BYTES:
                break
        self.cut = None
        columns = self._parquet_columns() if data.startswith(_PARQUET_MAGIC) else ()
        return Head(self.name, data[:HEAD_BYTES], len(data) <= HEAD_BYTES, columns)

    @cached_property
    def begin(self) -> bytes:
        """The first 1 KiB, which stays when the head is let go."""
        return self.head.data[:_BEGIN_BYTES]

    def forget(self) -> None:
        """Let the head go: many thousand files may wait to be read."""
        if "head" in vars(self):
            vars(self)["begin"] = self.head.data[:_BEGIN_BYTES]
            del vars(self)["head"]

    def _parquet_columns(self) -> tuple[str, ...]:
        """With the fields inside them, as ``usage.input``; none where the file is damaged."""
        import pyarrow as pa
        from pyarrow import parquet

        if self.packing != "plain":
            return ()
        try:
            with self.open_raw() as stream:
                return tuple(_paths(parquet.read_schema(stream)))
        except (pa.ArrowException, OSError, ValueError):
            return ()

    def fingerprint(self, lengths: frozenset[int] = frozenset()) -> tuple[str, int, dict[int, str]]:
        """SHA-256 and size of the decompressed bytes, and the SHA-256 of each asked-for prefix."""
        digest, total, prefixes = hashlib.sha256(), 0, {}
        todo = sorted(lengths)
        for block in self.blocks(_HASH_BYTES):
            start = 0
            while todo and todo[0] <= total + len(block):
                end = todo.pop(0) - total
                digest.update(block[start:end])
                prefixes[total + end] = digest.hexdigest()
                start = end
            digest.update(block[start:])
            total += len(block)
        return digest.hexdigest(), total, prefixes

    def has_long_line(self) -> bool:
        """Whether the first line is longer than :meth:`lines` gives in one piece."""
        seen = 0
        for block in self.blocks():
            end = block.find(b"\n")
            seen += len(block) if end < 0 else end
            if end >= 0 or seen > MAX_LINE_BYTES:
                break
        return seen > MAX_LINE_BYTES

    def _from_line(self, size: int, offset: int) -> tuple[int, Iterator[bytes]]:
        """The place at or after ``offset`` where a line begins, and the blocks from there.

        A byte order mark is no part of a line. A line that was read before it had its newline was
        counted then: blanks and a newline that came later are no other line.
        """
        blocks = self.blocks(size, max(0, offset - 1))
        begin = b""
        for block in blocks:
            begin += block
            if len(begin) > len(BOM) and begin[1:].strip(b" \t\r"):
                break
        if offset == 0:
            data = begin.removeprefix(BOM)
            return len(begin) - len(data), chain([data], blocks)
        data = begin[1:]
        line, newline, after = data.partition(b"\n")
        if begin[:1] != b"\n" and not line.strip():
            return offset + len(line + newline), chain([after], blocks)
        return offset, chain([data], blocks)

    def lines(
        self, size: int = BLOCK_BYTES, offset: int = 0, records_before: int = 0
    ) -> Iterator[Lines]:
        """Blocks of whole lines, without their newlines. A line of over 64 MiB is cut there."""
        rest, record = b"", records_before + 1
        offset, blocks = self._from_line(size, offset)
        for block in blocks:
            end = block.rfind(b"\n") + 1
            if not end and len(rest) + len(block) < MAX_LINE_BYTES:
                rest += block
                continue
            end = end or len(block)
            # Without a rest, and with nothing behind the last newline, nothing is copied.
            data = b"".join((rest, memoryview(block)[:end])) if rest else block[:end]
            lines = Lines(data, record, offset, unterminated=False)
            rest = block[end:]
            yield lines
            record += lines.count
            offset += len(data)
        if rest:
            yield Lines(rest, record, offset, unterminated=True)


def _paths(fields: Iterable[Any], before: str = "") -> Iterator[str]:
    """Names of Arrow fields and of those inside them, joined with dots."""
    for field in fields:
        yield f"{before}{field.name}"
        if str(field.type).startswith("struct<"):
            yield from _paths(field.type, f"{before}{field.name}.")
