"""What several tests do: a case from a folder, its findings by rule."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import analyzer
from analyzer.contract.types import CannotSay, Clear, Filters, Finding, Findings
from analyzer.engines.duckdb import Engine
from analyzer.report.values import quantity
from analyzer.runbook._evaluate import UNTOLD, outcome_of
from analyzer.runbook._play import all_plays
from analyzer.store.case import open_case


def case_of(folder: Path, db: Path, **options) -> str:
    """Ingest a folder; every file must be read, every record accounted for."""
    result = analyzer.ingest(str(db), [str(folder)], **options)
    assert all(file.outcome == "read" for file in result.files), result.files
    return str(db)


@contextmanager
def engine_of(db: str, filters: Filters | None = None):
    """An engine over a case, closed afterwards."""
    case = open_case(db)
    try:
        yield Engine(case, filters)
    finally:
        case.close()


def outcomes(engine: Engine, rules: Iterable[str]) -> Findings:
    """What these rules say of a case; each takes time, and few share what they ask."""
    told = [outcome_of(all_plays()[rule], engine, quantity) for rule in sorted(rules)]
    kinds = (Finding, Clear, CannotSay)
    return Findings(*(tuple(one for one in told if isinstance(one, kind)) for kind in kinds))


def claimed(db: str, found=None) -> dict:
    """Rule -> finding, for what fires (warning or critical)."""
    found = analyzer.findings(db).found if found is None else found
    return {one.rule: one for one in found if one.severity != "note"}


def check_verdict(db: str, expect: dict, found=None) -> None:
    """Segment, cause and magnitude are right, nothing forbidden is claimed, all sentences whole.

    ``found``: its findings, where they are known already.
    """
    fired = claimed(db, found)
    for one in fired.values():
        said = (one.brief, one.symptom, one.cause, one.contradicts, *(a.do for a in one.actions))
        assert UNTOLD not in " ".join(said), one.rule
    forbidden = set(expect["must_not"]) & fired.keys()
    assert not forbidden, f"must not claim {forbidden}"
    if "rule" not in expect:
        return
    for wanted in (expect, *expect.get("also", ())):
        assert wanted["rule"] in fired, f"claimed {sorted(fired)} instead"
        check_claim(fired[wanted["rule"]], wanted)


def check_claim(finding, wanted: dict) -> None:
    """One finding says what it should; what the case does not know is not asked."""
    assert finding.segment == wanted["segment"]
    assert finding.requests == wanted["requests"]
    size = wanted["magnitude"]
    assert finding.magnitude.unit == size["unit"]
    assert abs(finding.magnitude.value / size["value"] - 1) <= wanted["tolerance"], (
        finding.magnitude,
        size,
    )
    if "cost_usd" in wanted:
        assert finding.cost_usd is not None
        assert abs(float(finding.cost_usd) / float(wanted["cost_usd"]) - 1) <= wanted.get(
            "cost_tolerance", 0.005
        ), (
            finding.cost_usd,
            wanted["cost_usd"],
        )
    numbers = [
        float(e.value) for e in finding.evidence if isinstance(e.value, int | float | Decimal)
    ]
    for value in wanted.get("told", ()):
        assert any(abs(one - value) <= 0.02 * abs(value) for one in numbers), (value, numbers)
    for text in wanted.get("said", ()):
        assert text in [e.value for e in finding.evidence], text
    if "onset_ns" in wanted:
        low, high = wanted["onset_ns"]
        assert finding.window is not None
        assert low <= finding.window[0] <= high, (finding.window, wanted["onset_ns"])
    for pattern in wanted.get("unsaid", ()):
        said = [a.do for a in finding.actions if re.search(pattern, a.do)]
        assert not said, said
