"""Reads small files ahead, in processes of their own, while the case is written in this one.

They are forks: a new process would take as long to start as a hundred files to read. What they read
comes back in the order of the files, so the case is the same as without them. Whatever goes wrong
in one of them (a file too large, a reader's mistake, its death) leaves the file to this process,
which reads it as if there were none.
"""

from __future__ import annotations

import gc
import io
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

from analyzer.contract.types import Batch, Problem
from analyzer.intake._discover import Job
from analyzer.readers._file import InputFile
from analyzer.readers._find import all_readers, reader_named
from analyzer.readers._reader import Options, Reader
from analyzer.store._gather import Gathered
from analyzer.store._wire import packed, unpacked
from analyzer.store.catalog import Catalog

_FEWEST_FILES, _FEWEST_BYTES = 24, 4 * 2**20
"""What is less is read sooner than processes are started."""
_FEW_BYTES = 12 * 2**20
"""So much is worth it in two files too, as the traces of some ranks are."""
_MOST_FILE_BYTES = 8 * 2**20
_MOST_ROWS = 250_000
_BATCH_BYTES, _BATCH_FILES = 4 * 2**20, 50
"""What a process reads between two answers."""
_MOST_PROCESSES = 4
_PIPE_BYTES, _SET_PIPE_BYTES = 2**20, 1031
_HARMLESS = ("jemalloc_bg_thd", "polars-ooc-clea")
"""Threads that libraries have from the first; what others hold would be held for ever in a fork."""


@dataclass
class Early:
    """A file that was read ahead. Without ``gathered`` it was known, or had grown."""

    sha256: str
    bytes: int
    gathered: Gathered | None = None


class _Task(NamedTuple):
    """One file, and everything to read it that the fork does not have yet."""

    path: str
    name: str
    reader: str
    mapped: bool


@dataclass(frozen=True)
class _Known:
    """What the case holds: files that need not be read, and beginnings of others."""

    hashes: frozenset[str]
    prefixes: dict[str, frozenset[tuple[int, str]]]


class _Process(NamedTuple):
    pid: int
    orders: BinaryIO
    answers: BinaryIO


class Ahead:
    """The processes. They are started before anything else has threads, and told later what to do.

    ``options`` are those of the whole ingest.
    """

    def __init__(self, files: Sequence[InputFile], options: Options) -> None:
        self._processes: list[_Process] = []
        self._place: dict[int, int] = {}
        """Job -> batch."""
        self._batches: list[list[int]] = []
        self._read: dict[int, Early | None] = {}
        self._next = 0
        count = _processes(files)
        if count:
            all_readers()  # loaded once for all of them
        for _ in range(count):
            with suppress(OSError):  # no more processes, or files: fewer will do
                self._processes.append(self._start(options))

    def _start(self, options: Options) -> _Process:
        theirs, orders = os.pipe()
        answers, own = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # see _HARMLESS
            pid = os.fork()
        if pid == 0:
            _serve(theirs, own, (orders, answers, *self._ends()), options)
        os.close(theirs)
        os.close(own)
        _widen(answers)
        return _Process(pid, os.fdopen(orders, "wb"), os.fdopen(answers, "rb"))

    def _ends(self) -> Iterator[int]:
        for one in self._processes:
            yield from (one.orders.fileno(), one.answers.fileno())

    def begin(self, jobs: Sequence[Job], order: Sequence[int], catalog: Catalog) -> None:
        """Hand out the files, in the order in which they will be asked for."""
        if not self._processes:
            return
        some = [i for i in order if _suits(jobs[i])]
        sizes = {i: jobs[i].file.size for i in some}
        self._batches = list(_portions([i for i in some if sizes[i] <= _MOST_FILE_BYTES], sizes))
        self._place = {i: at for at, batch in enumerate(self._batches) for i in batch}
        names = {reader.name for i in self._place if (reader := jobs[i].reader)}
        known = _Known(
            frozenset(catalog.hashes),
            {
                name: frozenset((one.bytes, one.sha256) for one in catalog.known(name))
                for name in names
            },
        )
        count = len(self._processes)
        for number, process in enumerate(self._processes):
            mine = [[_task(jobs[i]) for i in batch] for batch in self._batches[number::count]]
            with suppress(OSError):
                pickle.dump((mine, known), process.orders)
                process.orders.close()

    def take(self, i: int) -> Early | None:
        """What was read of a job's file; None where it is still to be read."""
        while i in self._place and i not in self._read and self._next < len(self._batches):
            self._fetch()
        return self._read.pop(i, None)

    def _fetch(self) -> None:
        batch = self._batches[self._next]
        process = self._processes[self._next % len(self._processes)]
        self._next += 1
        early: list[Early | None] = [None] * len(batch)
        # A process that died has said less than it announced.
        with suppress(EOFError, OSError, pickle.UnpicklingError):
            some, rows = pickle.load(process.answers)  # noqa: S301 - our own fork wrote it
            unpacked([one.gathered for one in some if one and one.gathered], rows)
            early = some
        self._read.update(zip(batch, early, strict=True))

    def close(self) -> None:
        """End them, whatever they do."""
        for process in self._processes:
            with suppress(OSError):
                process.orders.close()
            process.answers.close()
            os.kill(process.pid, signal.SIGKILL)
            os.waitpid(process.pid, 0)
        self._processes = []


def batches(
    file: InputFile, reader: Reader, options: Options, gathered: Gathered
) -> Iterator[Batch]:
    """What the reader gives of a file, and the problem of a file that ends too early."""
    yield from reader.read(file, options)
    if file.cut:
        lost = gathered.account()["records"] + 1
        yield Batch(records=1, problems=(Problem(lost, file.cut),))


def _processes(files: Sequence[InputFile]) -> int:
    """How many are worth it, and safe to start."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return 0
    sizes = [size for size in map(_size, files) if size <= _MOST_FILE_BYTES]
    enough = _FEWEST_BYTES if len(sizes) >= _FEWEST_FILES else _FEW_BYTES
    processors = len(os.sched_getaffinity(0))
    if processors < 2 or len(sizes) < 2 or sum(sizes) < enough:
        return 0
    own = str(os.getpid())
    threads = [one for one in Path("/proc/self/task").iterdir() if one.name != own]
    names = {(one / "comm").read_text(encoding="utf-8").strip() for one in threads}
    return min(processors, _MOST_PROCESSES) if names <= set(_HARMLESS) else 0


def _size(file: InputFile) -> int:
    try:
        return file.size
    except OSError:
        return 0


def _suits(job: Job) -> bool:
    # A member of an archive is read through the archive, which is open once.
    return job.reader is not None and not job.reader.undated and type(job.file) is InputFile


def _task(job: Job) -> _Task:
    return _Task(
        str(job.file.path), job.file.name, job.reader.name if job.reader else "", job.mapped
    )


def _portions(some: Sequence[int], sizes: dict[int, int]) -> Iterator[list[int]]:
    portion: list[int] = []
    total = 0
    for i in some:
        if portion and (total + sizes[i] > _BATCH_BYTES or len(portion) == _BATCH_FILES):
            yield portion
            portion, total = [], 0
        portion.append(i)
        total += sizes[i]
    if portion:
        yield portion


def _widen(pipe: int) -> None:
    """Room for what is read while this process does something else."""
    import fcntl  # not on every system, nor are forks

    with suppress(OSError):
        fcntl.fcntl(pipe, _SET_PIPE_BYTES, _PIPE_BYTES)


# -- in the other process -----------------------------------------------------------------------


def _serve(orders: int, answers: int, others: Sequence[int], options: Options) -> NoReturn:
    """Read what is asked for. It ends with the process that asks: nothing can be written then."""
    try:
        gc.freeze()  # to look through what it shares with the other process would copy all of it
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells both; that one decides
        for end in others:
            os.close(end)
        with os.fdopen(orders, "rb") as asked, os.fdopen(answers, "wb") as told:
            tasks, known = pickle.load(asked)  # noqa: S301 - the process we are a fork of wrote it
            for portion in tasks:
                early = [_early(task, known, options) for task in portion]
                rows = packed([one.gathered for one in early if one and one.gathered])
                pickle.dump((early, rows), told, pickle.HIGHEST_PROTOCOL)
                told.flush()
    finally:
        os._exit(0)


def _early(task: _Task, known: _Known, options: Options) -> Early | None:
    try:
        return _read(task, known, options)
    except Exception:  # told by the process that stores, over the same file
        return None


def _read(task: _Task, known: _Known, options: Options) -> Early | None:
    reader = reader_named(task.reader)
    file = _held(Path(task.path), task.name)
    sha, size, _ = file.fingerprint()
    if sha in known.hashes:
        return Early(sha, size)
    if prefixes := known.prefixes[task.reader]:
        _, _, found = file.fingerprint(frozenset(length for length, _ in prefixes))
        if any(one in prefixes for one in found.items()):
            return Early(sha, size)
    gathered = Gathered(task.name, reader.name)
    fitted = replace(options, mapping=options.mapping if task.mapped else None)
    for batch in batches(file, reader, fitted, gathered):
        gathered.append(batch)
        if gathered.rows > _MOST_ROWS:
            return None
    gathered.end()
    return Early(sha, size, gathered)


class _Held(InputFile):
    """A small file in memory: it is read once, though looked at twice."""

    def __init__(self, path: Path, name: str, data: bytes) -> None:
        super().__init__(path, name)
        self._data = data

    def open_raw(self) -> BinaryIO:
        return io.BytesIO(self._data)


def _held(path: Path, name: str) -> InputFile:
    if path.stat().st_size > _MOST_FILE_BYTES:
        raise ValueError("it has grown since it was found")
    return _Held(path, name, path.read_bytes())
