"""``analyze turns``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from analyzer.cli._options import db_option, example, filter_options, format_option, show

if TYPE_CHECKING:
    from analyzer.contract.types import Filters


@click.command(
    "turns",
    epilog=example(
        "analyze turns",
        "analyze turns --session ses-7f3a",
        "analyze turns --reasons --since 2026-09-17",
    ),
)
@click.option(
    "--top",
    metavar="N",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Conversations listed; 0 = all.",
)
@click.option("--reasons", is_flag=True, help="Why the cache was missed, over all of them.")
@filter_options
@format_option
@db_option
def command(*, top: int, reasons: bool, filters: Filters, form: str, db: str) -> None:
    """Conversations: prompt growth, what the cache kept, what each call cost.

    With --session, one of them call by call, its agents included.
    """
    from analyzer import api

    show(api.turns(db, filters, top=top, reasons=reasons), form)
