"""Dates that other sources of a case give to logs that lack them: a year, or a start."""

from __future__ import annotations

from itertools import takewhile

from analyzer.store.case import YEAR_ASSUMED, Case

UNDATED = "count from the start of the run"
"""What a reader notes of a log without a date, and what is replaced once it has one."""

_ENDS = "/~!"
"""What parts the name of a run from its files: folders, archives, and names written flat."""


def guessed_years(case: Case) -> list[tuple[int, int]]:
    """Source and first time of every log whose year nothing in the case supports yet."""
    rows = case.run(
        "SELECT source_id, first_ns FROM source WHERE first_ns IS NOT NULL AND source_id IN "
        "(SELECT source_id FROM source_note WHERE note LIKE ?) ORDER BY source_id",
        [f"%{YEAR_ASSUMED}%"],
    )
    return [(source_id, first_ns) for source_id, first_ns in rows]


def move_times(case: Case, source_id: int, by_ns: int, note: str) -> None:
    """Shift every time of a source: dated logs that came later show another year."""
    case.run("BEGIN TRANSACTION")
    for table in ("engine_sample", "engine_step", "engine_event"):
        case.run(
            f"UPDATE {table} SET time_ns = time_ns + ? WHERE source_id = ?", [by_ns, source_id]
        )
    # The reader's own memory of the year is in resume: a longer file is then read anew.
    case.run(
        "UPDATE source SET first_ns = first_ns + ?, last_ns = last_ns + ?, resume = NULL "
        "WHERE source_id = ?",
        [by_ns, by_ns, source_id],
    )
    _replace_note(case, source_id, YEAR_ASSUMED, note)
    case.run("COMMIT")


def date_runs(case: Case) -> list[int]:
    """Lay samples that count from the start of a run beside the requests of the same run.

    The first of those requests is taken as the start. Gives the sources that now have dates.
    """
    undated = case.run(
        "SELECT source_id, path FROM source WHERE source_id IN "
        "(SELECT source_id FROM engine_sample WHERE clock = 'relative') ORDER BY source_id"
    )
    if not undated:
        return []
    starts = case.run(
        "SELECT s.path, min(r.start_ns) FROM request AS r "
        "JOIN source AS s ON r.source_id = s.source_id "
        "WHERE r.start_ns IS NOT NULL AND coalesce(r.clock, 'wall') = 'wall' GROUP BY s.path"
    )
    dated: dict[str, int] = dict(starts)
    done = []
    for source_id, path in undated:
        beside = sibling(path, list(dated))
        if beside is not None:
            _date(case, source_id, dated[beside], beside)
            done.append(source_id)
    return done


def sibling(path: str, others: list[str]) -> str | None:
    """The one file of the same run: same folder, or same name up to the part that tells them apart.

    None where there is none, or several are as near.
    """
    near: dict[int, list[str]] = {}
    for other in others:
        alike = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(path, other, strict=False))
        )
        shared = path[:alike]
        length = max((shared.rfind(end) for end in _ENDS), default=-1) + 1
        rest = (path[length:], other[length:])
        if not any(end in part for part in rest for end in _ENDS):
            near.setdefault(length, []).append(other)
    best = near[max(near)] if near else []
    return best[0] if len(best) == 1 else None


def _date(case: Case, source_id: int, start_ns: int, beside: str) -> None:
    case.run("BEGIN TRANSACTION")
    case.run(
        "UPDATE engine_sample SET time_ns = time_ns + ?, clock = 'wall' "
        "WHERE source_id = ? AND clock = 'relative'",
        [start_ns, source_id],
    )
    # A longer file is read anew: what is added to this one would have no date.
    case.run(
        "UPDATE source SET resume = NULL, "
        "first_ns = (SELECT min(time_ns) FROM engine_sample WHERE source_id = ?), "
        "last_ns = (SELECT max(time_ns) FROM engine_sample WHERE source_id = ?) "
        "WHERE source_id = ?",
        [source_id, source_id, source_id],
    )
    name = beside.rsplit("/", 1)[-1]
    note = (
        "its times count from the start of the run: the first request of "
        f"{name}, which lies beside it, was taken as the start"
    )
    _replace_note(case, source_id, UNDATED, note)
    case.run("COMMIT")


def _replace_note(case: Case, source_id: int, marker: str, note: str) -> None:
    case.run(
        "UPDATE source_note SET note = ? WHERE source_id = ? AND note LIKE ?",
        [note, source_id, f"%{marker}%"],
    )
