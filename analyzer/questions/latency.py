"""How long requests take, by segment and group; the slowest; objectives met and missed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from analyzer.contract.outputs import BINS_NS, GROUPS
from analyzer.contract.types import Table
from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError, hint_of, near

METRICS = ("e2e", "ttft", "queue", "prefill", "decode", "network", "unattributed", "tpot", "itl")
_OF_E2E = ("e2e", "queue", "prefill", "decode", "network", "unattributed")
FAILED = "failed"
"""The row of requests that failed: their end-to-end time, which is in no other row."""
_SLO = re.compile(r"^\s*(\w+)\s*(<=|<|>=|>)\s*(\d+(?:\.\d+)?)\s*(\w*)\s*$")
_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}


def by_metric(engine: Engine, by: Sequence[str]) -> Table:
    """One row a group and metric, groups in order, metrics in the order of ``METRICS``.

    A request that failed says nothing of how long answers take: it stands in a row of its own.
    """
    groups = [_group(name) for name in by]
    names = [alias for _, alias in groups]
    chosen = "".join(f"{expression} AS {alias}, " for expression, alias in groups)
    keys = ", ".join(f"g.{name}" for name in names)
    order = "CASE metric " + " ".join(
        f"WHEN '{metric}' THEN {i}" for i, metric in enumerate((*METRICS, FAILED))
    )
    rows = engine.rows(
        f"""WITH grouped AS (SELECT {chosen}r.request_key, r.failed FROM resolve_request AS r),
told AS (
  SELECT m.request_key, CASE WHEN g.failed THEN '{FAILED}' ELSE m.metric END AS metric,
    m.value_ns, m.grade
  FROM latency_metric AS m JOIN grouped AS g ON m.request_key = g.request_key
  WHERE NOT g.failed OR m.metric = 'e2e'
)
SELECT {keys + ", " if keys else ""}m.metric,
  count(m.value_ns) AS requests,
  CAST(avg(m.value_ns) AS BIGINT) AS mean_ns,
  CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY m.value_ns) AS BIGINT) AS p50_ns,
  CAST(percentile_cont(0.95) WITHIN GROUP (ORDER BY m.value_ns) AS BIGINT) AS p95_ns,
  CAST(percentile_cont(0.99) WITHIN GROUP (ORDER BY m.value_ns) AS BIGINT) AS p99_ns,
  SUM(m.value_ns) AS total_ns,
  count(*) FILTER (WHERE m.grade = 'measured') AS measured,
  count(*) FILTER (WHERE m.grade = 'derived') AS derived,
  count(*) FILTER (WHERE m.grade = 'absent') AS absent
FROM told AS m JOIN grouped AS g ON m.request_key = g.request_key
GROUP BY {keys + ", " if keys else ""}m.metric
ORDER BY {"".join(f"g.{name} NULLS LAST, " for name in names)}{order} ELSE 99 END"""
    )
    return Table("analyze.latency", tuple(_with_share(rows, names)))


def _with_share(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    wholes = {
        tuple(row[name] for name in names): row["total_ns"]
        for row in rows
        if row["metric"] == "e2e"
    }
    shaped = []
    for row in rows:
        total = row.pop("total_ns")
        whole = wholes.get(tuple(row[name] for name in names))
        of_whole = row["metric"] in _OF_E2E and whole and total is not None
        tail = {key: row.pop(key) for key in ("measured", "derived", "absent")}
        shaped.append(row | {"share": total / whole if of_whole else None} | tail)
    return shaped


def _group(name: str) -> tuple[str, str]:
    if name in GROUPS:
        return f"r.{GROUPS[name]}", name
    if name in BINS_NS:
        return f"r.start_ns - r.start_ns % {BINS_NS[name]}", f"{name}_ns"
    raise AnalyzerError(f"--by {name}: no such group", hint_of(name, (*GROUPS, *BINS_NS)))


def slowest(engine: Engine, limit: int) -> Table:
    """The requests with the longest end-to-end time, both exact views."""
    rows = engine.rows(
        f"""SELECT r.id, r.start_ns, r.model, r.route, s.e2e_ns, s.ttft_ns, s.queue_ns,
  s.prefill_ns, s.decode_ns, s.network_ns, s.unattributed_ns, s.held_ns, r.output_tokens
FROM latency_segment AS s JOIN resolve_request AS r ON s.request_key = r.request_key
WHERE s.e2e_ns IS NOT NULL
ORDER BY s.e2e_ns DESC, r.request_key LIMIT {int(limit)}"""
    )
    return Table("analyze.latency.slowest", tuple(rows))


def objectives(engine: Engine, slos: Sequence[str]) -> Table:
    """How many requests meet each objective, such as ``ttft<=2s``; a failure never does."""
    return Table("analyze.latency.slo", tuple(_held(engine, *_goal(slo)) for slo in slos))


def _goal(slo: str) -> tuple[str, str, str, str]:
    match = _SLO.match(slo)
    if match is None:
        raise AnalyzerError(
            f"--slo {slo!r}: cannot read it", "write METRIC<=TIME, such as ttft<=2s"
        )
    metric, op, number, unit = match.groups()
    if metric not in METRICS:
        meant = near(metric, METRICS)
        did = f"did you mean {' or '.join(meant)}? " if meant else ""
        raise AnalyzerError(
            f"--slo {slo!r}: no metric {metric}", f"{did}metrics: {', '.join(METRICS)}"
        )
    if unit not in _UNITS:
        what = f"no unit {unit}" if unit else "its time has no unit"
        raise AnalyzerError(
            f"--slo {slo!r}: {what}",
            f"write {metric}{op}{number}s; units: {', '.join(_UNITS)} (m is minutes)",
        )
    return metric, op, number, unit


def _held(engine: Engine, metric: str, op: str, number: str, unit: str) -> dict[str, Any]:
    limit = float(number) * _UNITS[unit]
    row = engine.rows(
        f"""SELECT count(*) FILTER (WHERE r.failed) AS failed,
  count(*) FILTER (WHERE NOT r.failed AND m.value_ns IS NOT NULL) AS answered,
  count(*) FILTER (WHERE NOT r.failed AND m.value_ns {op} {limit!r}) AS met,
  count(*) FILTER (WHERE NOT r.failed AND m.value_ns IS NULL) AS without
FROM latency_metric AS m JOIN resolve_request AS r ON m.request_key = r.request_key
WHERE m.metric = '{metric}'"""
    )[0]
    seen, met = row["failed"] + row["answered"], row["met"]
    return {
        "slo": f"{metric} {op} {number} {unit}",
        "requests": seen,
        "met": met,
        "missed": seen - met,
        "failed": row["failed"],
        "met_ratio": met / seen if seen else None,
        "without": row["without"],
    }
