"""``analyze report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyzer.cli import _console
from analyzer.cli._options import (
    MarkAt,
    db_option,
    example,
    filter_options,
    html_only,
    show,
    slo_option,
)
from analyzer.contract.types import Mark
from analyzer.report.formats import FORMATS
from analyzer.report.values import moment, size, window

if TYPE_CHECKING:
    from analyzer.contract.types import Filters

DEFAULT_PATH = "reports/incident.html"


@click.command(
    "report",
    epilog=example(
        "analyze report",
        'analyze report -o tuesday.html --title "Slow first tokens, Tuesday"',
        'analyze report --mark "2026-09-17T14:10:00Z roll-out of v2" --share-safe',
        "analyze report -f md",
    ),
)
@click.option("-o", "--output", metavar="FILE", help=f"Where to write (default {DEFAULT_PATH}).")
@click.option("--title", metavar="TEXT", help="Title of the report.")
@click.option(
    "--mark",
    "marks",
    metavar='"TIME TEXT"',
    type=MarkAt(),
    multiple=True,
    help="A moment to mark on the timeline, as a roll-out; repeatable.",
)
@click.option(
    "--share-safe",
    is_flag=True,
    help="Hash ids, sessions, users, hosts, routes, files and tags; models and rules stay.",
)
@slo_option
@click.option("--png", metavar="DIR", help="Write the timeline as DIR/timeline.png too.")
@click.option("--force", is_flag=True, help="Overwrite the file named by -o.")
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Print the report's content in this format instead of writing HTML.",
)
@filter_options
@db_option
def command(
    *,
    output: str | None,
    title: str | None,
    marks: tuple[tuple[int, str], ...],
    share_safe: bool,
    slo: tuple[str, ...],
    png: str | None,
    force: bool,
    form: str | None,
    filters: Filters,
    db: str,
) -> None:
    """Write the incident report: one HTML file that needs no network."""
    from analyzer import api

    html_only(output)
    known = tuple(Mark(*mark) for mark in marks)
    if form and (output or png):
        raise click.UsageError("-f prints to the terminal, -o and --png write files: give one")
    if known:
        _warn_outside(known, api.span(db))
    if form:
        whole = api.report(db, filters, title=title, marks=known, share_safe=share_safe, slo=slo)
        show(whole, form)
        return
    path = Path(
        api.write_report(
            db,
            output,
            filters=filters,
            title=title,
            marks=known,
            share_safe=share_safe,
            slo=slo,
            png=png,
            force=force,
        )
    )
    _console.out(f"Wrote {path} ({size(path.stat().st_size)}, opens without a network)\n")
    picture = Path(png) / "timeline.png" if png else None
    if picture and picture.exists():
        _console.out(f"Wrote {picture} ({size(picture.stat().st_size)})\n")


def _warn_outside(marks: tuple[Mark, ...], span: tuple[int, int] | None) -> None:
    """A mark that the timeline cannot show is likely one of another day or zone."""
    if span is None:
        return
    for mark in marks:
        if not span[0] <= mark.time_ns <= span[1]:
            _console.note(
                f"warning: the mark {mark.text!r} at {moment(mark.time_ns)} lies outside the data "
                f"({window(span)}): it is listed, but not on the timeline"
            )
