"""A report as one HTML file that needs neither a network nor a script."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from analyzer.report import json, words
from analyzer.report.blocks import Grid, grid, grid_of
from analyzer.report.charts import COLOURS, colour, segments_svg
from analyzer.report.values import (
    TIME_KEYS,
    count,
    duration,
    moment,
    percent,
    plural,
    quantity,
    safe_text,
    window,
)

if TYPE_CHECKING:
    from analyzer.contract.types import CannotSay, Finding, Findings, Report, Series

_WIDE, _NARROW = 900, 356
"""Pixels of the two pictures; the page shows the one that keeps its letters readable."""

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ")
_PARTS = tuple(f"{name}_ns" for name in COLOURS)


def render(report: Report) -> str:
    """Whole report as HTML; the same report gives the same bytes."""
    found = words.by_severity(report.findings.found)
    findings = [_finding(number, item) for number, item in enumerate(found, 1)]
    page = _environment().get_template("report.html")
    return page.render(
        report=report,
        facts=_facts(report),
        badges=_badges(report.findings),
        ran=bool(found or report.findings.clear or report.findings.cannot_say),
        findings=findings,
        # Notes ask for nothing tonight; their actions stand with them.
        actions=[
            step for item in findings for step in item["actions"] if step["severity"] != "note"
        ],
        timeline=_timeline(report.timeline, found),
        slowest=_slowest(report.slowest),
        segments=grid(report.segments),
        unchecked=[_unchecked(item) for item in report.findings.cannot_say],
        sources=grid(report.sources),
        data=Markup(json.embedded(report)),  # noqa: S704 - escaped there for a data block
    )


@cache
def _environment() -> Environment:
    env = Environment(
        loader=PackageLoader("analyzer.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    env.filters.update(count=count, percent=percent, plural=plural, unbroken=_unbroken)
    return env


def _shown(value: Any) -> Any:  # noqa: ANN401 - whatever a template prints
    """Take controls and direction overrides out of every text before it is escaped."""
    plain = isinstance(value, str) and not isinstance(value, Markup)
    return safe_text(value, lines=True) if plain else value


def _unbroken(text: str) -> str:
    """Let a time break between date and clock only, so that narrow columns stay readable."""
    if not _MOMENT.fullmatch(text):
        return text
    return Markup('<span class="nb">{}</span> <span class="nb">{}</span>').format(*text.split())


def _facts(report: Report) -> list[tuple[str, str]]:
    facts = [("Window", f"{window(report.window)} (UTC)" if report.window else "no times told")]
    if report.window:
        facts.append(("Length", duration(report.window[1] - report.window[0])))
    return [*facts, ("Requests", count(report.requests))]


def _badges(findings: Findings) -> list[tuple[str, str]]:
    worst = next((item.severity for item in words.by_severity(findings.found)), "none")
    return [
        (f"found {worst}", f"{len(findings.found):,} found"),
        ("clear" if findings.clear else "clear none", f"{len(findings.clear):,} clear"),
        ("unsaid", f"{len(findings.cannot_say):,} cannot say"),
    ]


def _finding(number: int, value: Finding) -> dict[str, Any]:
    done = [
        {"text": words.criterion(item), "command": words.sql_command(item.sql) if item.sql else ""}
        for item in value.done_when
    ]
    anchor = f"finding-{number}"
    steps = [
        {
            "do": item.do,
            "owner": item.owner,
            "expect": item.expect,
            "done": [criterion["text"] for criterion in done],
            "anchor": anchor,
            "title": value.title,
            "severity": value.severity,
        }
        for item in value.actions
    ]
    return {
        "anchor": anchor,
        "number": number,
        "value": value,
        "facts": [
            text
            for text in (words.size_of(value), words.place_of(value), words.grade_of(value))
            if text
        ],
        "evidence": [
            {"label": item.label, "value": quantity(item.value, item.unit), "sql": item.sql.strip()}
            for item in value.evidence
        ],
        "actions": steps,
        "done": done,
    }


def _unchecked(value: CannotSay) -> dict[str, Any]:
    return {
        "rule": value.rule,
        "title": value.title,
        "coverage": percent(value.coverage),
        "missing": value.missing,
    }


# --- pictures ------------------------------------------------------------------------------------


def _timeline(series: Series, found: list[Finding]) -> dict[str, Any]:
    windows = [(str(number), *item.window) for number, item in enumerate(found, 1) if item.window]
    groups = _groups(series)
    group = series.group or ""
    drawn = {str(row.get(group)) for row in series.rows if row.get(series.y)}
    return {
        "title": series.title,
        # The converter escapes what it draws; the page must not do so again.
        "wide": Markup(segments_svg(series, width=_WIDE, windows=windows)),  # noqa: S704
        "narrow": Markup(segments_svg(series, width=_NARROW, windows=windows)),  # noqa: S704
        "legend": [(name, colour(name)) for name in groups if name in drawn],
        "bands": bool(windows),
        "table": _pivot(series, groups),
    }


def _groups(series: Series) -> list[str]:
    if series.group is None:
        return []
    told = {str(row.get(series.group)) for row in series.rows}
    known = [name for name in COLOURS if name in told]
    return known + sorted(told - set(known))


def _pivot(series: Series, groups: list[str]) -> Grid:
    """Picture's numbers: a row a time, a column a segment."""
    if series.group is None:
        return grid_of(series.rows)
    told: dict[Any, dict[str, Any]] = {}
    for row in series.rows:
        told.setdefault(row[series.x], {})[str(row.get(series.group))] = row.get(series.y)
    at = moment if series.x in TIME_KEYS else str
    return Grid(
        header=("from", *groups),
        rows=tuple(
            (at(x), *(quantity(values.get(name), series.unit) for name in groups))
            for x, values in sorted(told.items())
        ),
        right=(False, *(True for _ in groups)),
        keep=(True, *(True for _ in groups)),
    )


def _slowest(rows: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    longest = max((_whole(row) for row in rows), default=0)
    used = [key for key in _PARTS if any(row.get(key) for row in rows)]
    return {
        "rows": [_waterfall(row, longest) for row in rows],
        "legend": [(_name(key), colour(_name(key))) for key in used],
        "table": grid_of(rows),
    }


def _name(key: str) -> str:
    return key.removesuffix("_ns")


def _whole(row: dict[str, Any]) -> int:
    return int(row.get("e2e_ns") or sum(int(row.get(key) or 0) for key in _PARTS))


def _waterfall(row: dict[str, Any], longest: int) -> dict[str, Any]:
    told = [(_name(key), int(row[key])) for key in _PARTS if (row.get(key) or 0) > 0]
    return {
        "id": str(row.get("id", "-")),
        "start": moment(row.get("start_ns")),
        "e2e": duration(row.get("e2e_ns")),
        "text": ", ".join(f"{name} {duration(size)}" for name, size in told) or "no segments told",
        "parts": [
            {
                "name": name,
                "colour": colour(name),
                "share": f"{100 * size / max(longest, 1):.2f}",
                "size": duration(size),
            }
            for name, size in told
        ],
    }
