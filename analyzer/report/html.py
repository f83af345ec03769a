"""A report as one HTML file that needs neither a network nor a script."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from analyzer.report import json, words
from analyzer.report.blocks import grid
from analyzer.report.cap import capped
from analyzer.report.conversations import conversations
from analyzer.report.costs_page import section as cost_section
from analyzer.report.gpu_page import section as gpu_section
from analyzer.report.latencies import without_unused
from analyzer.report.law import linear_law
from analyzer.report.sections import (
    against_hardware,
    incident,
    kept,
    over_time,
    picture,
    raw_window,
    slowest,
)
from analyzer.report.values import (
    count,
    duration,
    percent,
    plural,
    quantity,
    raw,
    safe_text,
    window,
)

if TYPE_CHECKING:
    from analyzer.contract.types import CannotSay, Clear, Finding, Findings, Missing, Report

_LARGEST = 2_800_000
"""Characters of a page that still opens at once on a phone, and passes as an attachment."""

_PICTURES = 12
"""Findings with a picture; whoever has more reads their numbers."""

_NEXT = 3
"""Inputs named as the next step; the section of what could not be checked has all."""

_QUANTITY = re.compile(r"(?<=\d) (?=(?:ns|us|ms|s|min|h|%)\b|%)")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ")


def render(report: Report) -> str:
    """Whole report as HTML; the same report gives the same bytes."""
    page = _page(report, capped(report))
    for tighter in (2, 4, 8):
        if len(page) <= _LARGEST:
            break
        page = _page(report, capped(report, tighter))
    return page


def _page(report: Report, shown: Report) -> str:
    found = words.by_severity(shown.findings.found)
    findings = [_finding(number, item, shown.requests) for number, item in enumerate(found, 1)]
    return (
        _environment()
        .get_template("report.html")
        .render(
            report=shown,
            facts=_facts(report),
            badges=_badges(report.findings),
            ran=bool(found or shown.findings.clear or shown.findings.cannot_say),
            findings=findings,
            # Notes ask for nothing tonight; their actions stand with them.
            actions=[
                item for item in findings if item["actions"] and item["value"].severity != "note"
            ],
            unknown=_unknown(shown),
            timeline=over_time(shown, found),
            incident=incident(shown.incident),
            objectives=kept(shown),
            slowest=slowest(shown),
            turns=conversations(shown),
            cost=cost_section(shown),
            gpu=gpu_section(shown),
            law=linear_law(shown),
            hardware=against_hardware(shown),
            segments=grid(without_unused(shown.segments)),
            unchecked=[_unchecked(item) for item in shown.findings.cannot_say],
            cleared=[_cleared(item) for item in shown.findings.clear],
            sources=grid(shown.sources),
            data=Markup(json.embedded(shown)),  # noqa: S704 - escaped there for a data block
            script=Markup(_script()),  # noqa: S704 - our own file
            script_hash=_hash_of(_script()),
        )
    )


@cache
def _script() -> str:
    return files("analyzer.report").joinpath("templates/report.js").read_text(encoding="utf-8")


def _hash_of(script: str) -> str:
    """What the page's policy allows to run: this script alone."""
    return f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}"


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
    env.filters.update(
        count=count, percent=percent, plural=plural, unbroken=_unbroken, units=_units
    )
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


def _units(text: str) -> str:
    """Let no line break between a number and its unit."""
    return _QUANTITY.sub("\N{NO-BREAK SPACE}", text)


def _facts(report: Report) -> list[tuple[str, str, str]]:
    """Name, text and raw value of what the header states."""
    requests = ("Requests", count(report.requests), raw(report.requests))
    if report.window is None:
        return [("Window", "no times told", ""), requests]
    length = report.window[1] - report.window[0]
    return [
        ("Window", f"{window(report.window)} (UTC)", raw_window(report.window)),
        ("Length", duration(length), raw(length, "ns")),
        requests,
    ]


def _badges(findings: Findings) -> list[tuple[str, str]]:
    worst = next((item.severity for item in words.by_severity(findings.found)), "none")
    return [
        (f"found {worst}", f"{len(findings.found):,} found"),
        ("clear" if findings.clear else "clear none", f"{len(findings.clear):,} clear"),
        ("unsaid", f"{len(findings.cannot_say):,} cannot say"),
    ]


def _finding(number: int, value: Finding, requests: int) -> dict[str, Any]:
    done = [
        {
            "text": words.criterion(item),
            "raw": raw(item.value, item.unit),
            "command": words.sql_command(item.sql) if item.sql else "",
        }
        for item in value.done_when
    ]
    return {
        "anchor": f"finding-{number}",
        "number": number,
        "value": value,
        "facts": _size(value),
        "chart": picture(value) if number <= _PICTURES else None,
        "evidence": [
            {
                "label": item.label,
                "value": quantity(item.value, item.unit),
                "raw": raw(item.value, item.unit),
                "sql": item.sql.strip(),
            }
            for item in words.answered(value.evidence)
        ],
        "actions": value.actions,
        "done": done,
        "counts": _counts(value, requests),
    }


def _unknown(report: Report) -> list[Missing]:
    """What to record first where something stands out that no finding explains."""
    if report.incident is None or any(one.severity != "note" for one in report.findings.found):
        return []
    lacking = dict.fromkeys(
        miss
        for item in report.findings.cannot_say
        if item.rule.split(".")[0] in {"queue", "prefill", "network", "decode"}
        for miss in item.missing
    )
    return list(lacking)[:_NEXT]


def _size(value: Finding) -> list[tuple[str, str]]:
    """Lines under a finding's title, each with its raw numbers."""
    size = value.magnitude
    known = (
        f"{value.requests} {value.unit}",
        raw(size.value, size.unit),
        f"share {raw(value.share)}",
    )
    lines = (
        (words.size_of(value), ", ".join(known)),
        (words.place_of(value), raw_window(value.window)),
        (words.grade_of(value), f"coverage {raw(value.coverage)}"),
    )
    return [(text, exact) for text, exact in lines if text]


def _counts(value: Finding, requests: int) -> list[tuple[str, str, str]]:
    """How many requests stand behind a finding: name, text, raw value."""
    return [
        (f"{value.unit.capitalize()} touched", count(value.requests), raw(value.requests)),
        ("Requests in this report", count(requests), raw(requests)),
        ("Inputs known for", f"{percent(value.coverage)} of those in scope", raw(value.coverage)),
        ("Known as", value.confidence, ""),
    ]


def _cleared(value: Clear) -> dict[str, str]:
    return {
        "rule": value.rule,
        "title": value.title,
        "coverage": percent(value.coverage),
        "raw": raw(value.coverage),
    }


def _unchecked(value: CannotSay) -> dict[str, Any]:
    return {
        "rule": value.rule,
        "title": value.title,
        "coverage": percent(value.coverage),
        "raw": raw(value.coverage),
        "missing": value.missing,
    }
