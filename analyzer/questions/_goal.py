"""What people write as an objective: ``ttft<=2s``, ``p95 ttft<=2s``, several with commas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from analyzer.errors import AnalyzerError, near
from analyzer.questions.latency import METRICS

_GOAL = re.compile(
    r"\s*(?:[pP](\d{1,3}(?:\.\d{1,6})?)\s+)?(\w+)\s*(<=|>=|<|>)\s*(\d{1,18}(?:\.\d{1,9})?)\s*(\w*)\s*"
)
_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}
_ALL = Decimal(100)
_PER_TOKEN = ("tpot", "itl")


@dataclass(frozen=True)
class Goal:
    """One objective: a limit of one metric, and the share of the requests that must keep it."""

    metric: str
    op: str
    number: str
    unit: str
    percent: Decimal = _ALL

    @property
    def limit(self) -> str:
        """``ttft <= 2 s``: what is asked of each request."""
        return f"{self.metric} {self.op} {self.number} {self.unit}"

    @property
    def statistic(self) -> str:
        """``p95 ttft``."""
        return self.metric if self.percent == _ALL else f"p{self.percent} {self.metric}"

    @property
    def text(self) -> str:
        """The objective, always written the same way."""
        return f"{self.statistic} {self.op} {self.number} {self.unit}"

    @property
    def limit_ns(self) -> float:
        """The limit in ns."""
        return float(Decimal(self.number) * _UNITS[self.unit])

    @property
    def sql(self) -> str:
        """TRUE, FALSE, or NULL where ``latency_objective`` lacks the metric of a request.

        A failure misses every objective. An answer of one token has no time per token to miss.
        """
        single = "WHEN is_single THEN TRUE " if self.metric in _PER_TOKEN else ""
        kept = f"{self.metric}_ns {self.op} {self.limit_ns!r}"
        return f"CASE WHEN failed THEN FALSE {single}ELSE {kept} END"

    @property
    def percentile_sql(self) -> str:
        """The percentile by rank, failures last, which keeps the limit iff the share does."""
        single = "WHEN is_single THEN -1 " if self.metric in _PER_TOKEN else ""
        never = "CAST('Infinity' AS DOUBLE)"
        value = f"CASE WHEN failed THEN {never} {single}ELSE {self.metric}_ns END"
        share = float(self.percent / 100)
        return f"percentile_disc({share!r}) WITHIN GROUP (ORDER BY {value})"


def goals_of(slos: Sequence[str]) -> tuple[Goal, ...]:
    """The objectives of all texts, each once."""
    return tuple(dict.fromkeys(_goal(part) for slo in slos for part in slo.split(",")))


def _goal(text: str) -> Goal:
    match = _GOAL.fullmatch(text)
    if match is None:
        raise AnalyzerError(
            f"--slo {text!r}: cannot read it",
            "write METRIC<=TIME or p95 METRIC<=TIME, such as 'ttft<=2s,p95 tpot<=50ms'",
        )
    percent, metric, op, number, unit = match.groups()
    metric = metric.lower()
    if metric not in METRICS:
        meant = near(metric, METRICS)
        did = f"did you mean {' or '.join(meant)}? " if meant else ""
        raise AnalyzerError(
            f"--slo {text!r}: no metric {metric}", f"{did}metrics: {', '.join(METRICS)}"
        )
    if op not in ("<=", "<"):
        raise AnalyzerError(
            f"--slo {text!r}: an objective is an upper limit", f"write {metric}<={number}{unit}"
        )
    if unit not in _UNITS:
        what = f"no unit {unit}" if unit else "its time has no unit"
        raise AnalyzerError(
            f"--slo {text!r}: {what}",
            f"write {metric}{op}{number}s; units: {', '.join(_UNITS)} (m is minutes)",
        )
    share = _ALL if percent is None else Decimal(percent)
    if not 0 < share <= _ALL:
        raise AnalyzerError(
            f"--slo {text!r}: there is no p{percent}", "a percentile lies above p0, up to p100"
        )
    return Goal(metric, op, number, unit, share)
