"""How long requests take, by segment and group; the slowest; objectives met and missed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from analyzer.contract.outputs import BINS_NS, GROUPS
from analyzer.contract.types import Table
from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError

METRICS = ("e2e", "ttft", "queue", "prefill", "decode", "network", "unattributed", "tpot", "itl")
_OF_E2E = ("e2e", "queue", "prefill", "decode", "network", "unattributed")
_SLO = re.compile(r"^\s*(\w+)\s*(<=|<|>=|>)\s*(\d+(?:\.\d+)?)\s*(ns|us|ms|s|m)\s*$")
_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}


def by_metric(engine: Engine, by: Sequence[str]) -> Table:
    """One row a group and metric, groups in order, metrics in the order of ``METRICS``."""
    groups = [_group(name) for name in by]
    names = [alias for _, alias in groups]
    chosen = "".join(f"{expression} AS {alias}, " for expression, alias in groups)
    keys = ", ".join(f"g.{name}" for name in names)
    order = "CASE metric " + " ".join(
        f"WHEN '{metric}' THEN {i}" for i, metric in enumerate(METRICS)
    )
    rows = engine.rows(
        f"""WITH grouped AS (SELECT {chosen}r.request_key FROM resolve_request AS r)
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
FROM latency_metric AS m JOIN grouped AS g ON m.request_key = g.request_key
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
    known = ", ".join([*GROUPS, *BINS_NS])
    raise AnalyzerError(f"--by {name}: no such group", f"known: {known}")


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
    """How many requests meet each objective, such as ``ttft<=2s``."""
    rows = []
    for slo in slos:
        match = _SLO.match(slo)
        if match is None or match[1] not in METRICS:
            raise AnalyzerError(
                f"--slo {slo!r}: cannot read it",
                f"write METRIC<=TIME, such as ttft<=2s; metrics: {', '.join(METRICS)}",
            )
        metric, op, number, unit = match.groups()
        limit = float(number) * _UNITS[unit]
        row = engine.rows(
            f"""SELECT count(value_ns) AS requests,
  count(*) FILTER (WHERE value_ns {op} {limit!r}) AS met,
  count(*) FILTER (WHERE value_ns IS NULL) AS without
FROM latency_metric WHERE metric = '{metric}'"""
        )[0]
        seen, met = row["requests"], row["met"]
        rows.append(
            {
                "slo": f"{metric} {op} {number} {unit}",
                "requests": seen,
                "met": met,
                "missed": seen - met,
                "met_ratio": met / seen if seen else None,
                "without": row["without"],
            }
        )
    return Table("analyze.latency.slo", tuple(rows))
