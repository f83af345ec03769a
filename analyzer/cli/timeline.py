"""``analyze timeline``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from analyzer.cli._options import db_option, example, filter_options, format_option, show

if TYPE_CHECKING:
    from analyzer.contract.types import Filters


@click.command(
    "timeline",
    epilog=example(
        "analyze timeline",
        "analyze timeline --route edge-eu -f csv",
    ),
)
@filter_options
@format_option
@db_option
def command(*, filters: Filters, form: str, db: str) -> None:
    """Show load, waits, tokens, KV cache and errors over time, the incident marked.

    Each line has a scale of its own, with its highest value behind it.
    """
    from analyzer import api

    show(api.over_time(db, filters), form)
