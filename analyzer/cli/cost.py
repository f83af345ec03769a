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
from analyzer.cli._sizes import Dollars

if TYPE_CHECKING:
    from decimal import Decimal

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
@click.option(
    "--self-host",
    metavar="GPU",
    shell_complete=_complete.gpus,
    help="Beside the API: this GPU, rented, with --host-model on it.",
)
@click.option(
    "--host-model",
    metavar="NAME|FILE",
    shell_complete=_complete.models,
    help="Model on it, its name may tell the weights (-FP8), or a config.json [default: --model].",
)
@click.option(
    "--gpus", metavar="N", type=click.IntRange(1, 1024), help="GPUs that hold the model once [1]."
)
@click.option("--gpu-usd-per-hour", metavar="USD", type=Dollars(), help="Rent of one GPU.")
@click.option(
    "--efficiency",
    metavar="RATIO",
    type=click.FloatRange(0, 1, min_open=True),
    help="Share of the hardware's bound that is attained [0.5].",
)
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
    self_host: str | None,
    host_model: str | None,
    gpus: int | None,
    gpu_usd_per_hour: Decimal | None,
    efficiency: float | None,
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
    told = {
        "model": host_model, "gpus": gpus, "gpu_usd_per_hour": gpu_usd_per_hour,
        "efficiency": efficiency,
    }  # fmt: skip
    told = {name: value for name, value in told.items() if value is not None}
    if told and self_host is None:
        raise click.UsageError("--self-host names the GPU that --host-model and the others are for")
    host = {"gpu": self_host, "model": filters.model, **told} if self_host else None
    keys = tuple(key.strip() for key in by.split(",") if key.strip())
    out = api.cost(
        db, filters, by=keys, top=top, zone=zone, baseline=baseline, window=window, host=host
    )
    show(out, form)
