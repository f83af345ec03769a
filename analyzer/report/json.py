"""Values as JSON-able dicts in published envelopes: fixed key order, same bytes every time."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from functools import singledispatch
from typing import Any

from analyzer.contract.conversations import Conversations
from analyzer.contract.costs import Costs
from analyzer.contract.devices import Devices
from analyzer.contract.types import (
    CannotSay,
    Chart,
    Clear,
    Evidence,
    Explanation,
    Finding,
    Findings,
    Incident,
    IngestResult,
    Lane,
    Objectives,
    Report,
    RequestView,
    Series,
    Status,
    Table,
)
from analyzer.report.values import TIME_KEYS, rfc3339

VERSION = 1
_RAW_KINDS = frozenset({"analyze.sql"})
"""Rows whose columns the user named: they come out as asked for, times included."""

# A JSON string may hold these as they are, but a terminal or a script parser would act on them.
_ACTIVE = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def dumps(value: object) -> str:
    """``value`` in its envelope as text, with a newline at the end."""
    text = json.dumps(envelope(value), ensure_ascii=False, indent=2, allow_nan=False)
    return _ACTIVE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def embedded(value: object) -> str:
    """Give the same for a data block in HTML: no ``<`` is left that could end it."""
    return dumps(value).replace("<", "\\u003c").replace("&", "\\u0026").rstrip("\n")


def scalar(value: Any) -> Any:  # noqa: ANN401 - cells of foreign tables
    """Cell as JSON: floats to 9 digits (sums in parallel differ beyond), money as text."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return float(f"{value:.9g}") if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        return {str(key): scalar(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scalar(item) for item in value]
    return str(value)


def row(cells: dict[str, Any]) -> dict[str, Any]:
    """Row with its times as RFC 3339 (``first_ns`` becomes ``first_at``)."""
    out: dict[str, Any] = {}
    for key, value in cells.items():
        if key in TIME_KEYS:
            told = isinstance(value, int) and not isinstance(value, bool)
            out[key.removesuffix("_ns") + "_at"] = rfc3339(value) if told else scalar(value)
        elif key == "window" and isinstance(value, tuple | list):
            out[key] = window((value[0], value[1]))
        else:
            out[key] = scalar(value)
    return out


def window(pair: tuple[int, int] | None) -> dict[str, str] | None:
    """Half-open window."""
    return None if pair is None else {"from": rfc3339(pair[0]), "to": rfc3339(pair[1])}


def rows_of(table: Table) -> list[dict[str, Any]]:
    """Rows of a table as they are published."""
    if table.kind in _RAW_KINDS:
        return [scalar(cells) for cells in table.rows]
    return [row(cells) for cells in table.rows]


@singledispatch
def envelope(value: object) -> dict[str, Any]:
    """``{"kind", "version", ...}`` of any value a command prints."""
    msg = f"no JSON form for {type(value).__name__}"
    raise TypeError(msg)


def _enveloped(kind: str, **parts: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"kind": kind, "version": VERSION, **parts}


@envelope.register(Table)
def _table(value: Table) -> dict[str, Any]:
    notes = {"notes": list(value.notes)} if value.notes else {}
    return _enveloped(value.kind, rows=rows_of(value), **notes)


@envelope.register(Objectives)
def _objectives(value: Objectives) -> dict[str, Any]:
    return _table(value) | {"budget": [row(cells) for cells in value.budget]}


@envelope.register(Costs)
def _costs(value: Costs) -> dict[str, Any]:
    return _enveloped(value.rows.kind, **_cost(value))


def _cost(value: Costs) -> dict[str, Any]:
    """What was not asked for, or cannot be said, has no key."""
    out: dict[str, Any] = {
        "rows": rows_of(value.rows),
        "total": row(value.total),
        "waste": rows_of(value.waste),
        "notes": list(value.notes),
    }
    if value.bridge is not None:
        out |= {"bridge": rows_of(value.bridge), "bridge_notes": list(value.bridge.notes)}
        out |= row({"baseline_usd": value.baseline_usd, "window_usd": value.window_usd})
        sides = value.windows or (None, None)
        out |= {"baseline": window(sides[0]), "window": window(sides[1]), "by_day": value.by_day}
    if value.reconciliation is not None:
        out["reconciliation"] = row(value.reconciliation)
    if value.reconciled is not None:
        out["reconciled"] = rows_of(value.reconciled)
        out["reconciled_notes"] = list(value.reconciled.notes)
    if value.self_host is not None:
        (out["self_host"],) = rows_of(value.self_host)
        out["self_host_notes"] = list(value.self_host.notes)
    return out


@envelope.register(Devices)
def _devices(value: Devices) -> dict[str, Any]:
    return _enveloped(value.idle.kind, **_gpu(value))


def _gpu(value: Devices) -> dict[str, Any]:
    """Trust first; idle numbers that a trace cannot carry are null."""
    return {
        "trust": rows_of(value.trust),
        "notes": list(value.trust.notes),
        "rows": rows_of(value.idle),
        "classes": rows_of(value.classes),
        "phases": rows_of(value.phases),
        "ranks": rows_of(value.ranks),
        "bounds": [row(one) for one in value.bounds],
        "beside": row(value.beside),
        "unclassified": [row(one) for one in value.unclassified],
    }


@envelope.register(Findings)
def _findings(value: Findings) -> dict[str, Any]:
    return _enveloped("analyze.findings", verdict=value.verdict, **_outcomes(value, full=False))


def _outcomes(value: Findings, *, full: bool) -> dict[str, Any]:
    return {
        "findings": [finding(item, full=full) for item in value.found],
        "clear": [clear(item) for item in value.clear],
        "cannot_say": [cannot_say(item) for item in value.cannot_say],
    }


def finding(value: Finding, *, full: bool) -> dict[str, Any]:
    """Give a finding; ``full`` adds the play's words and the criteria's SQL."""
    size = value.magnitude
    out = {
        "rule": value.rule,
        "severity": value.severity,
        "segment": value.segment,
        "title": value.title,
        "requests": value.requests,
        "unit": value.unit,
        "magnitude": {"value": scalar(size.value), "unit": size.unit, "of": size.of},
        "share": scalar(value.share),
        "cost_usd": scalar(value.cost_usd),
        "confidence": value.confidence,
        "coverage": scalar(value.coverage),
        "where": value.where,
        "window": window(value.window),
        "evidence": [evidence(item) for item in value.evidence],
        "actions": [{"do": a.do, "owner": a.owner, "expect": a.expect} for a in value.actions],
        "done_when": [
            {"metric": c.metric, "op": c.op, "value": scalar(c.value), "unit": c.unit}
            | ({"sql": c.sql} if full else {})
            for c in value.done_when
        ],
        "examples": list(value.examples),
    }
    words = ("brief", "symptom", "cause", "contradicts", "how_computed", "record_it")
    return out | (
        {name: getattr(value, name) for name in words} | {"chart": chart(value.chart)}
        if full
        else {}
    )


def chart(value: Chart | None) -> dict[str, Any] | None:
    """What a finding's picture shows; its points come from the SQL."""
    if value is None:
        return None
    told = ("title", "x", "x_unit", "y", "y_unit", "points", "sql")
    return {name: getattr(value, name) for name in told}


def evidence(value: Evidence) -> dict[str, Any]:
    """One number and the SQL that gave it."""
    told = {"label": value.label, "value": scalar(value.value)}
    return told | {"unit": value.unit, "sql": value.sql}


def clear(value: Clear) -> dict[str, Any]:
    """Rule that looked and found nothing."""
    return {"rule": value.rule, "coverage": scalar(value.coverage)}


def cannot_say(value: CannotSay) -> dict[str, Any]:
    """Rule that could not look, and what it lacks."""
    missing = [{"input": item.input, "how": item.how} for item in value.missing]
    return {"rule": value.rule, "missing": missing, "coverage": scalar(value.coverage)}


def _assumed(pairs: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    return [{"source": source, "note": note} for source, note in pairs]


@envelope.register(IngestResult)
def _ingest(value: IngestResult) -> dict[str, Any]:
    return _enveloped(
        "analyze.ingest",
        db=value.db,
        rows=[row(vars(item)) for item in value.files],
        problems=[row(item) for item in value.problems],
        assumed=_assumed(value.assumed),
        next_command=value.next_command,
    )


@envelope.register(Status)
def _status(value: Status) -> dict[str, Any]:
    return _enveloped(
        "analyze.status",
        db=value.db,
        requests=value.requests,
        window=window(value.window),
        rows=rows_of(value.sources),
        coverage=rows_of(value.coverage),
        engines=rows_of(value.engines),
        problems=rows_of(value.problems),
        assumed=_assumed(value.assumed),
        cannot_say=[cannot_say(item) for item in value.cannot_say],
    )


@envelope.register(RequestView)
def _request(value: RequestView) -> dict[str, Any]:
    return _enveloped(
        "analyze.show",
        id=value.id,
        facts=dict(value.facts),
        e2e_ns=value.e2e_ns,
        ttft_ns=value.ttft_ns,
        rows=[row(item) for item in value.segments],
        bars=[
            {
                "vantage": bar.vantage,
                "label": bar.label,
                "offset_ns": bar.start_ns,
                "dur_ns": bar.dur_ns,
                "grade": bar.grade,
                "segment": bar.segment,
            }
            for bar in value.bars
        ],
        tokens=dict(value.tokens),
        cost=row(dict(value.cost)),
        records=[row(item) for item in value.records],
        notes=list(value.notes),
        **({"lines": [row(item) for item in value.lines]} if value.lines else {}),
    )


@envelope.register(Explanation)
def _explanation(value: Explanation) -> dict[str, Any]:
    if isinstance(value.outcome, Finding):
        told = {"outcome": "found", "finding": finding(value.outcome, full=True)}
    elif isinstance(value.outcome, Clear):
        told = {"outcome": "clear", "clear": clear(value.outcome)}
    else:
        told = {"outcome": "cannot say", "cannot_say": cannot_say(value.outcome)}
    return _enveloped(
        "analyze.explain",
        rule=value.rule,
        title=value.title,
        **told,
        others=[finding(item, full=False) for item in value.others],
        claims=value.claims,
        fires_when=value.fires_when,
    )


@envelope.register(Report)
def _report(value: Report) -> dict[str, Any]:
    return _enveloped(
        "analyze.report",
        title=value.title,
        verdict=value.verdict,
        window=window(value.window),
        requests=value.requests,
        **_outcomes(value.findings, full=True),
        segments=rows_of(value.segments),
        timeline=_series(value.timeline),
        slowest=[row(item) for item in value.slowest],
        sources=rows_of(value.sources),
        notes=list(value.notes),
        incident=_incident(value.incident),
        marks=[{"at": rfc3339(mark.time_ns), "text": mark.text} for mark in value.marks],
        lanes=[_lane(lane) for lane in value.lanes],
        requests_shown=[_request(view) for view in value.waterfalls],
        law=rows_of(value.law) if value.law else None,
        law_charts=[chart(item) for item in value.law_charts],
        hardware=rows_of(value.hardware) if value.hardware else None,
        hardware_charts=[chart(item) for item in value.hardware_charts],
        objectives=_kept(value.objectives),
        turns=_turns(value.turns),
        cost=_cost(value.costs) if value.costs else None,
        gpu=_gpu(value.gpu) if value.gpu else None,
        tool_version=value.version,
    )


def _turns(value: Conversations | None) -> dict[str, Any] | None:
    if value is None:
        return None
    return {
        "sessions": rows_of(value.sessions),
        "reasons": rows_of(value.reasons),
        "notes": list(value.sessions.notes),
        "growth": chart(value.growth) if value.growth else None,
        "session": value.session,
        "cache": [row(item) for item in value.stack],
    }


def _kept(value: Objectives | None) -> dict[str, Any] | None:
    if value is None:
        return None
    lane = _lane(value.lane) if value.lane else None
    return {
        "rows": rows_of(value),
        "notes": list(value.notes),
        "budget": [row(cells) for cells in value.budget],
        "lane": lane,
    }


def _incident(value: Incident | None) -> dict[str, Any] | None:
    if value is None:
        return None
    return {
        "window": window(value.window),
        "why": value.why,
        "changes": rows_of(value.changes),
        "notes": list(value.changes.notes),
    }


def _lane(value: Lane) -> dict[str, Any]:
    return {
        "name": value.name,
        "unit": value.unit,
        "bin_ns": value.bin_ns,
        "rows": [row(item) for item in value.rows],
    }


def _series(value: Series) -> dict[str, Any]:
    return {
        "title": value.title,
        "x": value.x.removesuffix("_ns") + "_at" if value.x in TIME_KEYS else value.x,
        "y": value.y,
        "unit": value.unit,
        "group": value.group,
        "rows": [row(item) for item in value.rows],
    }
