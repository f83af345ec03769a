"""What an ingest tells of itself: what was read, what was not, and why."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.contract.types import FileRead, IngestResult
from analyzer.intake._discover import Job
from analyzer.readers._mapping import Plan
from analyzer.store.case import Case

_SHOWN_PROBLEMS = 5
Run = dict[int, int]
"""Sources this run wrote: id -> records that an earlier run had read of it."""


def nothing_fits(plan: Plan, jobs: list[Job]) -> str:
    """No file has what the mapping needs."""
    lines = [f"{plan.name} fits {_none_of(jobs)}"]
    lines += [f"  {job.why}" for job in jobs[:_SHOWN_PROBLEMS]]
    return "\n".join(lines)


def nothing_recognised(jobs: list[Job], paths: Sequence[str]) -> str:
    """No reader knows any of the files."""
    if not jobs:
        return f"there is no file to read in {', '.join(paths)}"
    lines = [f"{_none_of(jobs)} looks like a log this version knows"]
    lines += [f"  {job.file.name}: {job.why}" for job in jobs[:_SHOWN_PROBLEMS]]
    if len(jobs) > _SHOWN_PROBLEMS:
        lines.append(f"  … and {len(jobs) - _SHOWN_PROBLEMS} more")
    return "\n".join(lines)


def _none_of(jobs: list[Job]) -> str:
    return "no file" if len(jobs) == 1 else f"none of the {len(jobs)} files"


def nothing_read(files: list[FileRead]) -> str:
    """Every file failed."""
    reasons = [f"  {file.path}: {file.why}" for file in files[:_SHOWN_PROBLEMS]]
    return "\n".join(["nothing could be read", *reasons])


def result_of(case: Case, db: str, files: list[FileRead], run: Run) -> IngestResult:
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
