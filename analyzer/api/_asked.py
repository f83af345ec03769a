"""What is asked of a case that is there: one function for each question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import analyzer
from analyzer.api._gpu import gpu, write_gpu_window
from analyzer.api._opened import asked_span, opened
from analyzer.api._verify import verify, write_verify
from analyzer.contract._cost_outputs import COST_GROUPS
from analyzer.contract.costs import Costs
from analyzer.contract.outputs import BINS_NS, GROUPS
from analyzer.contract.types import (
    Explanation,
    Filters,
    Findings,
    Mark,
    Report,
    RequestView,
    Status,
    Table,
)
from analyzer.engines.duckdb import Engine, statements
from analyzer.errors import AnalyzerError
from analyzer.questions import catalog, cost_asked, hardware, request
from analyzer.questions import latency_asked as latencies
from analyzer.questions import report as reports
from analyzer.questions import turns as conversations
from analyzer.questions._runs import runs_apart, sentence
from analyzer.questions.bounds import bounds, catalogued
from analyzer.questions.compare import QUESTION as COMPARED_SQL
from analyzer.questions.compare import compare as compared
from analyzer.questions.lines import quoted
from analyzer.questions.over_time import over_time as lanes_of
from analyzer.questions.scope import require_some
from analyzer.questions.self_host import Plan
from analyzer.questions.status import engine_sentence, status_of
from analyzer.questions.status import sources as sources_of
from analyzer.questions.timeline import standout_of, window_of
from analyzer.questions.verdict import split, verdict
from analyzer.report import page, share
from analyzer.report.files import may_write, write
from analyzer.report.timeline import timeline
from analyzer.report.values import quantity
from analyzer.report.words import by_severity
from analyzer.runbook._evaluate import evaluate, outcome_of
from analyzer.runbook._family import family_of, outcomes
from analyzer.runbook._play import all_plays, play_named
from analyzer.worlds import simulate, simulate_like, two_stage, what_if, what_if_like

__all__ = [
    "bounds", "bounds_observed", "catalogued", "compare", "cost", "cost_groups", "explain",
    "explain_family", "findings", "formats", "gpu", "groups", "latency",
    "over_time", "report", "rules", "schema", "show", "simulate", "simulate_like", "span",
    "sql", "status", "turns", "two_stage", "verify", "what_if", "what_if_like", "write_compare",
    "write_gpu_window", "write_report", "write_verify",
]  # fmt: skip

DEFAULT_REPORT = Path("reports/incident.html")


def _judged(engine: Engine) -> Findings:
    found = evaluate(engine, quantity)
    told = latencies.answer(engine)
    standing, servers = standout_of(engine), engine_sentence(engine, quantity)
    apart = sentence(runs_apart(engine, window_of(engine)))
    return replace(
        found,
        verdict=verdict(found, told, quantity, standing, servers, apart),
        split=split(told, quantity),
    )


def status(db: str, filters: Filters | None = None) -> Status:
    """Sources, time span, coverage, problems, and what cannot be said yet."""
    with opened(db, filters) as engine:
        return status_of(db, engine, evaluate(engine, quantity).cannot_say)


def latency(
    db: str,
    filters: Filters | None = None,
    *,
    by: Sequence[str] = (),
    slowest: int = 0,
    slo: Sequence[str] = (),
    law: bool = False,
) -> Table:
    """Statistics of every metric by group, the slowest requests, objectives, or the linear law."""
    with opened(db, filters) as engine:
        latencies.one_question(by, slowest=slowest, slo=slo, law=law)
        require_some(engine, filters, quantity)
        return latencies.answer(engine, by, slowest=slowest, slo=slo, law=law)


def turns(
    db: str, filters: Filters | None = None, *, top: int = 20, reasons: bool = False
) -> Table:
    """The conversations that cost most; with a session, its calls; or why caches were missed."""
    session = filters.session if filters else None
    with opened(db, conversations.without_session(filters)) as engine:
        require_some(engine, filters, quantity)
        if reasons:
            return conversations.reasons(engine)
        return (
            conversations.calls(engine, session)
            if session is not None
            else conversations.sessions(engine, top)
        )


def cost(
    db: str,
    filters: Filters | None = None,
    *,
    by: Sequence[str] = (),
    top: int = 20,
    zone: str = "UTC",
    baseline: tuple[int, int] | None = None,
    window: tuple[int, int] | None = None,
    host: Mapping[str, Any] | None = None,
) -> Costs:
    """What was used and what it costs by group and in all; what two windows differ by, exactly.

    ``host``: fields of ``questions.self_host.Plan``, to hold the API against GPUs of one's own.
    """
    with opened(db, filters) as engine:
        require_some(engine, filters, quantity)
        return cost_asked.answer(
            engine,
            by,
            top=top,
            zone=zone,
            windows=(baseline, window) if baseline and window else None,
            plan=Plan(**host) if host else None,
            filtered=filters not in (None, Filters()),
        )


def over_time(db: str, filters: Filters | None = None) -> Table:
    """The report's lanes by bin of time, the bins of the incident marked."""
    with opened(db, filters) as engine:
        require_some(engine, filters, quantity)
        return lanes_of(engine)


def explain_family(db: str, family: str, filters: Filters | None = None) -> Table:
    """Outcome of every rule of a family, such as ``queue``; empty where there is no such family."""
    plays = family_of(family)
    if not plays:
        return Table("analyze.rules", ())
    with opened(db, filters) as engine:
        return outcomes(plays, engine, quantity)


def show(
    db: str, request_id: str, *, lines: bool = False, logs: Sequence[str | Path] = ()
) -> RequestView:
    """One request over all vantages, and the records it came from.

    ``lines`` quotes the records from disk, masked, while the bytes are those that were ingested;
    ``logs`` are folders to look in beside the current one and the case's own.
    """
    with opened(db) as engine:
        key = request.key_of(engine, request_id)
        view = request.view_of(engine, key)
        if not lines:
            return view
        folders = dict.fromkeys((*map(Path, logs), Path(), Path(db).parent))
        return replace(view, lines=quoted(engine, key, tuple(folders)))


def findings(db: str, filters: Filters | None = None) -> Findings:
    """Every rule's outcome: found, clear, or cannot say."""
    with opened(db, filters) as engine:
        require_some(engine, filters, quantity)
        return _judged(engine)


def explain(db: str, rule: str, filters: Filters | None = None) -> Explanation:
    """One rule: its outcome here, evidence with SQL, action, and when it is done."""
    play = play_named(rule)
    with opened(db, filters) as engine:
        outcome = outcome_of(play, engine, quantity)
    return Explanation(
        rule=rule,
        title=play.front.title,
        outcome=outcome,
        others=(),
        claims=play.front.claims,
        fires_when=play.fires_when,
    )


def span(db: str) -> tuple[int, int] | None:
    """First and last time that any source of the case tells, ns; None where none does."""
    with opened(db) as engine:
        (told,) = engine.rows("SELECT min(first_ns) AS a, max(last_ns) AS b FROM source")
    return None if told["a"] is None else (told["a"], told["b"])


def rules() -> frozenset[str]:
    """Ids of all findings the tool can make."""
    return frozenset(all_plays())


def cost_groups() -> tuple[str, ...]:
    """Keys that ``cost`` can group by."""
    return COST_GROUPS


def groups() -> tuple[str, ...]:
    """Keys that ``latency`` can group by."""
    return (*GROUPS, *BINS_NS)


def compare(
    db: str, baseline: Filters, window: Filters, *, baseline_db: str | None = None
) -> Table:
    """Every metric in two windows of one case, or in two cases, with bootstrap intervals."""
    with _sides(db, baseline, window, baseline_db) as (before, after):
        return compared(before, after)


@contextmanager
def _sides(
    db: str, baseline: Filters, window: Filters, baseline_db: str | None
) -> Iterator[tuple[Engine, Engine]]:
    with opened(baseline_db or db, baseline) as before, opened(db, window) as after:
        require_some(before, baseline, quantity)
        require_some(after, window, quantity)
        yield before, after


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
    may_write(path, force=force)
    with _sides(db, baseline, window, baseline_db) as (before, after):
        table = compared(before, after)
        sides = (
            ("Before", asked_span(baseline), sources_of(before)),
            ("After", asked_span(window), sources_of(after)),
        )
    sql = COMPARED_SQL.format(when="TRUE").strip()
    write(path, page.comparison(table, sides, sql, analyzer.__version__))
    return table


def report(
    db: str,
    filters: Filters | None = None,
    *,
    title: str | None = None,
    marks: Sequence[Mark] = (),
    share_safe: bool = False,
    slo: Sequence[str] = (),
) -> Report:
    """Everything the report shows, as plain values; ``share_safe`` hashes every name in it."""
    with opened(db, filters) as engine:
        require_some(engine, filters, quantity)
        found = _judged(engine)
        given = filters is not None and (filters.since_ns or filters.until_ns) is not None
        whole = reports.build(
            engine, found, title, analyzer.__version__, quantity, window_given=given, slo=slo,
            filtered=filters not in (None, Filters()),
        )  # fmt: skip
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
    slo: Sequence[str] = (),
    png: str | Path | None = None,
    force: bool = False,
) -> Path:
    """Write the HTML report, and its picture into the folder ``png``.

    The default path is overwritten, what has a name only with ``force``.
    """
    # Only a report draws: the libraries for it would double the start of every other command.
    from analyzer.report import html
    from analyzer.report.charts import timeline_png

    if png is not None and Path(png).exists() and not Path(png).is_dir():
        raise AnalyzerError(
            f"--png {png} is a file", "it names a folder: the picture is FOLDER/timeline.png"
        )
    picture_path = Path(png) / "timeline.png" if png is not None else None
    may_write(path, force=force)
    may_write(picture_path, force=force)
    whole = report(db, filters, title=title, marks=marks, share_safe=share_safe, slo=slo)
    picture = timeline(whole, by_severity(whole.findings.found)) if picture_path else None
    if picture and picture_path:
        write(picture_path, timeline_png(picture))
    return write(path if path is not None else DEFAULT_REPORT, html.render(whole))


def bounds_observed(db: str, filters: Filters | None = None, **told: Any) -> Table:  # noqa: ANN401
    """How near the answers of a case come to the hardware they ran on.

    ``told``, fields of ``bounds.ask.Ask``, beats what the case says of the deployment.
    """
    with opened(db, filters, told) as engine:
        require_some(engine, filters, quantity)
        return hardware.observed(engine)


def sql(db: str, query: str, filters: Filters | None = None) -> Table:
    """Rows of any query over tables and analyses; the case is open for reading only."""
    if statements(query) > 1:
        raise AnalyzerError(
            "the query holds several statements", "only one is answered: run them one by one"
        )
    with opened(db, filters) as engine:
        return Table("analyze.sql", tuple(engine.rows(query)))


def formats(name: str | None = None) -> Table:
    """Formats that can be read, or one of them in detail."""
    return catalog.formats(name)


def schema(name: str | None = None) -> Table:
    """Columns of tables and analyses."""
    return catalog.schema(name)
