"""What a case holds, and what one ingest did to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analyzer.report import outcomes, words
from analyzer.report.blocks import Block, Facts, Grid, Heading, Items, Words, grid_of
from analyzer.report.values import NONE, cell, count, plural, window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from analyzer.contract.types import CannotSay, FileRead, IngestResult, Status, Table

    Row = dict[str, Any]
    Column = tuple[str, Callable[[Row], str], bool]
    """Heading, text of a row, and whether it is a number."""

_PROBLEMS_SHOWN = 10
_NAMED = 5
"""Known files named; more than that is a folder somebody knows."""
_ALIKE = 3
"""Unread files named for one reason."""


def status(value: Status) -> list[Block]:
    """Sources, coverage, problems, assumptions, and what is missing for the rest."""
    facts = (
        ("case", value.db),
        ("requests", count(value.requests)),
        ("window", window(value.window)),
    )
    out: list[Block] = [Facts(facts), Heading("sources")]
    out.append(_sources(value.sources) if value.sources.rows else Words("none"))
    out += [Words(note) for note in value.sources.notes]
    if value.engines.rows:
        out += [Heading("servers, at most"), grid_of(value.engines.rows)]
    out += [Heading("coverage"), grid_of(value.coverage.rows) if value.requests else Words("none")]
    out.append(Heading("problems"))
    out.append(grid_of(value.problems.rows) if value.problems.rows else Words("none"))
    return out + assumed(value.assumed) + _blind(value.cannot_say)


def _blind(values: tuple[CannotSay, ...]) -> list[Block]:
    """Inputs that checks lack, each once, with the checks that wait for it."""
    out: list[Block] = [Heading(f"cannot say: {plural(len(values), 'check')}")]
    if not values:
        return out
    lines = tuple(f"{name}: {how} ({', '.join(on)})" for name, how, on in outcomes.waiting(values))
    return [*out, Words(f"{words.NOT_CLEAR}. What would let them look:"), Items(lines)]


def assumed(pairs: tuple[tuple[str, str], ...]) -> list[Block]:
    """What the readers took for granted."""
    if not pairs:
        return []
    return [Heading("assumed"), Items(tuple(f"{source}: {note}" for source, note in pairs))]


# --- sources -------------------------------------------------------------------------------------


def _sources(table: Table) -> Grid:
    """Files with their account; hash and size where there is room."""
    rows = table.rows
    ignored = any(row.get("ignored") for row in rows)
    columns: list[Column] = [
        ("path", lambda row: cell("path", row.get("path")), False),
        ("reader", lambda row: cell("reader", row.get("reader")), False),
        ("records", _records, True),
        *([("ignored", lambda row: count(row.get("ignored")), True)] if ignored else []),
        ("problems", lambda row: count(row.get("problems")), True),
    ]
    first: Column = ("from", lambda row: cell("first_ns", row.get("first_ns")), False)
    last: Column = ("to", lambda row: cell("last_ns", row.get("last_ns")), False)
    grid = _grid(columns, rows)
    for wider in (columns, [*columns, first], [*columns, first, last]):
        grid = _whole(_grid(wider, rows), grid)
    return _whole(grid_of(rows), grid)


def _whole(grid: Grid, narrow: Grid) -> Grid:
    """Nothing of it is cut; where it does not fit, the narrow one takes its place."""
    return replace(grid, keep=tuple(True for _ in grid.header), narrow=narrow)


def _records(row: Row) -> str:
    if row.get("records") is None:
        return NONE
    return plural(int(row["records"]), str(row.get("record_unit") or "record"))


def _grid(columns: list[Column], rows: Iterable[Row]) -> Grid:
    return Grid(
        header=tuple(name for name, _, _ in columns),
        rows=tuple(tuple(text(row) for _, text, _ in columns) for row in rows),
        right=tuple(number for _, _, number in columns),
        keep=tuple(name != "path" for name, _, _ in columns),
    )


# --- ingest --------------------------------------------------------------------------------------


def ingested(value: IngestResult) -> list[Block]:
    """What this run read, what it could not, what it assumed, and what to run next."""
    known = [item for item in value.files if item.outcome == "known"]
    rest = [item for item in value.files if item.outcome != "known"]
    read = [item for item in rest if not item.why]
    out: list[Block] = [_files(read)] if read else []
    if known and rest:
        names = ", ".join(item.path for item in known[:_NAMED])
        more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
        out.append(Words(f"{plural(len(known), 'file')} known and unchanged: {names}{more}"))
    out += _unread([item for item in rest if item.why])
    for item in read:
        if item.records and item.used == item.problems == 0:
            nothing = f"{item.path}: recognised, but none of its records carries what we use"
            out.append(Words(f"{nothing} (analyze formats {item.reader})"))
        if item.nothing:
            every = "its only record is" if item.records == 1 else "each of its records is"
            out.append(
                Words(
                    f"{item.path}: nothing could be read, {every} a problem; mend what stands "
                    f"below (analyze formats {item.reader}), then ingest it again"
                )
            )
    # A file that has grown tells its whole account; what is new in it stands in the list.
    new = sum(item.problems for item in read if item.outcome != "grown")
    out += _problems(value, max(new, len(value.problems))) + assumed(value.assumed)
    out.append(Words(_summary(value, read, known, len(rest) - len(read))))
    return [*out, Words(f"Next: {value.next_command}")] if value.next_command else out


def _problems(value: IngestResult, total: int) -> list[Block]:
    if not total:
        return []
    shown = value.problems[:_PROBLEMS_SHOWN]
    out: list[Block] = [Heading(f"{plural(total, 'problem')}: {_how_bad(value, total)}")]
    out += [grid_of(shown)] if shown else []
    if total > len(shown):
        out.append(Words("All of them: analyze sql 'SELECT * FROM problem'"))
    return out


def _how_bad(value: IngestResult, total: int) -> str:
    """Whether anything of those records is in the case."""
    partly = sum(item.in_part for item in value.files)
    if not partly:
        return "records that could not be read"
    if partly >= total:
        return "records read in part; what is wrong in them is left out"
    return f"records that could not be read, {count(partly)} of them read in part"


def _summary(value: IngestResult, read: list[FileRead], known: list[FileRead], lost: int) -> str:
    unread = f"; {plural(lost, 'file')} not read" if lost else ""
    if not read:
        return f"{value.db}: nothing new, {plural(len(known), 'file')} known{unread}"
    rows = sum(item.rows for item in read)
    told = f"{value.db}: {plural(rows, 'row')} from {plural(len(read), 'file')}"
    first = [item.first_ns for item in read if item.first_ns is not None]
    last = [item.last_ns for item in read if item.last_ns is not None]
    if first and last:
        told += f", {window((min(first), max(last)))}"
    return told + unread


def _unread(files: list[FileRead]) -> list[Block]:
    """What was not read and why: many files for one reason are one line."""
    if not files:
        return []
    by_reason: dict[str, list[str]] = {}
    for item in files:
        by_reason.setdefault(item.why, []).append(item.path)
    lines = []
    for why, paths in by_reason.items():
        more = f" and {len(paths) - _ALIKE} more" if len(paths) > _ALIKE else ""
        lines.append(f"{', '.join(paths[:_ALIKE])}{more}: {why}")
    return [Heading("not read"), Items(tuple(lines))]


def _files(items: list[FileRead]) -> Grid:
    partly = any(item.in_part for item in items)
    columns: list[tuple[str, Callable[[FileRead], str]]] = [
        ("file", lambda item: cell("", item.path)),
        ("reader", _reader),
        ("records", lambda item: plural(item.records, item.record_unit)),
        ("used", lambda item: count(item.used)),
        *([("in part", lambda item: count(item.in_part))] if partly else []),
        ("ignored", lambda item: count(item.ignored)),
        ("not read" if partly else "problems", lambda item: count(item.problems - item.in_part)),
    ]
    return Grid(
        header=tuple(name for name, _ in columns),
        rows=tuple(tuple(text(item) for _, text in columns) for item in items),
        right=tuple(place > 1 for place in range(len(columns))),
        keep=tuple(place > 0 for place in range(len(columns))),
    )


def _reader(item: FileRead) -> str:
    if item.reader is None:
        return item.outcome
    return item.reader if item.outcome == "read" else f"{item.reader} ({item.outcome})"
