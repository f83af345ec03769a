"""The one path from files to a verdict; every command is one call of a function here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import analyzer
from analyzer.contract.types import (
    Explanation,
    Filters,
    Findings,
    Report,
    RequestView,
    Status,
    Table,
)
from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError
from analyzer.intake import hold_to, ingest
from analyzer.questions import catalog, request
from analyzer.questions import latency as latencies
from analyzer.questions import report as reports
from analyzer.questions.compare import compare as compared
from analyzer.questions.status import status_of
from analyzer.questions.verdict import verdict
from analyzer.report import html
from analyzer.report.values import quantity
from analyzer.runbook._evaluate import evaluate, outcome_of
from analyzer.runbook._play import all_plays, play_named
from analyzer.runbook._verify import verify as verified
from analyzer.store.case import open_case

__all__ = [
    "compare", "explain", "findings", "formats", "hold_to", "ingest", "latency", "report",
    "rules", "schema", "show", "sql", "status", "verify", "write_report",
]  # fmt: skip

DEFAULT_REPORT = Path("reports/incident.html")


@contextmanager
def _engine(db: str, filters: Filters | None = None) -> Iterator[Engine]:
    case = open_case(db)
    try:
        yield Engine(case, filters)
    finally:
        case.close()


def _judged(engine: Engine) -> Findings:
    found = evaluate(engine, quantity)
    return replace(found, verdict=verdict(found, latencies.by_metric(engine, ()), quantity))


def status(db: str, filters: Filters | None = None) -> Status:
    """Sources, time span, coverage, problems, and what cannot be said yet."""
    with _engine(db, filters) as engine:
        return status_of(db, engine, evaluate(engine, quantity).cannot_say)


def latency(
    db: str,
    filters: Filters | None = None,
    *,
    by: Sequence[str] = (),
    slowest: int = 0,
    slo: Sequence[str] = (),
) -> Table:
    """Statistics of every metric by group, or the slowest requests, or objectives met."""
    with _engine(db, filters) as engine:
        if slo:
            return latencies.objectives(engine, slo)
        if slowest:
            return latencies.slowest(engine, slowest)
        return latencies.by_metric(engine, by)


def show(db: str, request_id: str) -> RequestView:
    """One request over all vantages, and the records it came from."""
    with _engine(db) as engine:
        return request.view(engine, request_id)


def findings(db: str, filters: Filters | None = None) -> Findings:
    """Every rule's outcome: found, clear, or cannot say."""
    with _engine(db, filters) as engine:
        return _judged(engine)


def explain(db: str, rule: str, filters: Filters | None = None) -> Explanation:
    """One rule: its outcome here, evidence with SQL, action, and when it is done."""
    play = play_named(rule)
    with _engine(db, filters) as engine:
        outcome = outcome_of(play, engine, quantity)
    return Explanation(
        rule=rule,
        title=play.front.title,
        outcome=outcome,
        others=(),
        claims=play.front.claims,
        fires_when=play.fires_when,
    )


def rules() -> frozenset[str]:
    """Ids of all findings the tool can make."""
    return frozenset(all_plays())


def verify(
    db: str,
    rule: str | None = None,
    filters: Filters | None = None,
    *,
    paths: Sequence[str] = (),
) -> Table:
    """Hold every ``done when`` to a later window of the case, or to a later capture (``paths``).

    Without a rule, those of the findings that fire in the whole case.
    """
    if rule is not None:
        plays = [play_named(rule)]
    else:
        fired = [one.rule for one in findings(db).found if one.severity != "note"]
        plays = [play_named(name) for name in dict.fromkeys(fired)]
    if not paths:
        with _engine(db, filters) as engine:
            return verified(plays, engine)
    with TemporaryDirectory(prefix="analyze-verify-") as folder:
        later = str(Path(folder) / "later.duckdb")
        ingest(later, paths)
        with _engine(later, filters) as engine:
            return verified(plays, engine)


def compare(
    db: str, baseline: Filters, window: Filters, *, baseline_db: str | None = None
) -> Table:
    """Every metric in two windows of one case, or in two cases, with bootstrap intervals."""
    with _engine(baseline_db or db, baseline) as before, _engine(db, window) as after:
        return compared(before, after)


def report(db: str, filters: Filters | None = None, *, title: str | None = None) -> Report:
    """Everything the report shows, as plain values."""
    with _engine(db, filters) as engine:
        found = _judged(engine)
        given = filters is not None and (filters.since_ns or filters.until_ns) is not None
        return reports.build(
            engine, found, title, analyzer.__version__, quantity, window_given=given
        )


def write_report(
    db: str,
    path: str | Path | None = None,
    filters: Filters | None = None,
    *,
    title: str | None = None,
    force: bool = False,
) -> Path:
    """Write the HTML report. The default path is overwritten, a named one only with ``force``."""
    target = Path(path) if path is not None else DEFAULT_REPORT
    if path is not None and target.exists() and not force:
        raise AnalyzerError(f"{target} exists", "--force overwrites it")
    page = html.render(report(db, filters, title=title))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # A full disk must not leave half a report where a whole one stood.
        draft = target.with_name(f".{target.name}.draft")
        draft.write_text(page, encoding="utf-8")
        draft.replace(target)
    except OSError as error:
        raise AnalyzerError(
            f"cannot write {target}: {error.strerror}", "-o FILE names another"
        ) from None
    return target


def sql(db: str, query: str, filters: Filters | None = None) -> Table:
    """Rows of any query over tables and analyses; the case is open for reading only."""
    with _engine(db, filters) as engine:
        return Table("analyze.sql", tuple(engine.rows(query)))


def formats(name: str | None = None) -> Table:
    """Formats that can be read, or one of them in detail."""
    return catalog.formats(name)


def schema(name: str | None = None) -> Table:
    """Columns of tables and analyses."""
    return catalog.schema(name)
