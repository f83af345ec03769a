"""Ingest: finds files, recognises them, and stores each in one piece."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from analyzer.contract.types import FileRead, IngestResult
from analyzer.errors import AnalyzerError, GateFailed
from analyzer.intake._account import (
    Run,
    nothing_fits,
    nothing_read,
    nothing_recognised,
    result_of,
)
from analyzer.intake._ahead import Ahead, Early, batches
from analyzer.intake._discover import Job, discover, existing, job_of, unpacked
from analyzer.readers._file import InputFile
from analyzer.readers._find import Usual, reader_named
from analyzer.readers._mapping import load
from analyzer.readers._reader import Options, Reader
from analyzer.readers._times import year_that_fits
from analyzer.store._gather import Gathered
from analyzer.store.case import Case, open_case
from analyzer.store.catalog import KnownSource
from analyzer.store.dates import date_runs, guessed_years, move_times

Progress = Callable[[str, int, int], None]
_LARGE_BYTES = 1024 * 1024
_TURN_S = 0.00005
_READ = ("read", "grown", "replaced", "known")


def ingest(
    db: str,
    paths: Sequence[str],
    *,
    reader: str | None = None,
    mapping: str | None = None,
    deployment: str | None = None,
    prices: str | None = None,
    zone: str | None = None,
    year: int | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> IngestResult:
    """Read files, folders, globs or ``-`` (stdin) into the case ``db``.

    Nothing is stored twice: known bytes add nothing, a file that has grown is read from where it
    ended. Raises :class:`AnalyzerError` where nothing is recognised, :class:`GateFailed` under
    ``strict`` when a record or file could not be read.
    """
    if zone is not None:
        _check_zone(zone)
    plan = load(mapping) if mapping is not None else None
    now = int(datetime.now(tz=UTC).timestamp()) * 1_000_000_000
    options = Options(year=year, zone=zone, today_ns=now, mapping=plan)
    with ExitStack() as stack:
        stack.enter_context(_quick_turns())
        files = list(discover(paths, mapping, stack))
        ahead = Ahead(files, options)
        stack.callback(ahead.close)
        usual = Usual()
        jobs = [job_of(one, reader, plan, usual) for one in unpacked(files, stack)]
        for option, name in ((deployment, "deployment"), (prices, "prices")):
            if option is not None:
                jobs.append(Job(InputFile(existing(option), option), reader_named(name)))
        if plan and not any(job.mapped for job in jobs):
            raise AnalyzerError(nothing_fits(plan, jobs), "analyze formats mapping shows one")
        if not any(job.reader for job in jobs):
            raise AnalyzerError(
                nothing_recognised(jobs, paths),
                "analyze formats lists what is known; --reader NAME forces one",
            )
        case = open_case(db, write=True)
        stack.callback(case.close)
        run: Run = {}
        reads = _read_all(case, jobs, options, run, ahead, progress)
        if not any(file.outcome in _READ for file in reads):
            raise AnalyzerError(nothing_read(reads), "analyze formats NAME says what is expected")
        result = result_of(case, db, reads, run)
    if strict:
        hold_to(result)
    return result


@contextmanager
def _quick_turns() -> Iterator[None]:
    """Threads that unpack, hash and store ask for the interpreter after each block.

    They would wait 5 ms for the one that runs Python, and with them all that it waits for.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def hold_to(result: IngestResult) -> None:
    """Raise :class:`GateFailed` where a record or file could not be read."""
    if not result.clean:
        raise GateFailed(
            "--strict: some records or files could not be read",
            f"analyze --db {result.db} status names them",
        )


def _read_all(
    case: Case, jobs: list[Job], options: Options, run: Run, ahead: Ahead, progress: Progress | None
) -> list[FileRead]:
    """Dated sources first: they tell the year of logs that lack one."""
    reads: dict[int, FileRead] = {}
    sources: dict[int, int] = {}
    undated = [job.reader is not None and job.reader.undated for job in jobs]
    order = sorted(range(len(jobs)), key=undated.__getitem__)
    ahead.begin(jobs, order, case.catalog)
    sizes = [job.file.size for job in jobs]
    total, done = sum(sizes), 0
    for i in order:
        job = jobs[i]
        if job.reader is None:
            outcome = "failed" if job.unreadable else "unrecognised"
            reads[i] = FileRead(job.file.name, outcome, why=job.why)
        else:
            fitted = dataclasses.replace(
                options,
                reference_ns=case.reference_ns() if job.reader.undated else None,
                mapping=options.mapping if job.mapped else None,
            )
            start = done

            def tick(position: int, name: str = job.file.name, before: int = start) -> None:
                if progress is not None:
                    progress(name, before + position, total)

            before = len(run)
            reads[i] = _read_one(case, job.file, job.reader, fitted, run, ahead.take(i), tick)
            if len(run) > before:
                sources[next(reversed(run))] = i
        done += sizes[i]
    with suppress(AnalyzerError):  # told by the files it concerns
        case.flush()
    for source_id, why in case.lost.items():
        if (i := sources.get(source_id, -1)) >= 0:
            run.pop(source_id)
            reads[i] = FileRead(jobs[i].file.name, "failed", reads[i].reader, why=why)
    _redate(case, run)
    for source_id in date_runs(case):
        run.setdefault(source_id, sys.maxsize)
    return [reads[i] for i in range(len(jobs))]


def _redate(case: Case, run: Run) -> None:
    """Give logs without a year the one that dated logs show, whichever was ingested first."""
    reference = case.reference_ns()
    if reference is None:
        return
    for source_id, first_ns in guessed_years(case):
        seconds, rest = divmod(first_ns, 1_000_000_000)
        told = datetime.fromtimestamp(seconds, tz=UTC)
        stamp = (told.month, told.day, told.hour, told.minute, told.second)
        year = year_that_fits(stamp, None, reference, None)
        fitting = int(told.replace(year=year).timestamp()) * 1_000_000_000 + rest
        note = f"its times name no year: {year} was taken, nearest to the dated logs of the case"
        move_times(case, source_id, fitting - first_ns, note)
        run.setdefault(source_id, sys.maxsize)


def _read_one(
    case: Case, file: InputFile, reader: Reader, options: Options, run: Run, early: Early | None,
    tick: Callable[[int], None],
) -> FileRead:  # fmt: skip
    try:
        return _store_one(case, file, reader, options, run, early, tick)
    except _Known as known:
        return FileRead(file.name, "known", reader.name, bytes=known.bytes)
    except AnalyzerError as error:
        why = f"{error.message}; {error.hint}" if error.hint else error.message
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
    except Exception as error:  # one broken reader must not lose the other files
        why = f"reader {reader.name} failed: {type(error).__name__}: {error}"
    return FileRead(file.name, "failed", reader.name, why=why)


def _store_one(
    case: Case, file: InputFile, reader: Reader, options: Options, run: Run, early: Early | None,
    tick: Callable[[int], None],
) -> FileRead:  # fmt: skip
    if early and case.knows(early.sha256):
        return FileRead(file.name, "known", reader.name, bytes=early.bytes)
    known = case.catalog.shorter(reader.name, file.begin)
    file.forget()
    gathered = _gathered(early, known)
    beside = not early and not known and type(file) is InputFile and file.size >= _LARGE_BYTES
    if beside:
        sha, size, grown = "", 0, None
    elif early and gathered:
        sha, size, grown = early.sha256, early.bytes, None
    else:
        sha, size, prefixes = file.fingerprint(frozenset(one.bytes for one in known))
        if case.knows(sha):
            return FileRead(file.name, "known", reader.name, bytes=size)
        grown = _grown_from(known, prefixes, size)
    outcome = "read" if grown is None else ("grown" if grown.resume else "replaced")
    options = dataclasses.replace(options, resume=grown.resume if grown else None)
    row = {
        "path": file.name, "sha256": sha, "bytes": size, "container": file.container,
        "reader": reader.name, "reader_version": reader.version, "record_unit": reader.record_unit,
    }  # fmt: skip
    with (
        _fingerprinted(file) if beside else nullcontext() as fingerprint,
        case.file(row, grown, gathered, file.begin) as writer,
    ):
        for batch in () if gathered else batches(file, reader, options, writer.gathered):
            writer.append(batch)
            tick(file.position)
        if gathered:
            tick(file.size)
        if fingerprint:
            sha, size = fingerprint()
            if case.knows(sha):
                raise _Known(size)
            writer.told(sha256=sha, bytes=size)
    run[writer.source_id] = grown.resume.records if grown and grown.resume else 0
    first, last = writer.span
    account = writer.gathered.account()
    return FileRead(
        file.name, outcome, reader.name, reader.record_unit, account["records"],
        account["used"], account["ignored"], account["problems"], writer.gathered.rows, first,
        last, size, in_part=writer.in_part,
    )  # fmt: skip


class _Known(Exception):
    """What was read turned out to be what another reader has read before."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.bytes = size


@contextmanager
def _fingerprinted(file: InputFile) -> Iterator[Callable[[], tuple[str, int]]]:
    """The fingerprint and size of a large file, taken while it is read."""
    if file.packing != "plain":
        file.watch()
        yield lambda: file.passed or file.fingerprint()[:2]
        return
    size = file.size
    with ThreadPoolExecutor(1, "fingerprint") as pool:
        other = InputFile(file.path, file.name)
        found = pool.submit(other.fingerprint, frozenset((size,)))

        def told() -> tuple[str, int]:
            sha, total, prefixes = found.result()
            # What a log gained meanwhile may have come too late to be read.
            return (prefixes[size], size) if size in prefixes else (sha, total)

        yield told


def _gathered(early: Early | None, known: Sequence[KnownSource]) -> Gathered | None:
    """What was read ahead, unless the file may have grown from one that this run read."""
    if early is None or any(one.begin is not None and one.bytes < early.bytes for one in known):
        return None
    return early.gathered


def _grown_from(
    known: list[KnownSource], prefixes: dict[int, str], size: int
) -> KnownSource | None:
    """The longest source of the same reader that this file begins with."""
    shorter = [one for one in known if one.bytes < size and prefixes.get(one.bytes) == one.sha256]
    return max(shorter, key=lambda one: one.bytes, default=None)


def _check_zone(zone: str) -> None:
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise AnalyzerError(
            f"--zone {zone}: no such time zone", "use a name such as Europe/Berlin or UTC"
        ) from None
