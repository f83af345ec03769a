"""The linear law as people read it: what a request costs before, and with, each output token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.report.blocks import Block, Words
from analyzer.report.values import quantity

if TYPE_CHECKING:
    from analyzer.contract.types import Report, Table


def sentence(row: dict[str, Any]) -> str:
    """One group in a line, with its intervals."""
    name = ", ".join(filter(None, (row["model"], row["route"]))) or "all requests"
    base, step = (
        f"{quantity(row[f'{part}_ns'], 'ns')} ({quantity(row[f'{part}_low_ns'], 'ns')} to "
        f"{quantity(row[f'{part}_high_ns'], 'ns')})"
        for part in ("base", "step")
    )
    return (
        f"{name}: b = {base} and k = {step}. An answer of 80 tokens takes "
        f"{quantity(row['short_ns'], 'ns')}, one of 400 {quantity(row['long_ns'], 'ns')}; the law "
        f"explains {quantity(row['explained'], 'ratio')} of the scatter of "
        f"{quantity(row['requests'], 'requests')}."
    )


def blocks(told: Table) -> list[Block]:
    """For terminal and Markdown."""
    return [Words(sentence(row)) for row in told.rows]


def linear_law(report: Report) -> dict[str, Any] | None:
    """For the page: sentences, and the curve of tokens a second."""
    if report.law is None:
        return None
    from analyzer.report.sections import drawn

    return {
        "sentences": [sentence(row) for row in report.law.rows],
        "charts": [
            (shown, chart.sql) for chart in report.law_charts if (shown := drawn(chart)) is not None
        ],
    }
