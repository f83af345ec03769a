"""What several tests do: a case from a folder, its findings by rule."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import analyzer
from analyzer.contract.types import Filters
from analyzer.engines.duckdb import Engine
from analyzer.runbook._evaluate import UNTOLD
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


def claimed(db: str) -> dict:
    """Rule -> finding, for what fires (warning or critical)."""
    return {one.rule: one for one in analyzer.findings(db).found if one.severity != "note"}


def check_verdict(db: str, expect: dict) -> None:
    """Segment, cause and magnitude are right, nothing forbidden is claimed, all sentences whole."""
    fired = claimed(db)
    for one in fired.values():
        said = (one.brief, one.symptom, one.cause, one.contradicts, *(a.do for a in one.actions))
        assert UNTOLD not in " ".join(said), one.rule
    forbidden = set(expect["must_not"]) & fired.keys()
    assert not forbidden, f"must not claim {forbidden}"
    if "rule" not in expect:
        return
    assert expect["rule"] in fired, f"claimed {sorted(fired)} instead"
    finding = fired[expect["rule"]]
    assert finding.segment == expect["segment"]
    assert finding.requests == expect["requests"]
    wanted = expect["magnitude"]
    assert finding.magnitude.unit == wanted["unit"]
    assert abs(finding.magnitude.value / wanted["value"] - 1) <= expect["tolerance"], (
        finding.magnitude,
        wanted,
    )
