"""``analyze sql``."""

from __future__ import annotations

import click

from analyzer.cli._options import db_option, example, format_option, show


@click.command(
    "sql",
    epilog=example(
        "analyze sql 'SELECT reason, count(*) FROM problem GROUP BY ALL'",
        "analyze schema request",
    ),
)
@click.argument("query", metavar="QUERY")
@format_option
@db_option
def command(*, query: str, form: str, db: str) -> None:
    """Run a query over the case, read-only. Rows come out raw, as the query names them."""
    from analyzer import api

    show(api.sql(db, query), form)
