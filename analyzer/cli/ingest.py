"""``analyze ingest``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from analyzer.cli import _complete, _console
from analyzer.cli._options import db_option, example, format_option, show
from analyzer.report.values import plural

if TYPE_CHECKING:
    from analyzer.contract.types import IngestResult

_NAMED = 3
"""Files that could not be read, named in the error; the answer lists all."""


@click.command(
    "ingest",
    epilog=example(
        "analyze ingest logs/ --zone Europe/Berlin",
        "kubectl logs vllm-0 | analyze ingest -",
        "analyze ingest requests.csv --mapping mapping.toml   # analyze formats mapping",
    ),
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option(
    "--reader",
    metavar="NAME",
    shell_complete=_complete.readers,
    help="Read every file with this reader.",
)
@click.option(
    "--mapping",
    metavar="FILE",
    help="How to read CSV, JSON Lines or Parquet of requests (TOML).",
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
    mapping: str | None,
    deployment: str | None,
    prices: str | None,
    zone: str | None,
    year: int | None,
    strict: bool,
    form: str,
    db: str,
) -> None:
    """Read logs and traces: files, folders, globs, archives (zip, tar), or - for stdin.

    What is read already is left alone; what has grown is read on.
    """
    from analyzer import api

    progress = _console.progress()
    try:
        result = api.ingest(
            db,
            paths,
            reader=reader,
            mapping=mapping,
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
    _hold_to_files(result)


def _hold_to_files(result: IngestResult) -> None:
    """Exit with 2 where a file could not be read; one of no known format is only listed."""
    failed = [file for file in result.files if file.outcome == "failed" or file.nothing]
    if failed:
        from analyzer.errors import AnalyzerError

        told = [f"{one.path}: {one.why or 'each record is a problem'}" for one in failed[:_NAMED]]
        names = "; ".join(told)
        more = f" and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
        rest = "the others are in the case; " if len(result.files) > len(failed) else ""
        every = plural(len(result.files), "file")
        raise AnalyzerError(
            f"{len(failed)} of {every} could not be read ({names}{more})",
            f"{rest}mend it and run the same command again",
        )
