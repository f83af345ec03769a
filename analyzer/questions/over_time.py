"""The report's lanes as one table: load, waits, tokens, cache and errors by bin of time."""

from __future__ import annotations

from typing import Any

from analyzer.contract.types import Lane, Table
from analyzer.engines.duckdb import Engine
from analyzer.questions import timeline
from analyzer.questions._runs import runs_apart, told


def over_time(engine: Engine) -> Table:
    """One row a lane, line and bin; ``incident`` marks the bins of the window that stands out."""
    span = timeline.window_of(engine)
    if span is None:
        return Table("analyze.timeline", ())
    bin_ns = timeline.width_ns(span)
    found = timeline.standout(engine, bin_ns)
    requests = engine.value("SELECT count(*) FROM resolve_request WHERE start_ns IS NOT NULL")
    lanes = list(timeline.lanes(engine, bin_ns))
    waits = _queue(engine, bin_ns)
    if waits.rows:
        lanes.insert(1, waits)
    window = found.window if found else (0, 0)
    rows = tuple(
        {
            "lane": lane.name,
            "line": row["group"],
            "unit": lane.unit,
            "start_ns": row["start_ns"],
            "width_ns": lane.bin_ns,
            "value": row["value"],
            "incident": window[0] <= row["start_ns"] < window[1],
        }
        for lane in lanes
        for row in lane.rows
    )
    why = timeline.no_window(int(requests))
    if found:
        why = f"The incident is the window in which {found.name} stands out most."
    apart = told(runs_apart(engine, span))
    return Table("analyze.timeline", rows, (why, *apart) if requests else apart)


def _queue(engine: Engine, bin_ns: int) -> Lane:
    bin_of = f"r.start_ns - r.start_ns % {bin_ns}"
    rows = engine.rows(
        f"""SELECT {bin_of} AS start_ns,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY m.value_ns) AS p50,
  percentile_cont(0.95) WITHIN GROUP (ORDER BY m.value_ns) AS p95
FROM latency_metric AS m JOIN resolve_request AS r ON m.request_key = r.request_key
WHERE m.metric = 'queue' AND m.value_ns IS NOT NULL AND r.start_ns IS NOT NULL
GROUP BY {bin_of} ORDER BY start_ns"""
    )
    points: list[dict[str, Any]] = [
        {"start_ns": row["start_ns"], "group": name, "value": row[name]}
        for row in rows
        for name in ("p50", "p95")
    ]
    return Lane("Queue wait", "ns", bin_ns, tuple(points))
