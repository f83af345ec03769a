"""``analyze ingest``."""

from __future__ import annotations

import click

from analyzer.cli import _complete, _console
from analyzer.cli._options import db_option, example, format_option, show


@click.command(
    "ingest",
    epilog=example(
        "analyze ingest logs/ --zone Europe/Berlin",
        "kubectl logs vllm-0 | analyze ingest -",
    ),
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option(
    "--reader",
    metavar="NAME",
    shell_complete=_complete.readers,
    help="Read every file with this reader.",
)
@click.option("--deployment", metavar="FILE", help="What the model runs on (JSON or TOML).")
@click.option("--prices", metavar="FILE", help="Prices (JSON or TOML).")
@click.option("--zone", metavar="ZONE", help="Zone of times that name none, as Europe/Berlin.")
@click.option("--year", metavar="YEAR", type=int, help="Year of dates that name none.")
@click.option("--strict", is_flag=True, help="Exit with 1 when a record cannot be read.")
@format_option
@db_option
def command(
    *,
    paths: tuple[str, ...],
    reader: str | None,
    deployment: str | None,
    prices: str | None,
    zone: str | None,
    year: int | None,
    strict: bool,
    form: str,
    db: str,
) -> None:
    """Read logs and traces: files, folders, globs, or - for stdin.

    What is read already is left alone; what has grown is read on.
    """
    from analyzer import api

    progress = _console.progress()
    try:
        result = api.ingest(
            db,
            paths,
            reader=reader,
            deployment=deployment,
            prices=prices,
            zone=zone,
            year=year,
            progress=progress,
        )
    finally:
        if progress:
            _console.end_progress()
    show(result, form)
    if strict:
        api.hold_to(result)
