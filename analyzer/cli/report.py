"""``analyze report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyzer.cli import _console
from analyzer.cli._options import db_option, example, filter_options, show
from analyzer.report.formats import FORMATS
from analyzer.report.values import size

if TYPE_CHECKING:
    from analyzer.contract.types import Filters

DEFAULT_PATH = "reports/incident.html"


@click.command(
    "report",
    epilog=example(
        "analyze report",
        'analyze report -o tuesday.html --title "Slow first tokens, Tuesday"',
        "analyze report -f md",
    ),
)
@click.option("-o", "--output", metavar="FILE", help=f"Where to write (default {DEFAULT_PATH}).")
@click.option("--title", metavar="TEXT", help="Title of the report.")
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
    force: bool,
    form: str | None,
    filters: Filters,
    db: str,
) -> None:
    """Write the incident report: one HTML file that needs no network."""
    from analyzer import api

    if form and output:
        raise click.UsageError("-f prints to the terminal and -o writes HTML: give one of them")
    if form:
        show(api.report(db, filters, title=title), form)
        return
    # The default path belongs to the tool; a path the user names may be someone's work.
    path = Path(
        api.write_report(
            db,
            output or DEFAULT_PATH,
            filters=filters,
            title=title,
            force=force or output is None,
        )
    )
    _console.out(f"Wrote {path} ({size(path.stat().st_size)}, opens without a network)\n")
