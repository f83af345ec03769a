"""Finds the files of an ingest, those in archives too, and a reader for each."""

from __future__ import annotations

import dataclasses
import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from analyzer.errors import AnalyzerError
from analyzer.readers._archive import Found, Shelf, foreign, members
from analyzer.readers._file import InputFile
from analyzer.readers._find import Usual, reader_named
from analyzer.readers._mapping import Plan
from analyzer.readers._mapping_head import misfit
from analyzer.readers._reader import Reader

_OUR_FILES = (".duckdb", ".duckdb.wal")


@dataclasses.dataclass(frozen=True)
class Job:
    """A file and the reader that will read it, or why there is none."""

    file: InputFile
    reader: Reader | None
    why: str = ""
    unreadable: bool = False
    mapped: bool = False
    """It is read through the mapping that was given; ``why`` of any other says what it lacks."""


def unpacked(files: Iterable[InputFile], stack: ExitStack) -> Iterator[Found]:
    """Every file, and those inside archives, each with what speaks against reading it."""
    shelf = Shelf()
    stack.callback(shelf.close)
    for file in files:
        try:
            inside = members(file, shelf)
        except OSError as error:
            yield Found(file, f"cannot be read: {error.strerror or error}", broken=True)
            continue
        if inside is None:
            yield Found(file)
        else:
            yield from inside


def discover(paths: Sequence[str], besides: str | None, stack: ExitStack) -> Iterator[InputFile]:
    """Every file that is asked for, once; ``besides`` is none of them."""
    seen: set[Path] = {Path(besides).resolve()} if besides else set()
    for given in paths:
        if given == "-":
            yield _spooled(sys.stdin.buffer if sys.stdin else None, "stdin", stack)
            continue
        if Path(given).is_fifo():
            with Path(given).open("rb") as pipe:
                yield _spooled(pipe, Path(given).name, stack)
            continue
        for path, name in _expand(given):
            if (place := path.resolve()) not in seen:
                seen.add(place)
                # A name that is no UTF-8 is shown and stored with its odd bytes replaced.
                yield InputFile(path, os.fsencode(name).decode("utf-8", "replace"))


def _expand(given: str) -> Iterator[tuple[Path, str]]:
    if not given:
        raise AnalyzerError("an empty path was given", "a folder is . or its name")
    path = Path(given)
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
            if file.is_file() and not hidden and not file.name.endswith(_OUR_FILES):
                yield file, file.relative_to(path).as_posix()
        return
    if path.is_file():
        yield path, path.name
        return
    matches = sorted(glob.glob(given, recursive=True)) if glob.has_magic(given) else []  # noqa: PTH207 - a pattern may be absolute
    if not matches:
        raise AnalyzerError(
            f"{given}: no such file or folder",
            "nothing was read; check the path, or quote the glob",
        )
    for match in matches:
        yield from _expand(match)


def existing(given: str) -> Path:
    """The path of a file that an option names."""
    if not Path(given).is_file():
        raise AnalyzerError(f"{given}: no such file", "check the path")
    return Path(given)


def _spooled(stream: BinaryIO | None, name: str, stack: ExitStack) -> InputFile:
    """A stream on disk: recognising and fingerprinting see the bytes before they are read."""
    if stream is None:
        raise AnalyzerError("there is no standard input", "analyze ingest PATH...")
    spool = stack.enter_context(tempfile.NamedTemporaryFile(prefix="analyze-spool-"))  # noqa: SIM115
    shutil.copyfileobj(stream, spool)
    spool.flush()
    return InputFile(Path(spool.name), name)


def job_of(found: Found, forced: str | None, plan: Plan | None, usual: Usual) -> Job:
    """Who reads a file, or why nobody does."""
    file = found.file
    if found.why:
        return Job(file, None, found.why, unreadable=found.broken)
    if forced is not None:
        return Job(file, reader_named(forced), mapped=plan is not None)
    try:
        return _recognised(file, plan, usual)
    except OSError as error:
        return Job(file, None, f"cannot be read: {error.strerror or error}", unreadable=True)
    finally:
        file.forget()


def _recognised(file: InputFile, plan: Plan | None, usual: Usual) -> Job:
    if not file.head.data:
        cut = f"its {file.packing} data is cut off or damaged before anything can be read"
        return Job(file, None, cut if file.size else "the file is empty")
    if why := foreign(file):
        return Job(file, None, why)
    lacking = misfit(plan, file.head) if plan else ""
    if plan and not lacking:
        return Job(file, reader_named("mapping"), mapped=True)
    found = usual.pick(file.head)
    if found.reader is not None:
        return Job(file, found.reader, lacking)
    closest = f"closest is {found.closest.name}: " if found.closest else ""
    return Job(file, None, lacking or closest + found.why)
