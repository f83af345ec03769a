"""Sentences about findings that terminal, Markdown and HTML share."""

from __future__ import annotations

import shlex
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from analyzer.contract.types import SEVERITIES
from analyzer.contract.units import singular
from analyzer.report.values import percent, plural, quantity, safe_text, significant, window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analyzer.contract.types import CannotSay, Criterion, Evidence, Finding, Findings

_TIMES = frozenset({"s", "ms", "us", "ns"})
_TIME_OF = {"requests": "end-to-end time", "steps": "device time"}
_RATES = frozenset({"error_rate", "cache_read_share", "requests_per_minute"})

NOT_CLEAR = "not looked at for want of data: this does not mean healthy"


def by_severity(found: Iterable[Finding]) -> list[Finding]:
    """Worst first; within one severity the order given stays."""
    rank = {name: index for index, name in enumerate(SEVERITIES)}
    return sorted(found, key=lambda item: rank.get(item.severity, len(rank)))


def answered(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """The evidence that this case holds; what it has no answer to stands in JSON alone."""
    return tuple(item for item in evidence if item.value is not None and item.value != "")


def size_of(value: Finding) -> str:
    """Name requests touched, magnitude, share and cost of a finding in one line."""
    size = value.magnitude
    unit = singular(value.unit) if value.requests == 1 else value.unit
    touched = f"{value.requests:,} {unit}"
    if size.unit == value.unit and size.value == value.requests:
        parts = [f"{touched} {size.of}"]
    else:
        parts = [touched, f"{quantity(size.value, size.unit)} {size.of}"]
    if value.share:
        is_time = size.unit in _TIMES or (size.unit != "usd" and value.cost_usd is None)
        time = _TIME_OF.get(value.unit, f"all {value.unit}")
        whole = time if is_time else "cost"
        parts.append(f"{percent(value.share)} of {whole}")
    if value.cost_usd is not None:
        parts.append(quantity(Decimal(value.cost_usd), "usd"))
    return safe_text(", ".join(parts))


def place_of(value: Finding) -> str:
    """Where and when a finding holds."""
    parts = [f"where: {value.where}"] if value.where else []
    if value.window:
        parts.append(f"window: {window(value.window)}")
    return safe_text("; ".join(parts))


def grade_of(value: Finding) -> str:
    """How a finding is known."""
    return safe_text(f"{value.confidence}, coverage {percent(value.coverage)}")


def criterion(value: Criterion) -> str:
    """``p95 ttft <= 2.00 s``."""
    return safe_text(f"{value.metric} {value.op} {quantity(value.value, value.unit)}")


def sql_command(sql: str) -> str:
    """Command that runs ``sql`` again; quoted, since it gets pasted into a shell."""
    return f"analyze sql {shlex.quote(safe_text(sql, lines=True).strip())}"


def needs(value: CannotSay) -> str:
    """Name the inputs a rule lacks."""
    return safe_text(", ".join(item.input for item in value.missing)) or "input not named"


def tally(value: Findings) -> str:
    """``2 found, 17 clear, 5 cannot say``; the outcomes are never added up."""
    parts = [f"{len(value.found):,} found"]
    worst = [
        plural(sum(item.severity == name for item in value.found), name)
        for name in SEVERITIES
        if any(item.severity == name for item in value.found)
    ]
    if worst:
        parts[0] += f" ({', '.join(text.replace('criticals', 'critical') for text in worst)})"
    parts += [f"{len(value.clear):,} clear", f"{len(value.cannot_say):,} cannot say"]
    return ", ".join(parts)


def _difference(value: float, unit: str) -> str:
    """Difference of two values; shares differ by points, for "-59 %" could be of the share."""
    if unit == "ratio":
        return f"{significant(value * 100)} percentage points"
    return quantity(float(f"{value:.3g}"), unit) if unit != "ns" else quantity(value, unit)


def change(row: dict[str, Any]) -> str:
    """``+2.80 s, between 2.20 and 3.40 s``: a difference and its interval."""
    value, low, high, unit = (row.get(key) for key in ("change", "low", "high", "unit"))
    if value is None:
        return "known on one side only"
    text = ("+" if value > 0 else "") + _difference(value, str(unit))
    if low is None or high is None:
        return f"{text}; too few values for an interval"
    first, last = _difference(low, str(unit)), _difference(high, str(unit))
    number, _, same = first.partition(" ")
    return f"{text}, between {number if last.endswith(f' {same}') and same else first} and {last}"


def changes(rows: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of a comparison that differ beyond noise, and the rest."""
    listed = list(rows)
    beyond = [row for row in listed if row.get("beyond_noise") is True]
    return beyond, [row for row in listed if row.get("beyond_noise") is not True]


def measured(row: dict[str, Any]) -> str:
    """Name a row of a comparison: ``p95 ttft``; rates are means by nature: ``error rate``."""
    statistic = None if row.get("metric") in _RATES else row.get("statistic")
    told = (statistic, row.get("metric"))
    return safe_text(" ".join(str(part) for part in told if part)).replace("_", " ")
