"""``analyze formats``."""

from __future__ import annotations

import click

from analyzer.cli import _complete
from analyzer.cli._options import example, format_option, show


@click.command(
    "formats",
    epilog=example(
        "analyze formats",
        "analyze formats native_stream",
    ),
)
@click.argument("name", metavar="[NAME]", required=False, shell_complete=_complete.readers)
@format_option
def command(*, name: str | None, form: str) -> None:
    """List the formats that can be read, or tell about one."""
    from analyzer import api

    show(api.formats(name), form)
