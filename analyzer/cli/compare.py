"""``analyze compare``."""

from __future__ import annotations

import click

from analyzer.cli._options import (
    Window,
    db_option,
    example,
    format_option,
    html_only,
    output_options,
    show,
    wrote,
)
from analyzer.contract.types import Filters
from analyzer.report.values import rfc3339


@click.command(
    "compare",
    epilog=example(
        "analyze compare --baseline 2026-09-10..2026-09-11 --window 2026-09-17..2026-09-18",
        "analyze compare --baseline-db before.duckdb -o changes.html",
    ),
)
@click.option("--baseline", metavar="A..B", type=Window(), help="The window before.")
@click.option("--window", metavar="C..D", type=Window(), help="The window after.")
@click.option("--baseline-db", metavar="FILE", help="The case before, instead of a window.")
@click.option("--model", metavar="NAME", help="Only this model.")
@click.option("--route", metavar="NAME", help="Only this route.")
@output_options
@format_option
@db_option
def command(
    *,
    baseline: tuple[int, int] | None,
    window: tuple[int, int] | None,
    baseline_db: str | None,
    model: str | None,
    route: str | None,
    output: str | None,
    force: bool,
    form: str,
    db: str,
) -> None:
    """Compare every metric of two windows or two cases: what changed beyond noise.

    Intervals are 95 % bootstraps of the difference. -f json and csv give every row.
    """
    from analyzer import api

    if not baseline_db and not (baseline and window):
        raise click.UsageError("give --baseline A..B and --window C..D, or --baseline-db FILE")
    if (
        not baseline_db
        and baseline
        and window
        and max(baseline[0], window[0]) < min(baseline[1], window[1])
    ):
        both = ", ".join(map(rfc3339, (max(baseline[0], window[0]), min(baseline[1], window[1]))))
        raise click.UsageError(
            f"the windows overlap ({both}): requests would be compared with themselves"
        )
    html_only(output)
    before, after = (
        Filters(since_ns=since, until_ns=until, model=model, route=route)
        for since, until in (baseline or (None, None), window or (None, None))
    )
    if output is None:
        show(api.compare(db, before, after, baseline_db=baseline_db), form)
        return
    table = api.write_compare(db, output, before, after, baseline_db=baseline_db, force=force)
    show(table, form)
    wrote(output, form)
