"""A report cut to what a page can show: one id of a megabyte must not make the page one."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from analyzer.contract.types import Table
from analyzer.report.values import plural

if TYPE_CHECKING:
    from analyzer.contract.types import Report

NAME = 120
"""Characters shown of an id, a path, or any other name from a log."""

_SQL, _PROSE, _TITLE = 4_000, 1_500, 300
_LENGTHS = (
    {"sql": _SQL}
    | dict.fromkeys(("title", "label", "of", "text", "metric"), _TITLE)
    | dict.fromkeys(
        (
            *(
                "verdict",
                "split",
                "brief",
                "symptom",
                "cause",
                "contradicts",
                "how_computed",
                "record_it",
            ),
            *("why", "do", "expect", "how", "notes"),
        ),
        _PROSE,
    )
)
_ROWS = 300
_FINDINGS = 100
_NOTES = 100


_SHORTEST = 40


def capped(report: Report, tighter: int = 1) -> Report:
    """Cut names, prose and lists that are too long for a page; what is cut says so.

    ``tighter`` divides every limit, for a report that is all excess.
    """
    found, notes = report.findings.found, report.notes
    more = []
    most = _FINDINGS // tighter
    if len(found) > most:
        rest = plural(len(found) - most, "further finding")
        more.append(f"{rest} not shown here: analyze findings lists all")
    if len(notes) > _NOTES:
        more.append(f"{plural(len(notes) - _NOTES, 'further note')}: analyze status lists all")
    short = replace(
        report,
        findings=replace(report.findings, found=found[:most]),
        notes=(*notes[:_NOTES], *more),
    )
    out: Report = _cut(short, NAME, tighter)
    return out


def _cut(value: Any, length: int, tighter: int) -> Any:  # noqa: ANN401 - any part of a report
    if isinstance(value, str):
        most = max(_SHORTEST, length // tighter)
        return value if len(value) <= most else value[: most - 1] + "…"
    if isinstance(value, dict):
        return {_cut(key, NAME, tighter): _cut(item, NAME, tighter) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_cut(item, length, tighter) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {
            field.name: _cut(getattr(value, field.name), _LENGTHS.get(field.name, NAME), tighter)
            for field in fields(value)
        }
        whole = replace(value, **parts)
        return _fewer(whole, _ROWS // tighter) if isinstance(whole, Table) else whole
    return value


def _fewer(table: Table, most: int) -> Table:
    rest = len(table.rows) - most
    if rest <= 0:
        return table
    note = f"{plural(rest, 'further row')} not shown here; analyze status and sql show all"
    return replace(table, rows=table.rows[:most], notes=(*table.notes, note))
