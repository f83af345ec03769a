"""``analyze cost``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from analyzer.cli import _complete
from analyzer.cli._options import (
    Window,
    db_option,
    example,
    filter_options,
    format_option,
    show,
)

if TYPE_CHECKING:
    from analyzer.contract.types import Filters


@click.command(
    "cost",
    epilog=example(
        "analyze cost --by model,user",
        "analyze cost --by day --zone Europe/Berlin",
        "analyze cost --baseline 2026-09-10..2026-09-17 --window 2026-09-17..2026-09-24",
    ),
)
@click.option(
    "--by",
    metavar="KEY,...",
    default="model",
    show_default=True,
    shell_complete=_complete.costs,
    help="Group: model, provider, route, user, key, team, session, agent, tier, source, part, "
    "day, hour.",
)
@click.option(
    "--top",
    metavar="N",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Groups listed, dearest first; 0 = all.",
)
@click.option(
    "--zone",
    metavar="ZONE",
    default="UTC",
    show_default=True,
    help="Whose days and hours: Europe/Berlin, +09:00.",
)
@click.option("--baseline", type=Window(), help="Spike: the time before, A..B.")
@click.option("--window", type=Window(), help="Spike: the time asked about, C..D.")
@filter_options
@format_option
@db_option
def command(
    *,
    by: str,
    top: int,
    zone: str,
    baseline: tuple[int, int] | None,
    window: tuple[int, int] | None,
    filters: Filters,
    form: str,
    db: str,
) -> None:
    """What was used and what it should cost, what changed, and what was paid for nothing.

    People and API keys are shown as hashes. Subscriptions are API-equivalent, never a bill.
    """
    from analyzer import api

    if (baseline is None) != (window is None):
        raise click.UsageError("--baseline and --window belong together: give both")
    keys = tuple(key.strip() for key in by.split(",") if key.strip())
    show(
        api.cost(db, filters, by=keys, top=top, zone=zone, baseline=baseline, window=window), form
    )
