"""``analyze show``."""

from __future__ import annotations

import click

from analyzer.cli._options import db_option, example, format_option, show


@click.command(
    "show",
    epilog=example(
        "analyze show req-0412",
    ),
)
@click.argument("request_id", metavar="ID")
@format_option
@db_option
def command(*, request_id: str, form: str, db: str) -> None:
    """Show one request: waterfall over all vantages, segments, tokens, the records behind it."""
    from analyzer import api

    show(api.show(db, request_id), form)
