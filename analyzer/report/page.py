"""The answer of ``compare`` or ``verify`` as one HTML file, in the look of the report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from analyzer.report import answers, json, words
from analyzer.report.blocks import Grid, grid
from analyzer.report.values import safe_text, window

if TYPE_CHECKING:
    from analyzer.contract.types import Criterion, Table

_NAME = 300
"""Characters shown of a cell; the data block has all."""


@dataclass(frozen=True)
class Page:
    """What a page shows beside its table. ``sources``: heading and files of each side."""

    table: Table
    facts: tuple[tuple[str, str], ...]
    sources: tuple[tuple[str, Table], ...]
    queries: tuple[tuple[str, str], ...]
    version: str


def comparison(
    table: Table,
    sides: tuple[tuple[str, tuple[int | None, int | None], Table], ...],
    sql: str,
    version: str,
) -> str:
    """Page of a comparison; ``sides`` are name, window and sources of before and after."""
    beyond, _ = words.changes(table.rows)
    facts = tuple((name, span(between)) for name, between, _ in sides)
    files = {name: sources for name, _, sources in sides}
    same = len({str(sources.rows) for sources in files.values()}) == 1
    told = (("Files", next(iter(files.values()))),) if same else tuple(files.items())
    return _render(
        Page(table, facts, told, (("Values of both sides", sql),), version),
        title="Before and after",
        verdict=answers.compared(table),
        first=("What changed beyond noise", answers.changed(beyond)) if beyond else None,
        lines=answers.unchanged(table),
        method="Intervals are 95 % percentile bootstraps of the difference; one in twenty leaves "
        "out 0 by chance. A metric counts as changed when one of its statistics does.",
    )


def verification(
    table: Table,
    where: str,
    sources: Table,
    criteria: tuple[tuple[str, Criterion], ...],
    version: str,
) -> str:
    """Page of a verification; ``where`` says what was asked, ``criteria`` come with their rule."""
    queries = tuple((f"{rule}: {words.criterion(one)}", one.sql) for rule, one in criteria)
    blind = dict.fromkeys(
        f"{row['rule']} cannot be judged: {row['why']}"
        for row in table.rows
        if row["outcome"] == "cannot say"
    )
    return _render(
        Page(table, (("Asked of", where),), (("Files", sources),), queries, version),
        title="Is it fixed?",
        verdict=answers.verified(table),
        first=("Criteria", answers.criteria(table)) if table.rows else None,
        lines=list(blind),
        method="Every criterion is a query over the later window or capture. What cannot be said "
        "does not count as met.",
    )


def span(between: tuple[int | None, int | None]) -> str:
    """A window in words."""
    start, end = between
    if start is None or end is None:
        return "the whole case"
    return f"{window((start, end))} (UTC)"


def _render(
    page: Page, *, title: str, verdict: str, first: tuple[str, Grid] | None, lines: list[str],
    method: str,
) -> str:  # fmt: skip
    return (
        _environment()
        .get_template("table.html")
        .render(
            title=title,
            verdict=verdict,
            first=first,
            lines=lines,
            method=method,
            facts=page.facts,
            table_of=answers.every(page.table.rows)
            if page.table.kind == "analyze.compare"
            else None,
            notes=page.table.notes,
            sources=[(name, grid(table)) for name, table in page.sources if table.rows],
            queries=page.queries,
            version=page.version,
            data=Markup(json.embedded(page.table)),  # noqa: S704 - escaped there for a data block
        )
    )


@cache
def _environment() -> Environment:
    env = Environment(
        loader=PackageLoader("analyzer.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    env.filters.update(cell=_cell)
    return env


def _shown(value: Any) -> Any:  # noqa: ANN401 - whatever a template prints
    plain = isinstance(value, str) and not isinstance(value, Markup)
    return safe_text(value, lines=True) if plain else value


def _cell(text: str) -> str:
    return text if len(text) <= _NAME else text[: _NAME - 1] + "…"
