"""The case over time in bins: lanes for the report, and the window that stands out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from analyzer.contract.types import Lane
from analyzer.engines.duckdb import Engine

BINS = 60
_NS = 1_000_000_000
_WIDTHS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400,
    604_800,
)  # fmt: skip
_SEGMENTS = ("queue", "prefill", "decode", "network", "unattributed")

# What an incident raises, with its name in a sentence. Requests carry the value, bins its sums.
_WATCHED = {
    "e2e": "end-to-end time",
    "ttft": "time to first token",
    "queue": "queue wait",
    "prefill": "prefill",
    "tpot": "time per output token",
    "network": "time outside the server",
    "errors": "share of failed requests",
    "output": "output tokens",
}
UNITS = {"errors": "ratio", "output": "tokens"}
"""Units of what is watched; all others are durations."""

SURPRISE = 6.0
"""Standard errors that the window's mean must lie above the rest: every window is tried."""
RISE = 1.3
"""Factor by which it must exceed the rest, so that large cases do not report trifles."""
FEWEST = 5
"""Requests inside and outside."""
ENOUGH = 20
"""Requests below which nothing can be said where no window stands out."""


_NO_BILL = "request_key NOT IN (SELECT request_key FROM resolve_on_bill WHERE NOT is_logged)"
"""A provider's record that bills a logged call is no second call."""


def window_of(engine: Engine) -> tuple[int, int] | None:
    """When requests ran, else when the servers were sampled; None where nothing has a time."""
    for sql in (
        "SELECT min(r.start_ns) AS first_ns, max(r.start_ns + coalesce(s.e2e_ns, 0)) AS last_ns "
        "FROM resolve_request AS r JOIN latency_segment AS s ON r.request_key = s.request_key",
        "SELECT min(time_ns) AS first_ns, max(time_ns) AS last_ns FROM resolve_engine_sample",
    ):
        (span,) = engine.rows(sql)
        if span["first_ns"] is not None:
            return span["first_ns"], span["last_ns"]
    return None


def width_ns(window: tuple[int, int]) -> int:
    """Bin width that cuts the window into at most ``BINS`` round pieces."""
    span_s = (window[1] - window[0]) / _NS
    return next((w for w in _WIDTHS_S if span_s / w <= BINS), _WIDTHS_S[-1]) * _NS


def segments(engine: Engine, bin_ns: int) -> list[dict[str, Any]]:
    """Mean time per request by bin and segment."""
    return engine.rows(
        f"""SELECT r.start_ns - r.start_ns % {bin_ns} AS start_ns, m.metric AS segment,
  CAST(SUM(coalesce(m.value_ns, 0)) / count(*) AS BIGINT) AS mean_ns, count(*) AS requests
FROM latency_metric AS m JOIN resolve_request AS r ON m.request_key = r.request_key
JOIN latency_segment AS s ON m.request_key = s.request_key
WHERE m.metric IN {_SEGMENTS} AND r.start_ns IS NOT NULL AND s.e2e_ns IS NOT NULL
GROUP BY r.start_ns - r.start_ns % {bin_ns}, m.metric
ORDER BY start_ns, segment"""
    )


def lanes(engine: Engine, bin_ns: int) -> tuple[Lane, ...]:
    """Load, time to first token, time per token, KV cache, queue and errors, where told."""
    bin_of = f"r.start_ns - r.start_ns % {bin_ns}"
    load = engine.rows(
        f"SELECT {bin_of} AS start_ns, 'requests' AS \"group\", CAST(count(*) AS DOUBLE) AS value "
        f"FROM resolve_request AS r WHERE r.start_ns IS NOT NULL AND r.{_NO_BILL} "
        f"GROUP BY {bin_of} ORDER BY start_ns"
    )
    failed = "r.status >= 400 OR r.error IS NOT NULL"
    errors = engine.rows(
        f"SELECT {bin_of} AS start_ns, 'failed' AS \"group\", "
        f"CAST(count(*) FILTER (WHERE {failed}) AS DOUBLE) AS value FROM resolve_request AS r "
        f"WHERE r.start_ns IS NOT NULL AND r.{_NO_BILL} GROUP BY {bin_of} ORDER BY start_ns"
    )
    found = [
        Lane("Requests started", "requests", bin_ns, tuple(load)),
        Lane("Time to first token", "ns", bin_ns, _percentiles(engine, "ttft", bin_of)),
        Lane("Time per output token", "ns", bin_ns, _percentiles(engine, "tpot", bin_of)),
        *_server_lanes(engine, bin_ns),
    ]
    if any(row["value"] for row in errors):
        found.append(Lane("Failed requests", "requests", bin_ns, tuple(errors)))
    return tuple(lane for lane in found if lane.rows)


def _percentiles(engine: Engine, metric: str, bin_of: str) -> tuple[dict[str, Any], ...]:
    rows = engine.rows(
        f"""SELECT {bin_of} AS start_ns,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY m.value_ns) AS p50,
  percentile_cont(0.95) WITHIN GROUP (ORDER BY m.value_ns) AS p95
FROM latency_metric AS m JOIN resolve_request AS r ON m.request_key = r.request_key
WHERE m.metric = '{metric}' AND m.value_ns IS NOT NULL AND r.start_ns IS NOT NULL
GROUP BY {bin_of} ORDER BY start_ns"""
    )
    return tuple(
        {"start_ns": row["start_ns"], "group": name, "value": row[name]}
        for row in rows
        for name in ("p50", "p95")
    )


def _server_lanes(engine: Engine, bin_ns: int) -> list[Lane]:
    bin_of = f"time_ns - time_ns % {bin_ns}"
    rows = engine.rows(
        f"""SELECT {bin_of} AS start_ns, max(kv_used_ratio) AS kv,
  CAST(max(running) AS DOUBLE) AS running, CAST(max(waiting) AS DOUBLE) AS waiting
FROM resolve_engine_sample GROUP BY {bin_of} ORDER BY start_ns"""
    )

    def lane(name: str, unit: str, *columns: str) -> Lane:
        points = [
            {"start_ns": row["start_ns"], "group": column, "value": row[column]}
            for row in rows
            for column in columns
            if row[column] is not None
        ]
        return Lane(name, unit, bin_ns, tuple(points))

    return [
        lane("Server batch and queue (highest)", "requests", "running", "waiting"),
        lane("KV cache in use (highest)", "ratio", "kv"),
    ]


# -- the window that stands out -----------------------------------------------------------------


@dataclass(frozen=True)
class Standout:
    """A window in which one metric lies above the rest of the case."""

    window: tuple[int, int]
    metric: str
    inside: float
    outside: float
    surprise: float

    @property
    def name(self) -> str:
        """The metric in words."""
        return _WATCHED[self.metric]

    @property
    def was(self) -> str:
        """The name and its verb: ``queue wait was``, ``output tokens were``."""
        return f"{self.name} {'were' if self.name.endswith('tokens') else 'was'}"


def standout(engine: Engine, bin_ns: int) -> Standout | None:
    """The window and metric with the clearest rise, or None where nothing stands out.

    Every run of bins is held against all others (a scan statistic over means, Welch's standard
    error); the clearest over all metrics is the incident.
    """
    best: Standout | None = None
    for metric, bins in _binned(engine, bin_ns).items():
        found = _clearest(metric, bins, bin_ns)
        if found is not None and (best is None or found.surprise > best.surprise):
            best = found
    return best


_Bin = tuple[int, int, float, float]
"""Start of the bin, requests, sum and sum of squares of the metric."""


def _binned(engine: Engine, bin_ns: int) -> dict[str, list[_Bin]]:
    rows = engine.rows(
        f"""WITH told AS (
  SELECT request_key, metric, value_ns AS value FROM latency_metric
  WHERE value_ns IS NOT NULL AND metric IN ('e2e', 'ttft', 'queue', 'prefill', 'tpot', 'network')
  UNION ALL
  SELECT request_key, 'output', CAST(output_tokens AS DOUBLE) FROM resolve_request
  WHERE output_tokens IS NOT NULL
  UNION ALL
  SELECT request_key, 'errors', CASE WHEN status >= 400 OR error IS NOT NULL
    THEN CAST(1 AS DOUBLE) ELSE CAST(0 AS DOUBLE) END FROM resolve_request WHERE {_NO_BILL}
)
SELECT t.metric, r.start_ns - r.start_ns % {bin_ns} AS bin_at, count(*) AS n,
  SUM(t.value) AS total, SUM(t.value * t.value) AS squares
FROM told AS t JOIN resolve_request AS r ON t.request_key = r.request_key
WHERE r.start_ns IS NOT NULL
GROUP BY t.metric, r.start_ns - r.start_ns % {bin_ns} ORDER BY t.metric, bin_at"""
    )
    found: dict[str, list[_Bin]] = {}
    for row in rows:
        found.setdefault(row["metric"], []).append(
            (row["bin_at"], row["n"], row["total"], row["squares"])
        )
    return found


def _clearest(metric: str, bins: list[_Bin], bin_ns: int) -> Standout | None:
    everything = _sums(bins)
    best: Standout | None = None
    for first in range(len(bins)):
        inside = (0.0, 0.0, 0.0)
        for last in range(first, len(bins)):
            inside = _plus(inside, bins[last])
            outside = _minus(everything, inside)
            if min(inside[0], outside[0]) < FEWEST:
                continue
            surprise = _surprise(inside, outside)
            old, new = outside[1] / outside[0], inside[1] / inside[0]
            if surprise < SURPRISE or new < RISE * old:
                continue
            if best is None or surprise > best.surprise:
                window = (bins[first][0], bins[last][0] + bin_ns)
                best = Standout(window, metric, new, old, surprise)
    return best


_Sums = tuple[float, float, float]


def _sums(bins: list[_Bin]) -> _Sums:
    total = (0.0, 0.0, 0.0)
    for one in bins:
        total = _plus(total, one)
    return total


def _plus(sums: _Sums, one: _Bin) -> _Sums:
    return sums[0] + one[1], sums[1] + one[2], sums[2] + one[3]


def _minus(all_of: _Sums, part: _Sums) -> _Sums:
    return all_of[0] - part[0], all_of[1] - part[1], all_of[2] - part[2]


def _surprise(inside: _Sums, outside: _Sums) -> float:
    """Difference of the means in standard errors (Welch)."""
    error = sum(_variance(side) / side[0] for side in (inside, outside))
    gap = inside[1] / inside[0] - outside[1] / outside[0]
    if error <= 0:
        return math.inf if gap > 0 else 0.0
    return gap / math.sqrt(error)


def _variance(sums: _Sums) -> float:
    mean = sums[1] / sums[0]
    # Constant values leave a rounding error; no real spread is that small beside its mean.
    return max(sums[2] / sums[0] - mean * mean, (1e-6 * mean) ** 2)


def no_window(requests: int) -> str:
    """What it means that no window stands out."""
    if requests < ENOUGH:
        count = f"{requests} request{'' if requests == 1 else 's'}"
        return f"too few requests ({count}) to look for a window that stands out"
    return "no window stands out from the rest"


def standout_of(engine: Engine) -> Standout | None:
    """The window that stands out of the whole case, in bins of the report's width."""
    window = window_of(engine)
    return standout(engine, width_ns(window)) if window else None
