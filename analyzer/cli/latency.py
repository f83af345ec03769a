"""``analyze latency``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from analyzer.cli import _complete
from analyzer.cli._options import (
    db_option,
    example,
    filter_options,
    format_option,
    show,
    slo_option,
)

if TYPE_CHECKING:
    from analyzer.contract.types import Filters


@click.command(
    "latency",
    epilog=example(
        "analyze latency --by model,hour",
        "analyze latency --slo 'ttft<=2s,p95 tpot<=50ms' --by route",
        "analyze latency --slowest 20 --since 2026-09-17",
    ),
)
@click.option(
    "--by",
    metavar="KEY,...",
    default="",
    shell_complete=_complete.groups,
    help="Group: model, route, hour, ...",
)
@click.option("--slowest", metavar="N", type=click.IntRange(min=0), default=0, help="Slowest N.")
@slo_option
@click.option("--law", is_flag=True, help="Time = base + step x output tokens, by model and route.")
@filter_options
@format_option
@db_option
def command(
    *, by: str, slowest: int, slo: tuple[str, ...], law: bool, filters: Filters, form: str, db: str
) -> None:
    """Split latency into queue, prefill, decode and network, with how each is known."""
    from analyzer import api

    keys = tuple(key.strip() for key in by.split(",") if key.strip())
    show(api.latency(db, filters, by=keys, slowest=slowest, slo=slo, law=law), form)
