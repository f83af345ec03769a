"""The rules of one family in a table: what each found, and what each claims."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.contract.types import Clear, Finding, Table
from analyzer.engines.duckdb import Engine
from analyzer.runbook._evaluate import Say, outcome_of
from analyzer.runbook._play import Play, all_plays


def family_of(name: str) -> list[Play]:
    """The plays whose name begins with ``name``, as ``queue``; none where there is no such."""
    return [play for rule, play in all_plays().items() if rule.startswith(f"{name}.")]


def outcomes(plays: Iterable[Play], engine: Engine, say: Say) -> Table:
    """One row a rule."""
    rows = []
    for play in plays:
        outcome = outcome_of(play, engine, say)
        found = outcome if isinstance(outcome, Finding) else None
        name = "clear" if isinstance(outcome, Clear) else "cannot say"
        rows.append(
            {
                "rule": play.rule,
                "outcome": "found" if found else name,
                "severity": found.severity if found else None,
                "requests": found.requests if found else 0,
                "coverage": outcome.coverage,
                "title": play.front.title,
            }
        )
    return Table("analyze.rules", tuple(rows))
