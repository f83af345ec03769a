"""``analyze status``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from analyzer.cli._options import db_option, example, filter_options, format_option, show

if TYPE_CHECKING:
    from analyzer.contract.types import Filters


@click.command(
    "status",
    epilog=example(
        "analyze status",
    ),
)
@filter_options
@format_option
@db_option
def command(*, filters: Filters, form: str, db: str) -> None:
    """Show what the case holds: sources, time span, coverage, problems, what cannot be said."""
    from analyzer import api

    show(api.status(db, filters), form)
