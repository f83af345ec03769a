"""How long requests take, by segment and group; the slowest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analyzer.contract.outputs import BINS_NS, GROUPS
from analyzer.contract.types import Table
from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError, hint_of
from analyzer.questions import modelled

METRICS = ("e2e", "ttft", "queue", "prefill", "decode", "network", "unattributed", "tpot", "itl")
_OF_E2E = ("e2e", "queue", "prefill", "decode", "network", "unattributed")
FAILED = "failed"
"""The row of requests that failed: their end-to-end time, which is in no other row."""


def by_metric(engine: Engine, by: Sequence[str]) -> Table:
    """One row a group and metric, groups in order, metrics in the order of ``METRICS``.

    A request that failed says nothing of how long answers take: it stands in a row of its own. So
    do modelled parts, after those that are measured or derived.
    """
    groups = [group_of(name) for name in by]
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
    measured = _with_share(rows, names)
    fitted = modelled.by_group(engine, groups)
    return Table(
        "analyze.latency", tuple(_side_by_side(measured, fitted, names)), modelled.notes(engine)
    )


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


def _side_by_side(
    told: list[dict[str, Any]], fitted: list[dict[str, Any]], names: list[str]
) -> list[dict[str, Any]]:
    """Modelled rows behind the told ones of their group, all with the same keys."""
    blank = {
        "measured": 0,
        "derived": 0,
        "modelled": 0,
        "absent": 0,
        "low_ns": None,
        "high_ns": None,
    }
    shaped: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in (*told, *({"share": None} | one for one in fitted)):
        head = {key: value for key, value in row.items() if key not in blank and key != "share"}
        tail = {key: row.get(key, default) for key, default in blank.items()}
        group = tuple(row[name] for name in names)
        shaped.setdefault(group, []).append(head | {"share": row["share"]} | tail)
    return [row for rows in shaped.values() for row in rows]


def group_of(name: str) -> tuple[str, str]:
    """Expression over ``resolve_request AS r`` and column of a ``--by`` name."""
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
FROM latency_metric AS m JOIN latency_segment AS s ON m.request_key = s.request_key
JOIN resolve_request AS r ON m.request_key = r.request_key
WHERE m.metric = 'e2e' AND m.value_ns IS NOT NULL
ORDER BY s.e2e_ns DESC, r.request_key LIMIT {int(limit)}"""
    )
    return Table("analyze.latency.slowest", tuple(rows))
