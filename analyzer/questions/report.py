"""Everything the incident report shows, aggregated in SQL before it leaves the case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from analyzer.contract.types import Findings, Incident, Report, Series
from analyzer.engines.duckdb import Engine
from analyzer.questions import cost_asked, hardware, timeline
from analyzer.questions import law as laws
from analyzer.questions._runs import runs_apart, told
from analyzer.questions.compare import changes
from analyzer.questions.gpu_drawn import drawn as devices
from analyzer.questions.latency import by_metric, slowest
from analyzer.questions.objective import objectives
from analyzer.questions.request import view_of
from analyzer.questions.status import sources
from analyzer.questions.turns_drawn import conversations

_SLOWEST = 10
_WATERFALLS = 5
_REQUESTS = """SELECT
  coalesce(nullif(count(*) FILTER (WHERE coalesce(b.is_logged, TRUE)), 0), count(*))
FROM resolve_request AS r LEFT JOIN resolve_on_bill AS b ON r.request_key = b.request_key"""
"""A provider's record that bills a logged call is no second one."""


def build(
    engine: Engine,
    findings: Findings,
    title: str | None,
    version: str,
    say: Callable[[Any, str], str],
    *,
    window_given: bool = False,
    slo: Sequence[str] = (),
    filtered: bool = False,
) -> Report:
    """The report of one case under its filters; its times come from the data."""
    window = timeline.window_of(engine)
    assumed = engine.rows(
        "SELECT s.path, n.note FROM source_note AS n JOIN source AS s ON n.source_id = s.source_id "
        "WHERE n.kind = 'assumed' ORDER BY s.source_id, n.note"
    )
    bin_ns = timeline.width_ns(window) if window else 1
    # A window that the user gives is the incident; nothing is left to hold it against.
    incident = None if window_given or not window else _incident(engine, bin_ns, say)
    binned = tuple(timeline.segments(engine, bin_ns)) if window else ()
    title_of = "Mean time per request by segment"
    worst = engine.rows(
        "SELECT request_key FROM latency_metric WHERE metric = 'e2e' AND value_ns IS NOT NULL "
        f"ORDER BY value_ns DESC, request_key LIMIT {_WATERFALLS}"
    )
    bounded = engine.value("SELECT count(*) FROM hardware_decode WHERE strict_ns IS NOT NULL")
    return Report(
        title=title or ("Incident report" if window_given or incident else "Report"),
        verdict=findings.verdict,
        window=window,
        requests=int(engine.value(_REQUESTS) or 0),
        findings=findings,
        segments=by_metric(engine, ()),
        timeline=Series(title_of, "start_ns", "mean_ns", "ns", "segment", binned),
        slowest=slowest(engine, _SLOWEST).rows,
        sources=sources(engine),
        notes=told(runs_apart(engine, window))
        + tuple(f"{row['path']}: {row['note']}" for row in assumed),
        version=version,
        lanes=timeline.lanes(engine, bin_ns) if window else (),
        incident=incident,
        waterfalls=tuple(view_of(engine, row["request_key"]) for row in worst),
        hardware=hardware.observed(engine) if bounded else None,
        hardware_charts=hardware.charts(engine) if bounded else (),
        law=laws.held(engine),
        law_charts=laws.charts(engine),
        objectives=objectives(engine, slo, drawn=True) if slo else None,
        turns=conversations(engine),
        costs=cost_asked.reported(engine, filtered=filtered),
        gpu=devices(engine),
    )


def _incident(engine: Engine, bin_ns: int, say: Callable[[Any, str], str]) -> Incident | None:
    found = timeline.standout(engine, bin_ns)
    if found is None:
        return None
    unit = timeline.UNITS.get(found.metric, "ns")
    why = (
        f"{found.was} {say(found.inside, unit)} on average in it and "
        f"{say(found.outside, unit)} in the rest of the case: of all windows and metrics the "
        "clearest difference"
    )
    return Incident(found.window, why, changes(engine, found.window))
