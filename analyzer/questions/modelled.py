"""Segments that no source tells, from a fit: in rows of their own, never among measured ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analyzer.engines.duckdb import Engine

METRICS = ("queue (modelled)", "prefill (modelled)", "network floor (modelled)")
_COLUMNS = ("queue", "prefill", "floor")
_NAMES = dict(zip(_COLUMNS, METRICS, strict=True))
_MOST = 3
"""Reasons that are listed."""


def by_group(engine: Engine, groups: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """One row a group and modelled part: as in ``analyze latency``, with the mean interval."""
    chosen = "".join(f"{expression} AS {alias}, " for expression, alias in groups)
    keys = "".join(f"t.{alias}, " for _, alias in groups)
    parts = " UNION ALL ".join(
        f"SELECT {chosen}'{_NAMES[name]}' AS metric, {nth} AS nth, m.{name}_ns AS value_ns, "
        f"m.{name}_low_ns AS low_ns, m.{name}_high_ns AS high_ns "
        "FROM latency_modelled AS m JOIN resolve_request AS r ON m.request_key = r.request_key "
        "WHERE NOT r.failed"
        for nth, name in enumerate(_COLUMNS)
    )
    return engine.rows(
        f"""WITH t AS ({parts})
SELECT {keys}t.metric,
  count(t.value_ns) AS requests,
  CAST(avg(t.value_ns) AS BIGINT) AS mean_ns,
  CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY t.value_ns) AS BIGINT) AS p50_ns,
  CAST(percentile_cont(0.95) WITHIN GROUP (ORDER BY t.value_ns) AS BIGINT) AS p95_ns,
  CAST(percentile_cont(0.99) WITHIN GROUP (ORDER BY t.value_ns) AS BIGINT) AS p99_ns,
  count(t.value_ns) AS modelled,
  count(*) - count(t.value_ns) AS absent,
  CAST(avg(t.low_ns) AS BIGINT) AS low_ns,
  CAST(avg(t.high_ns) AS BIGINT) AS high_ns
FROM t GROUP BY {keys}t.metric, t.nth
HAVING count(t.value_ns) > 0
ORDER BY {"".join(f"t.{alias} NULLS LAST, " for _, alias in groups)}t.nth"""
    )


def notes(engine: Engine) -> tuple[str, ...]:
    """What modelled rows are, and why there are none of some requests."""
    counted = engine.rows(
        "SELECT refused, count(*) AS requests FROM latency_modelled "
        "GROUP BY refused ORDER BY requests DESC, refused"
    )
    told = []
    if any(row["refused"] is None for row in counted):
        told.append(
            "Modelled: no source tells these, a fit to requests that found nobody ahead splits "
            "their time to first token; low and high, shown where there is room and by -f csv, are "
            "means of each request's 90 % interval. "
            "The network floor holds what the server takes whatever the prompt."
        )
    refused = [row for row in counted if row["refused"] is not None]
    for row in refused[:_MOST]:
        many = "1 request" if row["requests"] == 1 else f"{row['requests']:,} requests"
        told.append(f"The time to first token of {many} is not split: {row['refused']}.")
    return tuple(told)


def counts(engine: Engine) -> dict[str, int]:
    """Segment -> requests for which it is modelled."""
    (row,) = engine.rows(
        "SELECT count(queue_ns) AS queue, count(prefill_ns) AS prefill FROM latency_modelled"
    )
    return row


def of_request(engine: Engine, key: int) -> tuple[tuple[dict[str, Any], ...], str]:
    """Segment rows of one request with their intervals, and why there are none."""
    rows = engine.rows(f"SELECT * FROM latency_modelled WHERE request_key = {key}")
    if not rows:
        return (), ""
    row = rows[0]
    if row["refused"] is not None:
        return (), f"its time to first token is not split: {row['refused']}"
    shown = {"queue": "queue", "prefill": "prefill", "floor": "network floor"}
    return tuple(
        {
            "view": "model",
            "segment": shown[name],
            "dur_ns": row[f"{name}_ns"],
            "grade": "modelled",
            "low_ns": row[f"{name}_low_ns"],
            "high_ns": row[f"{name}_high_ns"],
        }
        for name in _COLUMNS
        if row[f"{name}_ns"] is not None
    ), ""
