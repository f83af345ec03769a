"""Every metric in two windows or two cases: what changed, and whether it is more than noise.

Intervals are percentile bootstraps of the difference (Efron 1979). Samples are drawn with fixed
seeds from values in a fixed order, so the same case gives the same interval.
"""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from analyzer.contract.types import Table
from analyzer.engines.duckdb import Engine

RESAMPLES = 200
LARGEST_SAMPLE = 5_000
"""Larger sides are resampled at this size and the interval is narrowed by sqrt(m / n)."""
FEWEST = 20
"""Values a side needs for a p95 (one in twenty lies above it) and for an interval: a bootstrap of
fewer draws too narrow ones."""
FEWEST_MINUTES = 5
"""The same for requests per minute, of which each value counts many requests."""

_LOW, _HIGH = 0.025, 0.975
_EQUAL = 1e-6
_STATISTICS = ("mean", "p50", "p95")
_METRICS = (
    ("e2e", "ns"), ("ttft", "ns"), ("queue", "ns"), ("prefill", "ns"), ("decode", "ns"),
    ("network", "ns"), ("unattributed", "ns"), ("tpot", "ns"), ("itl", "ns"),
    ("input_tokens", "tokens"), ("cache_read_share", "ratio"), ("output_tokens", "tokens"),
    ("error_rate", "ratio"), ("requests_per_minute", "requests"),
)  # fmt: skip
_ONLY_MEAN = ("error_rate", "cache_read_share", "requests_per_minute")
QUESTION = """
WITH chosen AS (SELECT * FROM resolve_request WHERE {when})
SELECT m.metric, m.value_ns AS value, m.request_key
FROM latency_metric AS m JOIN chosen AS c ON m.request_key = c.request_key
WHERE m.value_ns IS NOT NULL AND NOT c.failed
UNION ALL
SELECT 'input_tokens', CAST(input_tokens AS DOUBLE), request_key FROM chosen
WHERE input_tokens IS NOT NULL
UNION ALL
SELECT 'cache_read_share', CAST(cache_read_tokens AS DOUBLE) / input_tokens, request_key
FROM chosen WHERE cache_read_tokens IS NOT NULL AND input_tokens > 0
UNION ALL
SELECT 'output_tokens', CAST(output_tokens AS DOUBLE), request_key FROM chosen
WHERE output_tokens IS NOT NULL
UNION ALL
SELECT 'error_rate', CASE WHEN failed THEN CAST(1 AS DOUBLE) ELSE CAST(0 AS DOUBLE) END,
  request_key
FROM chosen WHERE status IS NOT NULL OR error IS NOT NULL OR finish_reason IS NOT NULL
ORDER BY metric, request_key
"""
_PER_MINUTE = """
SELECT start_ns - start_ns % 60000000000 AS minute_ns, count(*) AS n
FROM resolve_request WHERE start_ns IS NOT NULL AND {when}
GROUP BY start_ns - start_ns % 60000000000 ORDER BY minute_ns
"""
_MINUTE_NS = 60_000_000_000


def compare(baseline: Engine, window: Engine) -> Table:
    """One row a metric and statistic that either side has."""
    return _compared(_samples(baseline, "TRUE"), _samples(window, "TRUE"))


def changes(engine: Engine, window: tuple[int, int]) -> Table:
    """The rest of a case against a window of it."""
    inside = f"start_ns >= {window[0]} AND start_ns < {window[1]}"
    return _compared(_samples(engine, f"NOT ({inside})"), _samples(engine, inside))


def _compared(before: dict[str, pl.Series], after: dict[str, pl.Series]) -> Table:
    rows, nowhere = [], []
    for metric, unit in _METRICS:
        left, right = before.get(metric), after.get(metric)
        if left is None and right is None:
            nowhere.append(metric.replace("_", " "))
            continue
        statistics = ("mean",) if metric in _ONLY_MEAN else _STATISTICS
        rows += _rows(metric, unit, statistics, left, right)
    told = f"On neither side: {', '.join(nowhere)}."
    return Table("analyze.compare", tuple(rows), (told,) if rows and nowhere else ())


def _samples(engine: Engine, when: str) -> dict[str, pl.Series]:
    """Metric -> its values, in the order of the requests."""
    rows = engine.rows(QUESTION.format(when=when))
    frame = pl.DataFrame(
        [(row["metric"], row["value"]) for row in rows],
        schema={"metric": pl.String, "value": pl.Float64},
        orient="row",
    )
    groups = frame.group_by("metric", maintain_order=True)
    found = {str(key[0]): part["value"] for key, part in groups}
    minutes = engine.rows(_PER_MINUTE.format(when=when))
    if minutes:
        # Minutes without a request count too, but not the gap that a window leaves.
        length = (minutes[-1]["minute_ns"] - minutes[0]["minute_ns"]) // _MINUTE_NS + 1
        counts = [float(row["n"]) for row in minutes]
        empty = length - len(counts) if when == "TRUE" or not when.startswith("NOT") else 0
        found["requests_per_minute"] = pl.Series(counts + [0.0] * empty)
    return found


def _rows(
    metric: str,
    unit: str,
    statistics: tuple[str, ...],
    left: pl.Series | None,
    right: pl.Series | None,
) -> list[dict[str, Any]]:
    fewest = FEWEST_MINUTES if metric == "requests_per_minute" else FEWEST
    enough = left is not None and right is not None and min(len(left), len(right)) >= fewest
    drawn = _differences(left, right) if enough and left is not None and right is not None else None
    rows = []
    for statistic in statistics:
        old, new = _statistic(left, statistic), _statistic(right, statistic)
        change = _told(new - old, old, new) if old is not None and new is not None else None
        low = high = None
        if drawn is not None and change is not None and old is not None and new is not None:
            spread = drawn[statistic]
            low, high = (
                _round(
                    _told(_narrowed(spread.quantile(edge, "linear"), change, left, right), old, new)
                )
                for edge in (_LOW, _HIGH)
            )
        rows.append(
            {
                "metric": metric,
                "statistic": statistic,
                "baseline": _round(old),
                "window": _round(new),
                "change": _round(change),
                "low": low,
                "high": high,
                "unit": unit,
                "change_ratio": _round(change / old) if change is not None and old else None,
                "beyond_noise": None if low is None or high is None else low > 0 or high < 0,
                "baseline_requests": 0 if left is None else len(left),
                "window_requests": 0 if right is None else len(right),
            }
        )
    return rows


def _told(change: float | None, old: float, new: float) -> float | None:
    """A difference of two values; what is a millionth of them is rounding, and no difference."""
    if change is None or abs(change) > _EQUAL * max(abs(old), abs(new)):
        return change
    return 0.0


def _differences(left: pl.Series, right: pl.Series) -> dict[str, pl.Series]:
    """Resampled differences of every statistic."""
    drawn: dict[str, list[float]] = {name: [] for name in _STATISTICS}
    for seed in range(RESAMPLES):
        one, other = _resample(left, 2 * seed), _resample(right, 2 * seed + 1)
        for name in _STATISTICS:
            old, new = _statistic(one, name), _statistic(other, name)
            if old is not None and new is not None:
                drawn[name].append(new - old)
    return {name: pl.Series(values) for name, values in drawn.items()}


def _resample(values: pl.Series, seed: int) -> pl.Series:
    return values.sample(min(len(values), LARGEST_SAMPLE), with_replacement=True, seed=seed)


def _narrowed(
    edge: float | None, change: float, left: pl.Series | None, right: pl.Series | None
) -> float | None:
    """An edge drawn at a smaller size, brought to the size of the data."""
    if edge is None or left is None or right is None:
        return edge
    size = min(len(left), len(right))
    return change + (edge - change) * math.sqrt(min(size, LARGEST_SAMPLE) / size)


def _statistic(values: pl.Series | None, name: str) -> float | None:
    if values is None or values.is_empty() or (name == "p95" and len(values) < FEWEST):
        return None
    got: Any = values.mean() if name == "mean" else values.quantile(float(name[1:]) / 100, "linear")
    return None if got is None else float(got)


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.9g}")
