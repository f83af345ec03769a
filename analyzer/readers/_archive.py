"""Zip and tar archives: each member is a file of its own, named ``archive.zip!member``.

Zip and plain tar are read where they lie. A compressed tar has no way to go to a member, so it is
unpacked as one piece into a temporary file (in memory while it is small), one archive at a time.
Names are for people only: nothing is ever written under them.
"""

from __future__ import annotations

import io
import shlex
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Generator, Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple, cast

from analyzer.readers._file import InputFile
from analyzer.readers._tar import TarEntry, Window, entries, is_tar

MOST_MEMBERS = 100_000
MOST_FOR_FREE = 256 * 1024 * 1024
"""Unpacked bytes that no ratio is asked for."""
MOST_RATIO = 250
"""Unpacked to packed bytes of a whole archive; logs reach a hundred."""
MOST_BYTES = 64 * 1024 * 1024 * 1024
_IN_MEMORY = 32 * 1024 * 1024
_MOST_NAME = 500
_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_NO_FILE = "the archive holds no file"
_UNPACK = "unpack it and ingest the folder"
_NESTED = "an archive inside an archive: unpack the outer one and ingest the folder"
_OTHERS = (
    (b"BZh", "bzip2 data: bzcat FILE | analyze ingest -"),
    (b"\xfd7zXZ\0", "xz data: xz -dc FILE | analyze ingest -"),
    (b"7z\xbc\xaf\x27\x1c", f"a 7z archive: {_UNPACK}"),
    (b"Rar!\x1a\x07", f"a rar archive: {_UNPACK}"),
    (b"\xff\xfe", "UTF-16 text: save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text: save it as UTF-8"),
)


class Found(NamedTuple):
    """A file, and why it is not read (empty where it is); ``broken``: there is more to it."""

    file: InputFile
    why: str = ""
    broken: bool = False


class Shelf:
    """Holds the one archive that is open at the moment: a zip, or a tar without its compression."""

    def __init__(self) -> None:
        self._archive: Archive | None = None
        self._held: Any = None

    def close(self) -> None:
        """Give the space back."""
        if self._held is not None:
            self._held.close()
        self._archive = self._held = None

    def held(self, archive: Archive, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - two kinds
        """What ``make`` gives for this archive; whoever gets it does not close it."""
        if self._archive is not archive:
            self.close()
            self._held = make()
            self._archive = archive
        return self._held


class _Kept(io.RawIOBase):
    """A stream whose closing leaves what lies behind it open."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - a SpooledTemporaryFile is no BinaryIO
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes."""
        data: bytes = self._stream.read(size)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place, as any stream."""
        place: int = self._stream.seek(offset, whence)
        return place


class Archive:
    """One archive on disk."""

    def __init__(self, file: InputFile, kind: str, shelf: Shelf) -> None:
        self.file = file
        self.kind = kind
        self.cut: str | None = None
        self._shelf = shelf
        self.most = min(MOST_BYTES, max(MOST_FOR_FREE, MOST_RATIO * file.size))

    def tar(self) -> BinaryIO:
        """The tar as a stream that can seek."""
        if self.file.packing == "plain":
            return self.file.open_raw()
        return cast("BinaryIO", _Kept(self._shelf.held(self, self._unpacked)))

    def zip(self) -> zipfile.ZipFile:
        """The zip, open."""
        held: zipfile.ZipFile = self._shelf.held(self, self._opened)
        return held

    def _opened(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(self.file.path)

    def _unpacked(self) -> Any:  # noqa: ANN401 - a SpooledTemporaryFile is no BinaryIO
        """The tar without its compression, up to a cut, damage or the limit."""
        spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, prefix="analyze-tar-")  # noqa: SIM115 - the shelf closes it
        total = 0
        try:
            for block in self.file.blocks(1024 * 1024):
                spool.write(block[: self.most - total])
                total += len(block)
                if total > self.most:
                    self.cut = _too_much(self.most)
                    return spool
            self.cut = self.file.cut
        except OSError as error:
            reason = error.strerror or str(error)
            self.cut = f"cannot be unpacked into {tempfile.gettempdir()} ({reason}): set TMPDIR"
        return spool


class MemberFile(InputFile):
    """A member of an archive, read through the archive."""

    def __init__(
        self, archive: Archive, name: str, size: int, place: zipfile.ZipInfo | TarEntry
    ) -> None:
        self.name = _shown(archive.file.name, name)
        self.cut = None
        self.position = 0
        self._archive = archive
        self._size = size
        self._place = place
        self._damage: str | None = None

    @property
    def size(self) -> int:
        """Bytes of the member as the archive states them."""
        return self._size

    @property
    def container(self) -> str:
        """The archive's kind, then the member's own compression."""
        inner = "" if self.packing == "plain" else f"+{self.packing}"
        return f"{self._archive.kind}{inner}"

    def open_raw(self) -> BinaryIO:
        """The member's bytes; damage ends them and is told in ``cut``."""
        return cast("BinaryIO", _Careful(self._open, self))

    def _open(self) -> Any:  # noqa: ANN401 - a ZipExtFile or a Window
        if isinstance(self._place, TarEntry):
            return Window(self._archive.tar(), self._place.offset, self._place.size)
        return self._archive.zip().open(self._place)

    def blocks(self, size: int = 8 * 1024 * 1024, offset: int = 0) -> Generator[bytes]:
        """Decompressed bytes, as of any file; damage of the archive is told over what it causes."""
        self._damage = None
        yield from super().blocks(size, offset)
        self.cut = self._damage or self.cut

    def damaged(self, why: str) -> None:
        """Remember why the member ends where it does."""
        self._damage = self._archive.cut or why

    @cached_property
    def path(self) -> Path:  # type: ignore[override]
        """A copy on disk, for readers that can do with nothing else; gone with this object."""
        self._copy = tempfile.NamedTemporaryFile(prefix="analyze-member-")  # noqa: SIM115
        with self.open_raw() as stream:
            shutil.copyfileobj(stream, self._copy)
        self._copy.flush()
        return Path(self._copy.name)


class _Careful(io.RawIOBase):
    """A member's stream that ends where the archive is damaged, instead of raising."""

    def __init__(self, opener: Callable[[], Any], owner: MemberFile) -> None:
        self._opener, self._owner = opener, owner
        self._lost = False

    @cached_property
    def _stream(self) -> Any:  # noqa: ANN401 - a ZipExtFile or a Window
        return self._opener()

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes, none from where the archive is damaged."""
        if self._lost:
            return b""
        try:
            data: bytes = self._stream.read(size)
        except Exception as error:  # zipfile, zlib, bz2 and lzma raise their own
            self._owner.damaged(f"the archive is damaged here ({error}); what came before was read")
            return b""
        if getattr(self._stream, "short", False):
            self._owner.damaged("the archive ends in the middle; what came before was read")
        return data

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that it can seek."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place; where the archive is damaged, nothing can be read from there."""
        try:
            place: int = self._stream.seek(offset, whence)
        except Exception as error:  # zipfile, zlib, bz2 and lzma raise their own
            self._owner.damaged(f"the archive is damaged here ({error})")
            self._lost = True
            return 0
        return place

    def tell(self) -> int:
        """The place it is at."""
        place: int = self._stream.tell()
        return place

    def close(self) -> None:
        """Close the member, not the archive."""
        if not self.closed and "_stream" in vars(self):
            self._stream.close()
        super().close()


def members(file: InputFile, shelf: Shelf) -> Iterator[Found] | None:
    """The members of an archive, or None where the file is none."""
    if file.packing == "plain":
        with file.open_raw() as stream:
            begin = stream.read(4)
        if begin in _ZIP:
            return _zip(Archive(file, "zip", shelf))
    begin = file.head.data
    if not is_tar(begin):
        return None
    packing = "" if file.packing == "plain" else f"+{file.packing}"
    return _tar(Archive(file, f"tar{packing}", shelf))


def is_archive(file: InputFile) -> bool:
    """Whether the (decompressed) file is a zip or a tar."""
    return file.head.data[:4] in _ZIP or is_tar(file.head.data)


def foreign(file: InputFile) -> str:
    """What to do with a file that is packed in a way this version does not read."""
    data = file.head.data
    if is_archive(file):
        return _NESTED
    return next((what for magic, what in _OTHERS if data.startswith(magic)), "")


def _shown(archive: str, member: str) -> str:
    name = member if len(member) <= _MOST_NAME else member[:_MOST_NAME] + "…"
    return f"{archive}!{name}".encode("utf-8", "replace").decode()


def _hidden(name: str) -> bool:
    """As hidden files of folders: ``.DS_Store``, ``__MACOSX/._data.csv``."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return any(part.startswith(".") and part.strip(".") for part in parts) or "__MACOSX" in parts


def _too_much(most: int) -> str:
    return (
        f"unpacks to more than {most >> 20:,} MiB, out of all proportion to its size, as a bomb "
        f"does: if these are logs, {_UNPACK}"
    )


def _checked(archive: Archive, found: Iterator[tuple[str, int, str, Any]]) -> Iterator[Found]:
    """Members within the limits; each as a file, or with the reason against it."""
    total = 0
    for count, (name, size, why, place) in enumerate(found):
        if count == MOST_MEMBERS:
            yield Found(
                archive.file, f"has more than {MOST_MEMBERS:,} members: {_UNPACK}", broken=True
            )
            return
        member = MemberFile(archive, name, size, place)
        if not why and total + size > archive.most:
            why = _too_much(archive.most)
        total += 0 if why else size
        yield Found(member, why, broken=bool(why) and not why.startswith("a "))


def _zip(archive: Archive) -> Iterator[Found]:
    file = archive.file
    try:
        infos = archive.zip().infolist()
    except Exception as error:  # zipfile, zlib, bz2 and lzma raise their own
        there = file.path.name == PurePosixPath(file.name).name  # else it came from a pipe
        name = shlex.quote(str(file.path) if there else file.name)
        why = (
            f"the zip's directory, at its end, is missing or damaged ({error}): the file was cut "
            f"or is still being written; zip -FF {name} --out repaired.zip saves what is there"
        )
        yield Found(file, why, broken=True)
        return
    if any(info.filename == "[Content_Types].xml" for info in infos):
        yield Found(file, "an Office document: export the sheet as CSV")
        return
    files = [info for info in infos if not info.is_dir() and not _hidden(info.filename)]
    yield from _checked(archive, ((i.filename, i.file_size, _locked(i), i) for i in files))
    if not files:
        yield Found(file, _NO_FILE)


def _locked(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & 1:
        return f"encrypted: {_UNPACK}"
    if info.compress_type not in (
        zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA,
    ):  # fmt: skip
        return f"packed by method {info.compress_type}, which this version cannot read: {_UNPACK}"
    return ""


def _tar(archive: Archive) -> Iterator[Found]:
    found = 0
    with archive.tar() as stream:
        told = (entry for entry in entries(stream) if not _hidden(entry.name))
        faults: list[str] = []

        def files() -> Iterator[tuple[str, int, str, Any]]:
            for entry in told:
                if entry.fault:
                    faults.append(entry.why)
                else:
                    yield entry.name, entry.size, entry.why, entry

        for one in _checked(archive, files()):
            found += 1
            yield one
    if archive.cut or faults:
        yield Found(archive.file, archive.cut or faults[0], broken=True)
    elif not found:
        yield Found(archive.file, _NO_FILE)
