"""The one path from files to a verdict; every command is one call of a function here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import analyzer
from analyzer.contract.outputs import BINS_NS, GROUPS
from analyzer.contract.types import (
    Criterion,
    Explanation,
    Filters,
    Findings,
    Mark,
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
from analyzer.questions.compare import QUESTION as COMPARED_SQL
from analyzer.questions.compare import compare as compared
from analyzer.questions.status import sources as sources_of
from analyzer.questions.status import status_of
from analyzer.questions.timeline import standout_sentence
from analyzer.questions.verdict import verdict
from analyzer.report import html, page, share
from analyzer.report.charts import timeline_png
from analyzer.report.timeline import timeline
from analyzer.report.values import quantity
from analyzer.report.words import by_severity
from analyzer.runbook._evaluate import evaluate, outcome_of
from analyzer.runbook._play import Play, all_plays, play_named
from analyzer.runbook._verify import verify as verified
from analyzer.store.case import open_case

__all__ = [
    "compare", "explain", "findings", "formats", "groups", "hold_to", "ingest", "latency", "report",
    "rules", "schema", "show", "sql", "status", "verify", "write_compare", "write_report",
    "write_verify",
]  # fmt: skip

DEFAULT_REPORT = Path("reports/incident.html")


@contextmanager
def _engine(db: str, filters: Filters | None = None) -> Iterator[Engine]:
    case = open_case(db)
    try:
        yield Engine(case, filters)
    finally:
        case.close()


def _some(engine: Engine, filters: Filters | None) -> None:
    """Raise where filters leave no request of a case that has some: an answer would mislead."""
    if filters in (None, Filters()) or engine.value("SELECT count(*) FROM resolve_request"):
        return
    told = engine.rows(
        "SELECT count(*) AS n, min(start_ns) AS first_ns, max(start_ns) AS last_ns "
        "FROM resolve_told"
    )[0]
    if told["n"]:
        rows = engine.rows("SELECT DISTINCT model FROM request WHERE model IS NOT NULL ORDER BY 1")
        models = ", ".join(row["model"] for row in rows[:5]) or "not told"
        span = f"{quantity(told['first_ns'], 'time_ns')} to {quantity(told['last_ns'], 'time_ns')}"
        raise AnalyzerError("no request matches the filters", f"the case: {span}; models: {models}")


def _judged(engine: Engine) -> Findings:
    found = evaluate(engine, quantity)
    told = latencies.by_metric(engine, ())
    return replace(
        found, verdict=verdict(found, told, quantity, standout_sentence(engine, quantity))
    )


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
    if bool(by) + bool(slowest) + bool(slo) > 1:
        raise AnalyzerError(
            "--by, --slowest and --slo answer different questions", "ask them one by one"
        )
    with _engine(db, filters) as engine:
        _some(engine, filters)
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
        _some(engine, filters)
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


def groups() -> tuple[str, ...]:
    """Keys that ``latency`` can group by."""
    return (*GROUPS, *BINS_NS)


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
    plays = _to_verify(db, rule)
    with _later(db, filters, paths) as engine:
        return verified(plays, engine)


def write_verify(
    db: str,
    path: str | Path,
    rule: str | None = None,
    filters: Filters | None = None,
    *,
    paths: Sequence[str] = (),
    force: bool = False,
) -> Table:
    """Do the same, and write it as an HTML page too."""
    _may_write(path, force=force)
    plays = _to_verify(db, rule)
    with _later(db, filters, paths) as engine:
        table, sources = verified(plays, engine), sources_of(engine)
    criteria = tuple(
        (play.rule, Criterion(one.metric, one.op, one.value, one.unit, one.sql))
        for play in plays
        for one in play.front.done_when
    )
    asked = f"a later capture: {', '.join(paths)}" if paths else page.span(_window(filters))
    _write(path, page.verification(table, asked, sources, criteria, analyzer.__version__))
    return table


def _to_verify(db: str, rule: str | None) -> list[Play]:
    if rule is not None:
        return [play_named(rule)]
    fired = [one.rule for one in findings(db).found if one.severity != "note"]
    return [play_named(name) for name in dict.fromkeys(fired)]


@contextmanager
def _later(db: str, filters: Filters | None, paths: Sequence[str]) -> Iterator[Engine]:
    """The case itself, or one made of the later capture for as long as it is asked."""
    if not paths:
        with _engine(db, filters) as engine:
            yield engine
        return
    with TemporaryDirectory(prefix="analyze-verify-") as folder:
        later = str(Path(folder) / "later.duckdb")
        ingest(later, paths)
        with _engine(later, filters) as engine:
            yield engine


def compare(
    db: str, baseline: Filters, window: Filters, *, baseline_db: str | None = None
) -> Table:
    """Every metric in two windows of one case, or in two cases, with bootstrap intervals."""
    with _engine(baseline_db or db, baseline) as before, _engine(db, window) as after:
        return compared(before, after)


def write_compare(
    db: str,
    path: str | Path,
    baseline: Filters,
    window: Filters,
    *,
    baseline_db: str | None = None,
    force: bool = False,
) -> Table:
    """Do the same, and write it as an HTML page too."""
    _may_write(path, force=force)
    with _engine(baseline_db or db, baseline) as before, _engine(db, window) as after:
        table = compared(before, after)
        sides = (
            ("Before", _window(baseline), sources_of(before)),
            ("After", _window(window), sources_of(after)),
        )
    sql = COMPARED_SQL.format(when="TRUE").strip()
    _write(path, page.comparison(table, sides, sql, analyzer.__version__))
    return table


def _window(filters: Filters | None) -> tuple[int | None, int | None]:
    return (filters.since_ns, filters.until_ns) if filters else (None, None)


def report(
    db: str,
    filters: Filters | None = None,
    *,
    title: str | None = None,
    marks: Sequence[Mark] = (),
    share_safe: bool = False,
) -> Report:
    """Everything the report shows, as plain values; ``share_safe`` hashes every name in it."""
    with _engine(db, filters) as engine:
        _some(engine, filters)
        found = _judged(engine)
        given = filters is not None and (filters.since_ns or filters.until_ns) is not None
        whole = reports.build(
            engine, found, title, analyzer.__version__, quantity, window_given=given
        )
    whole = replace(whole, marks=tuple(sorted(marks, key=lambda mark: mark.time_ns)))
    return share.safe(whole) if share_safe else whole


def write_report(
    db: str,
    path: str | Path | None = None,
    filters: Filters | None = None,
    *,
    title: str | None = None,
    marks: Sequence[Mark] = (),
    share_safe: bool = False,
    png: str | Path | None = None,
    force: bool = False,
) -> Path:
    """Write the HTML report, and its picture into the folder ``png``.

    The default path is overwritten, what has a name only with ``force``.
    """
    picture_path = Path(png) / "timeline.png" if png is not None else None
    _may_write(path, force=force)
    _may_write(picture_path, force=force)
    whole = report(db, filters, title=title, marks=marks, share_safe=share_safe)
    picture = timeline(whole, by_severity(whole.findings.found)) if picture_path else None
    if picture and picture_path:
        _write(picture_path, timeline_png(picture))
    return _write(path if path is not None else DEFAULT_REPORT, html.render(whole))


def _may_write(path: str | Path | None, *, force: bool) -> None:
    """A file that someone names may be someone's work."""
    if path is not None and Path(path).exists() and not force:
        raise AnalyzerError(f"{path} exists", "--force overwrites it")


def _write(path: str | Path, content: str | bytes) -> Path:
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # A full disk must not leave half a report where a whole one stood.
        draft = target.with_name(f".{target.name}.draft")
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
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
