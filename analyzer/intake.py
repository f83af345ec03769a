"""Ingest: finds files, recognises them, and stores each in one piece."""

from __future__ import annotations

import dataclasses
import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from analyzer.contract.types import Batch, FileRead, IngestResult, Problem
from analyzer.errors import AnalyzerError, GateFailed
from analyzer.readers._archive import Found, Shelf, foreign, members
from analyzer.readers._file import InputFile
from analyzer.readers._find import Usual, reader_named
from analyzer.readers._mapping import Plan, load
from analyzer.readers._mapping_head import misfit
from analyzer.readers._reader import Options, Reader
from analyzer.readers._times import year_that_fits
from analyzer.store.case import Case, open_case
from analyzer.store.catalog import KnownSource
from analyzer.store.dates import date_runs, guessed_years, move_times

Progress = Callable[[str, int, int], None]
_SHOWN_PROBLEMS = 5
_READ = ("read", "grown", "replaced", "known")
_OUR_FILES = (".duckdb", ".duckdb.wal")
_Run = dict[int, int]
"""Sources this run wrote: id -> records that an earlier run had read of it."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A file and the reader that will read it, or why there is none."""

    file: InputFile
    reader: Reader | None
    why: str = ""
    unreadable: bool = False
    mapped: bool = False
    """It is read through the mapping that was given; ``why`` of any other says what it lacks."""


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
    with ExitStack() as stack:
        found = _members(_discover(paths, mapping, stack), stack)
        usual = Usual()
        jobs = [_job(one, reader, plan, usual) for one in found]
        for option, name in ((deployment, "deployment"), (prices, "prices")):
            if option is not None:
                jobs.append(Job(InputFile(_existing(option), option), reader_named(name)))
        if plan and not any(job.mapped for job in jobs):
            raise AnalyzerError(_nothing_fits(plan, jobs), "analyze formats mapping shows one")
        if not any(job.reader for job in jobs):
            raise AnalyzerError(
                _nothing_recognised(jobs, paths),
                "analyze formats lists what is known; --reader NAME forces one",
            )
        case = open_case(db, write=True)
        stack.callback(case.close)
        run: _Run = {}
        files = _read_all(case, jobs, Options(year=year, zone=zone, mapping=plan), run, progress)
        if not any(file.outcome in _READ for file in files):
            raise AnalyzerError(_nothing_read(files), "analyze formats NAME says what is expected")
        result = _result(case, db, files, run)
    if strict:
        hold_to(result)
    return result


def hold_to(result: IngestResult) -> None:
    """Raise :class:`GateFailed` where a record or file could not be read."""
    if not result.clean:
        raise GateFailed(
            "--strict: some records or files could not be read",
            f"analyze --db {result.db} status names them",
        )


def _read_all(
    case: Case, jobs: list[Job], options: Options, run: _Run, progress: Progress | None
) -> list[FileRead]:
    """Dated sources first: they tell the year of logs that lack one."""
    reads: dict[int, FileRead] = {}
    sources: dict[int, int] = {}
    undated = [job.reader is not None and job.reader.undated for job in jobs]
    order = sorted(range(len(jobs)), key=undated.__getitem__)
    total = sum(job.file.size for job in jobs)
    done = 0
    today = int(datetime.now(tz=UTC).timestamp()) * 1_000_000_000
    for i in order:
        job = jobs[i]
        if job.reader is None:
            outcome = "failed" if job.unreadable else "unrecognised"
            reads[i] = FileRead(job.file.name, outcome, why=job.why)
        else:
            reference = case.reference_ns() if job.reader.undated else None
            fitted = dataclasses.replace(
                options, reference_ns=reference, today_ns=today,
                mapping=options.mapping if job.mapped else None,
            )  # fmt: skip
            start = done

            def tick(position: int, name: str = job.file.name, before: int = start) -> None:
                if progress is not None:
                    progress(name, before + position, total)

            before = len(run)
            reads[i] = _read_one(case, job, job.reader, fitted, run, tick)
            if len(run) > before:
                sources[next(reversed(run))] = i
        done += job.file.size
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


def _redate(case: Case, run: _Run) -> None:
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
    case: Case, job: Job, reader: Reader, options: Options, run: _Run, tick: Callable[[int], None]
) -> FileRead:
    try:
        return _store_one(case, job.file, reader, options, run, tick)
    except AnalyzerError as error:
        why = f"{error.message}; {error.hint}" if error.hint else error.message
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
    except Exception as error:  # one broken reader must not lose the other files
        why = f"reader {reader.name} failed: {type(error).__name__}: {error}"
    return FileRead(job.file.name, "failed", reader.name, why=why)


def _store_one(
    case: Case,
    file: InputFile,
    reader: Reader,
    options: Options,
    run: _Run,
    tick: Callable[[int], None],
) -> FileRead:
    known = [one for one in case.known_sources() if one.bytes and one.reader == reader.name]
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
    with case.file(row, grown) as writer:
        for batch in reader.read(file, options):
            writer.append(batch)
            tick(file.position)
        if file.cut:
            lost = writer.account()["records"] + 1
            writer.append(Batch(records=1, problems=(Problem(lost, file.cut),)))
    run[writer.source_id] = grown.resume.records if grown and grown.resume else 0
    first, last = writer.span
    account = writer.account()
    return FileRead(
        file.name, outcome, reader.name, reader.record_unit, account["records"],
        account["used"], account["ignored"], account["problems"], writer.rows, first, last, size,
        in_part=_in_part(case, writer.source_id) if account["problems"] and writer.rows else 0,
    )  # fmt: skip


def _in_part(case: Case, source_id: int) -> int:
    """Records with a problem that gave a request all the same."""
    ((count,),) = case.run(
        "SELECT count(DISTINCT p.record) FROM problem AS p JOIN request AS r "
        "ON p.source_id = r.source_id AND p.record = r.record WHERE p.source_id = ?",
        [source_id],
    )
    return int(count)


def _grown_from(
    known: list[KnownSource], prefixes: dict[int, str], size: int
) -> KnownSource | None:
    """The longest source of the same reader that this file begins with."""
    shorter = [one for one in known if one.bytes < size and prefixes.get(one.bytes) == one.sha256]
    return max(shorter, key=lambda one: one.bytes, default=None)


# -- finding files ------------------------------------------------------------------------------


def _members(files: Iterator[InputFile], stack: ExitStack) -> Iterator[Found]:
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


def _discover(paths: Sequence[str], besides: str | None, stack: ExitStack) -> Iterator[InputFile]:
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
            if path.resolve() not in seen:
                seen.add(path.resolve())
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


def _existing(given: str) -> Path:
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


def _job(found: Found, forced: str | None, plan: Plan | None, usual: Usual) -> Job:
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


def _check_zone(zone: str) -> None:
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise AnalyzerError(
            f"--zone {zone}: no such time zone", "use a name such as Europe/Berlin or UTC"
        ) from None


# -- the account --------------------------------------------------------------------------------


def _nothing_fits(plan: Plan, jobs: list[Job]) -> str:
    lines = [f"{plan.name} fits none of the {len(jobs)} files"]
    lines += [f"  {job.why}" for job in jobs[:_SHOWN_PROBLEMS]]
    return "\n".join(lines)


def _nothing_recognised(jobs: list[Job], paths: Sequence[str]) -> str:
    if not jobs:
        return f"there is no file to read in {', '.join(paths)}"
    lines = [f"none of the {len(jobs)} files looks like a log this version knows"]
    lines += [f"  {job.file.name}: {job.why}" for job in jobs[:_SHOWN_PROBLEMS]]
    if len(jobs) > _SHOWN_PROBLEMS:
        lines.append(f"  … and {len(jobs) - _SHOWN_PROBLEMS} more")
    return "\n".join(lines)


def _nothing_read(files: list[FileRead]) -> str:
    reasons = [f"  {file.path}: {file.why}" for file in files[:_SHOWN_PROBLEMS]]
    return "\n".join(["nothing could be read", *reasons])


def _result(case: Case, db: str, files: list[FileRead], run: _Run) -> IngestResult:
    """The account of this run; problems and assumptions of earlier ones are told by ``status``."""
    told = ", ".join(f"({source}, {before})" for source, before in sorted(run.items()))
    names = ("path", "record", "reason", "excerpt")
    shown: tuple[dict[str, str], ...] = ()
    assumed: tuple[tuple[str, str], ...] = ()
    if told:
        with_run = f"WITH run (source_id, before) AS (VALUES {told})"
        problems = case.run(
            f"{with_run} SELECT {', '.join(names)} FROM problem JOIN source USING (source_id) "
            "JOIN run USING (source_id) WHERE record > before ORDER BY source_id, record LIMIT ?",
            [_SHOWN_PROBLEMS],
        )
        shown = tuple(dict(zip(names, row, strict=True)) for row in problems)
        notes = case.run(
            f"{with_run} SELECT path, note FROM source_note JOIN source USING (source_id) "
            "JOIN run USING (source_id) WHERE kind = 'assumed' ORDER BY source_id, note"
        )
        assumed = tuple((path, note) for path, note in notes)
    ((requests,),) = case.run("SELECT count(*) FROM request")
    lost = any(file.nothing for file in files) and not any(file.rows for file in files)
    command = "findings" if requests and not lost else "status"
    option = "" if db == "analyze.duckdb" else f"--db {db} "
    return IngestResult(db, tuple(files), shown, assumed, f"analyze {option}{command}")
