"""The picture of a finding: its requests as points, few enough to draw."""

from __future__ import annotations

from analyzer.contract.types import Chart
from analyzer.engines.duckdb import Engine
from analyzer.runbook._play import ChartOf

MOST = 240
"""Points drawn of a series; the sample takes every n-th along x, so that its shape stays."""


def chart_of(spec: ChartOf, engine: Engine) -> Chart | None:
    """Ask the case for the points; None where no request tells both values."""
    rows = engine.rows(
        f"""WITH told AS ({spec.sql}), placed AS (
  SELECT x, y, series, count(*) OVER (PARTITION BY series) AS n, count(*) OVER () AS points,
    row_number() OVER (PARTITION BY series ORDER BY x, y) AS place
  FROM told WHERE x IS NOT NULL AND y IS NOT NULL
)
SELECT x, y, series, points FROM placed
WHERE (place - 1) % (1 + (n - 1) // {MOST}) = 0 ORDER BY series, x, y"""
    )
    if not rows:
        return None
    points = rows[0]["points"]
    drawn = tuple({key: row[key] for key in ("x", "y", "series")} for row in rows)
    return Chart(spec.title, spec.x, spec.x_unit, spec.y, spec.y_unit, spec.sql, points, drawn)
