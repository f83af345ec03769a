"""``analyze show``."""

from __future__ import annotations

import click

from analyzer.cli._options import db_option, example, format_option, show


@click.command(
    "show",
    epilog=example(
        "analyze show req-0412",
        "analyze show req-0412/2 --lines --logs logs/",
    ),
)
@click.argument("request_id", metavar="ID")
@click.option("--lines", is_flag=True, help="Quote its lines from disk, prompt text masked.")
@click.option(
    "--logs",
    metavar="FOLDER",
    multiple=True,
    help="Where the logs lie, for --lines; beside this folder and the case's.",
)
@format_option
@db_option
def command(*, request_id: str, lines: bool, logs: tuple[str, ...], form: str, db: str) -> None:
    """Show one request: waterfall over all vantages, segments, tokens, the records behind it.

    ID/2 is its second attempt; of several the last is shown.
    """
    from analyzer import api

    show(api.show(db, request_id, lines=lines or bool(logs), logs=logs), form)
