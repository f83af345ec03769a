"""``analyze schema``."""

from __future__ import annotations

import click

from analyzer.cli import _complete
from analyzer.cli._options import example, format_option, show


@click.command(
    "schema",
    epilog=example(
        "analyze schema",
        "analyze schema request -f md",
    ),
)
@click.argument("name", metavar="[TABLE]", required=False, shell_complete=_complete.tables)
@format_option
def command(*, name: str | None, form: str) -> None:
    """List tables and columns with type, unit and meaning."""
    from analyzer import api

    show(api.schema(name), form)
