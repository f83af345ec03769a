"""Everything the incident report shows, aggregated in SQL before it leaves the case."""

from __future__ import annotations

from analyzer.contract.types import Findings, Report, Series
from analyzer.engines.duckdb import Engine
from analyzer.questions.latency import by_metric, slowest
from analyzer.questions.status import sources

_BINS = 60
_SLOWEST = 10
_WIDTHS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400,
    604_800,
)  # fmt: skip
_SEGMENTS = ("queue", "prefill", "decode", "network", "unattributed")


def build(engine: Engine, findings: Findings, title: str | None, version: str) -> Report:
    """The report of one case under its filters; its times come from the data."""
    span = engine.rows(
        "SELECT count(*) AS requests, min(r.start_ns) AS first_ns, "
        "max(r.start_ns + coalesce(s.e2e_ns, 0)) AS last_ns "
        "FROM resolve_request AS r JOIN latency_segment AS s ON r.request_key = s.request_key"
    )[0]
    window = (span["first_ns"], span["last_ns"]) if span["first_ns"] is not None else None
    assumed = engine.rows(
        "SELECT s.path, n.note FROM source_note AS n JOIN source AS s ON n.source_id = s.source_id "
        "WHERE n.kind = 'assumed' ORDER BY s.source_id, n.note"
    )
    return Report(
        title=title or "Incident report",
        verdict=findings.verdict,
        window=window,
        requests=span["requests"],
        findings=findings,
        segments=by_metric(engine, ()),
        timeline=_timeline(engine, window),
        slowest=slowest(engine, _SLOWEST).rows,
        sources=sources(engine),
        notes=tuple(f"{row['path']}: {row['note']}" for row in assumed),
        version=version,
    )


def _timeline(engine: Engine, window: tuple[int, int] | None) -> Series:
    title = "Mean time per request by segment"
    if window is None:
        return Series(title, "start_ns", "mean_ns", "ns", "segment", ())
    width = (
        next((w for w in _WIDTHS_S if (window[1] - window[0]) / 1e9 / w <= _BINS), _WIDTHS_S[-1])
        * 1_000_000_000
    )
    rows = engine.rows(
        f"""SELECT r.start_ns - r.start_ns % {width} AS start_ns, m.metric AS segment,
  CAST(SUM(coalesce(m.value_ns, 0)) / count(*) AS BIGINT) AS mean_ns, count(*) AS requests
FROM latency_metric AS m JOIN resolve_request AS r ON m.request_key = r.request_key
JOIN latency_segment AS s ON m.request_key = s.request_key
WHERE m.metric IN {_SEGMENTS} AND r.start_ns IS NOT NULL AND s.e2e_ns IS NOT NULL
GROUP BY r.start_ns - r.start_ns % {width}, m.metric
ORDER BY start_ns, segment"""
    )
    return Series(title, "start_ns", "mean_ns", "ns", "segment", tuple(rows))
