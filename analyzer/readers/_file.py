"""Opens what people have: plain, gzip or zstd files as bounded blocks of bytes and whole lines."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path

import zstandard

HEAD_BYTES = 64 * 1024
BLOCK_BYTES = 8 * 1024 * 1024
MAX_LINE_BYTES = 64 * 1024 * 1024
BOM = b"\xef\xbb\xbf"

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Head:
    """The first 64 KiB of a file, enough to recognise it."""

    path: str
    data: bytes
    whole: bool
    """The file ends within these bytes."""

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

    lines: list[bytes]
    first_record: int
    offset: int
    unterminated: bool
    """The last line has no newline: the file ends in it and may still grow."""

    @cached_property
    def starts(self) -> list[int]:
        """Offset of each line."""
        sizes = (len(line) + 1 for line in self.lines)
        return list(accumulate(sizes, initial=self.offset))[:-1]

    @cached_property
    def end(self) -> int:
        """Offset of what follows the block."""
        return self.offset + sum(map(len, self.lines)) + len(self.lines) - self.unterminated

    @property
    def last_record(self) -> int:
        """Number of the last line."""
        return self.first_record + len(self.lines) - 1


class InputFile:
    """One input, decompressed on the fly. ``cut`` tells, after reading, that it ended too early."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        """Path shown to people: relative to the ingest argument."""
        self.cut: str | None = None
        self.position = 0
        """Bytes of the file as it lies on disk that were read so far; for progress only."""

    @cached_property
    def container(self) -> str:
        """plain, gzip or zstd, by content."""
        with self.path.open("rb") as stream:
            magic = stream.read(4)
        if magic.startswith(_GZIP_MAGIC):
            return "gzip"
        return "zstd" if magic == _ZSTD_MAGIC else "plain"

    def blocks(self, size: int = BLOCK_BYTES, offset: int = 0) -> Iterator[bytes]:
        """Decompressed bytes from ``offset`` on, in blocks of about ``size``."""
        if self.container == "plain":
            with self.path.open("rb") as stream:
                stream.seek(offset)
                while block := stream.read(size):
                    self.position = stream.tell()
                    yield block
            return
        skip = offset
        inflate = self._gunzip if self.container == "gzip" else self._unzstd
        for block in inflate(size):
            if skip >= len(block):
                skip -= len(block)
                continue
            yield block[skip:] if skip else block
            skip = 0

    def _gunzip(self, size: int) -> Iterator[bytes]:
        # gzip.GzipFile loses the last block of a cut file; decompressobj gives all that is there.
        step = zlib.decompressobj(wbits=31)
        fresh = True
        try:
            with self.path.open("rb") as stream:
                while data := stream.read(size // 4):
                    self.position = stream.tell()
                    while data:
                        if step.eof:
                            if not data.strip(b"\0"):
                                return
                            step, fresh = zlib.decompressobj(wbits=31), True
                        out = step.decompress(data, size)
                        fresh = False
                        data = step.unconsumed_tail or step.unused_data
                        if out:
                            yield out
                while out := step.decompress(b"", size):
                    yield out
        except zlib.error as error:
            self.cut = f"gzip data is damaged ({error}); what came before was read"
            return
        if not step.eof and not fresh:
            self.cut = "gzip data ends in the middle; what came before was read"

    def _unzstd(self, size: int) -> Iterator[bytes]:
        step = zstandard.ZstdDecompressor().decompressobj()
        fresh = True
        try:
            with self.path.open("rb") as stream:
                while data := stream.read(min(size // 4, 16 * 1024)):
                    self.position = stream.tell()
                    while data:
                        if step.eof:
                            step, fresh = zstandard.ZstdDecompressor().decompressobj(), True
                        out = step.decompress(data)
                        fresh = False
                        data = step.unused_data if step.eof else b""
                        if out:
                            yield out
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
        return Head(self.name, data[:HEAD_BYTES], whole=len(data) <= HEAD_BYTES)

    def fingerprint(self, lengths: frozenset[int] = frozenset()) -> tuple[str, int, dict[int, str]]:
        """SHA-256 and size of the decompressed bytes, and the SHA-256 of each asked-for prefix."""
        digest, total, prefixes = hashlib.sha256(), 0, {}
        todo = sorted(lengths)
        for block in self.blocks():
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
            data = rest + block if rest else block
            end = data.rfind(b"\n") + 1
            if not end:
                if len(data) < MAX_LINE_BYTES:
                    rest = data
                    continue
                end = len(data)
            lines = data[:end].split(b"\n")
            if not lines[-1]:
                lines.pop()
            yield Lines(lines, record, offset, unterminated=False)
            record += len(lines)
            offset += end
            rest = data[end:]
        if rest:
            yield Lines([rest], record, offset, unterminated=True)
