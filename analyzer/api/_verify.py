"""Whether it is fixed: every ``done when`` asked again, of the case or of a later capture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import analyzer
from analyzer.api._opened import asked_span, opened
from analyzer.contract.types import Filters, Table
from analyzer.engines.duckdb import Engine
from analyzer.intake import ingest
from analyzer.questions import objective
from analyzer.questions.scope import span_of
from analyzer.questions.status import sources as sources_of
from analyzer.report import page
from analyzer.report.files import may_write, write
from analyzer.report.values import quantity
from analyzer.runbook._verify import Asked, asked_of
from analyzer.runbook._verify import verify as verified


def verify(
    db: str,
    rule: str | None = None,
    filters: Filters | None = None,
    *,
    paths: Sequence[str] = (),
    slo: Sequence[str] = (),
) -> Table:
    """Hold every ``done when`` to a later window of the case, or to a later capture (``paths``).

    Without a rule, those of the findings that fire in the whole case; ``rule`` may also be the
    first part of the names of several, as ``queue``. ``slo``: objectives, alone without a rule.
    """
    asked = _to_verify(db, rule, slo)
    with _later(db, filters, paths) as engine:
        return _verified(asked, engine, _own(db, engine, paths), slo)


def write_verify(
    db: str,
    path: str | Path,
    rule: str | None = None,
    filters: Filters | None = None,
    *,
    paths: Sequence[str] = (),
    slo: Sequence[str] = (),
    force: bool = False,
) -> Table:
    """Do the same, and write it as an HTML page too."""
    may_write(path, force=force)
    asked_of = _to_verify(db, rule, slo)
    with _later(db, filters, paths) as engine:
        table = _verified(asked_of, engine, _own(db, engine, paths), slo)
        sources = sources_of(engine)
    criteria = asked_of.criteria + objective.asked_of(slo)
    asked = f"a later capture: {', '.join(paths)}" if paths else page.span(asked_span(filters))
    write(path, page.verification(table, asked, sources, criteria, analyzer.__version__))
    return table


def _to_verify(db: str, rule: str | None, slo: Sequence[str]) -> Asked:
    objective.asked_of(slo)  # a mistake in them is told before anything is read
    if slo and rule is None:
        return Asked([], {})
    # A later capture can be held to a rule without the case that made one ask.
    if rule is not None and not Path(db).exists():
        return asked_of(rule, None, quantity)
    with opened(db) as engine:
        return asked_of(rule, engine, quantity)


def _own(db: str, engine: Engine, paths: Sequence[str]) -> bool:
    """Whether the logs that are asked are the case's own."""
    if not paths or not Path(db).exists():
        return False
    with opened(db) as case:
        known = {row["sha256"] for row in sources_of(case).rows}
    return {row["sha256"] for row in sources_of(engine).rows} <= known


def _verified(asked: Asked, engine: Engine, own: bool, slo: Sequence[str]) -> Table:  # noqa: FBT001
    table = verified(asked.plays, engine, asked.windows, asked.never)
    table = replace(table, rows=(*table.rows, *(objective.criteria(engine, slo) if slo else ())))
    if own:
        note = "These logs are in this case already: they are no later capture."
        table = replace(table, notes=(*table.notes, note))
    if engine.value("SELECT count(*) FROM resolve_request"):
        return table
    within = span_of(engine, quantity)
    told = f": those of the case start from {within}" if within else ""
    nothing = f"No request starts in the time asked about{told}."
    return replace(table, notes=(*table.notes, nothing))


@contextmanager
def _later(db: str, filters: Filters | None, paths: Sequence[str]) -> Iterator[Engine]:
    """The case itself, or one made of the later capture for as long as it is asked."""
    if not paths:
        with opened(db, filters) as engine:
            yield engine
        return
    with TemporaryDirectory(prefix="analyze-verify-") as folder:
        later = str(Path(folder) / "later.duckdb")
        ingest(later, paths)
        with opened(later, filters) as engine:
            yield engine
