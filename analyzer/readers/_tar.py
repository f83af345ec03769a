"""Lists the members of a tar by its headers, within bounds, and says where it is cut or damaged."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

_BLOCK = 512
_MOST_NAME_BYTES = 1024 * 1024
_MOST_BYTES = 2**60
_FILE, _SPARSE = b"\x0007", b"S"
_LINKS, _DEVICES, _FOLDER = b"12", b"346", b"5"
_LONG_NAME, _LONG_LINK, _PAX, _PAX_ALL = b"L", b"K", b"x", b"g"


@dataclass(frozen=True)
class TarEntry:
    """One member: where its bytes lie, or ``why`` they are none that can be read."""

    name: str
    offset: int
    size: int
    why: str = ""
    fault: bool = False
    """No member: the tar ends too early here, or is no tar any more."""


def is_tar(begin: bytes) -> bool:
    """Whether a file that begins so is a tar: its first header has the right checksum."""
    return len(begin) >= _BLOCK and begin[:1] != b"\0" and _is_header(begin[:_BLOCK])


def _is_header(block: bytes) -> bool:
    told = _number(block[148:156])
    if told is None:
        return False
    blank = block[:148] + b" " * 8 + block[156:]
    signed = sum(byte - 256 if byte > 127 else byte for byte in blank)
    return told in (sum(blank), signed)


def _number(data: bytes) -> int | None:
    """Octal digits, or base 256 where the first bit is set; never negative."""
    if data[:1] == b"\x80":
        return int.from_bytes(data[1:], "big")
    digits = data.split(b"\0")[0].strip()
    try:
        value = int(digits or b"0", 8)
    except ValueError:
        return None
    return value if value >= 0 else None


def entries(stream: BinaryIO) -> Iterator[TarEntry]:
    """Every file of the tar in order; a fault comes last. Folders are passed over."""
    end, place, count = stream.seek(0, 2), 0, 0
    extra: dict[str, str] = {}
    while True:
        stream.seek(place)
        header = stream.read(_BLOCK)
        if len(header) == _BLOCK and not header.strip(b"\0"):
            return
        size = _number(header[124:136])
        kind = header[156:157]
        special = kind in (_LONG_NAME, _LONG_LINK, _PAX, _PAX_ALL)
        if fault := _fault(header, size, place, end) or (special and _too_long(size)):
            yield TarEntry("", place, 0, f"the archive {fault} after {count} members", fault=True)
            return
        place += _BLOCK
        size = size or 0
        if special:
            extra |= _told(kind, stream.read(size))
        else:
            count += 1
            size = int(extra.get("size", size))
            if kind != _FOLDER:
                name = extra.get("path") or _name(header)
                yield TarEntry(name, place, size, _refused(kind, extra))
            extra = {}
            size = 0 if kind in _LINKS + _DEVICES + _FOLDER else size
        place += -(-size // _BLOCK) * _BLOCK


def _fault(header: bytes, size: int | None, place: int, end: int) -> str:
    if place > end or 0 < len(header) < _BLOCK:
        return "ends in the middle"
    if not header:
        return "has no end mark"
    bad = size is None or size > _MOST_BYTES or not _is_header(header)
    return "is damaged" if bad else ""


def _too_long(size: int | None) -> str:
    return "has a name beyond all bounds" if (size or 0) > _MOST_NAME_BYTES else ""


def _name(header: bytes) -> str:
    name = header[:100].split(b"\0")[0]
    prefix = header[345:500].split(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return (prefix + b"/" + name if prefix else name).decode("utf-8", "replace")


def _told(kind: bytes, data: bytes) -> dict[str, str]:
    """What a GNU or pax header tells of the member that follows."""
    if kind == _LONG_NAME:
        return {"path": data.split(b"\0")[0].decode("utf-8", "replace")}
    if kind in (_LONG_LINK, _PAX_ALL):
        return {}
    told = {}
    while data:
        digits, _, _ = data.partition(b" ")
        length = int(digits) if digits.isdigit() and len(digits) < 8 else 0
        if not len(digits) < length <= len(data):
            break
        key, _, value = data[len(digits) + 1 : length].rstrip(b"\n").partition(b"=")
        text = value.decode("utf-8", "replace")
        if key == b"path" or (key == b"size" and value.isdigit() and len(value) < 19):
            told[key.decode()] = text
        elif key.startswith(b"GNU.sparse"):
            told["sparse"] = text
        data = data[length:]
    return told


def _refused(kind: bytes, extra: dict[str, str]) -> str:
    if kind in _LINKS:
        return "a link, not a file: what it points to is read where it lies itself"
    if kind in _DEVICES:
        return "a device, not a file"
    if kind == _SPARSE or "sparse" in extra:
        return "a sparse file: unpack the archive (tar -xf) and ingest the folder"
    return "" if kind in _FILE else f"of a kind this version does not know ({kind!r})"


class Window(io.RawIOBase):
    """A stretch of a stream as a stream of its own, which ends early where that one does."""

    def __init__(self, stream: BinaryIO, offset: int, size: int) -> None:
        self._stream, self._offset, self._size = stream, offset, size
        self._at = 0
        self.short = False

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes; ``short`` tells, at the end, that some are missing."""
        left = max(0, self._size - self._at)
        wanted = left if size < 0 else min(size, left)
        self._stream.seek(self._offset + self._at)
        data = self._stream.read(wanted)
        self._at += len(data)
        self.short = self.short or len(data) < wanted
        return data

    def seekable(self) -> bool:
        """Tell that it can seek."""
        return True

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place, as any stream."""
        base = (0, self._at, self._size)[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        """The place it is at."""
        return self._at

    def close(self) -> None:
        """Close what lies behind it too."""
        if not self.closed:
            self._stream.close()
        super().close()
