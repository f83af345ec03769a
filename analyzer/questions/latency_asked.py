"""Which question about latency is asked: one at a time."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.contract.types import Table
from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError
from analyzer.questions import latency, objective
from analyzer.questions import law as laws


def one_question(by: Sequence[str], *, slowest: int, slo: Sequence[str], law: bool) -> None:
    """Refuse what answers different questions."""
    if law and (by or slo or slowest):
        raise AnalyzerError("--law stands alone", "its groups are model and route")
    if slowest and (by or slo):
        which = "--by" if by else "--slo"
        raise AnalyzerError(f"{which} and --slowest answer different questions", "ask one by one")


def answer(
    engine: Engine,
    by: Sequence[str] = (),
    *,
    slowest: int = 0,
    slo: Sequence[str] = (),
    law: bool = False,
) -> Table:
    """Statistics by group, the slowest, objectives or the law."""
    if law:
        return laws.law(engine)
    if slo:
        return objective.objectives(engine, slo, by)
    if slowest:
        return latency.slowest(engine, slowest)
    return latency.by_metric(engine, by)
