"""``analyze verify``."""

from __future__ import annotations

import sys

import click

from analyzer.cli._options import Window, db_option, example, format_option, show
from analyzer.contract.types import Filters


@click.command(
    "verify",
    epilog=example(
        "analyze verify --window 2026-09-18..2026-09-19",
        "analyze verify queue.admission-limit logs-after-the-fix/",
    ),
)
@click.argument("words", metavar="[RULE] [PATH...]", nargs=-1)
@click.option("--window", metavar="A..B", type=Window(), help="A later window of this case.")
@format_option
@db_option
def command(*, words: tuple[str, ...], window: tuple[int, int] | None, form: str, db: str) -> None:
    """Hold each finding's done-when to a later window, or to logs captured later.

    The first word is a RULE if it names one; without, every finding that fires is held to.
    Exits with 1 unless all are met.
    """
    from analyzer import api

    rule = words[0] if words and words[0] in api.rules() else None
    paths = words[1:] if rule else words
    if bool(paths) == bool(window):
        raise click.UsageError("give a later --window A..B, or PATH... of a later capture")
    filters = Filters(since_ns=window[0], until_ns=window[1]) if window else None
    table = api.verify(db, rule, filters, paths=paths)
    show(table, form)
    if any(row["outcome"] != "met" for row in table.rows):
        sys.exit(1)
