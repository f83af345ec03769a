"""``analyze simulate``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from analyzer.cli import _console, _two_stage, _what_if
from analyzer.cli._options import example, filter_options, format_option, show

if TYPE_CHECKING:
    from analyzer.contract.types import Filters, Table

_TWO_STAGE = "two-stage"


@click.command(
    "simulate",
    epilog=example(
        "analyze simulate buffered -o logs/",
        "analyze simulate world.toml -o logs/ --set engine.max_running=64 --seed 7",
        "analyze simulate saturation --what-if batch=64 --what-if replicas=2",
        "analyze simulate --like analyze.duckdb --what-if batch=64 --since 2026-09-17",
        "analyze simulate two-stage --set prompt=400",
    ),
)
@click.argument("scenario", metavar="[SCENARIO]", required=False)
@click.option("-o", "--output", metavar="DIR", help="Folder for logs and truth.jsonl.")
@click.option(
    "--set",
    "sets",
    metavar="KEY=VALUE",
    multiple=True,
    help="A field of the world, or batch, chunk, prompt, output, cap, cache, weights, "
    "kv, replicas, rate; repeatable.",
)
@click.option("--seed", metavar="N", type=click.IntRange(min=0), help="Another throw of the dice.")
@click.option(
    "--what-if",
    "what_if",
    metavar="KEY=VALUE",
    multiple=True,
    help="Compare the world with and without this; repeatable. Writes no logs.",
)
@click.option("--like", metavar="CASE", help="Fit a world to this case's database, in its place.")
@click.option("--force", is_flag=True, help="Write into a folder that is not empty.")
@filter_options
@format_option
def command(
    *, scenario: str | None, output: str | None, sets: tuple[str, ...], seed: int | None,
    what_if: tuple[str, ...], like: str | None, force: bool, filters: Filters, form: str,
) -> None:  # fmt: skip
    """Write logs in real formats, with known truth beside them.

    SCENARIO is a world's TOML file, the name of a world that ships, or two-stage: the teaching
    model of prefill and decode in units of cost. The same world and seed give the same bytes.
    With --like a world is fitted to a case: its arrivals, lengths, cache share and step times. The
    filters say to which part of it.
    """
    from analyzer import api

    if (scenario is None) == (like is None):
        raise click.UsageError("name a SCENARIO, or give --like CASE; one of them")
    if like is None and filters != type(filters)():
        raise click.UsageError("filters choose a part of the case that --like names")
    if scenario == _TWO_STAGE:
        _print_two_stage(api.two_stage(dict(one.partition("=")[::2] for one in sets)), form)
    elif what_if:
        if like is None:
            table = api.what_if(str(scenario), what_if, sets=sets, seed=seed)
        else:
            table = api.what_if_like(like, what_if, filters, sets=sets, seed=seed)
        _print_moves(table, form, ("before", "after"))
    elif output is None:
        raise click.UsageError("give -o DIR for the logs, or --what-if KEY=VALUE for a comparison")
    elif like is not None:
        table = api.simulate_like(like, output, filters, sets=sets, seed=seed, force=force)
        _print_moves(table, form, ("case", "world"))
        _console.note(f"Wrote {output}/world.toml and its logs. Next: change it, and simulate it")
    else:
        _simulate(str(scenario), output, sets, seed, form, force=force)


def _simulate(
    scenario: str, output: str, sets: tuple[str, ...], seed: int | None, form: str, *, force: bool
) -> None:
    from analyzer import api

    began = time.monotonic()
    table = api.simulate(scenario, output, sets=sets, seed=seed, force=force)
    took = time.monotonic() - began
    show(table, form)
    row = table.rows[0]
    rate = row["attempts"] / max(took, 1e-9)
    chunks = f", {row['chunks'] / max(took, 1e-9):,.0f} chunks/s" if row["chunks"] else ""
    _console.note(f"{rate:,.0f} requests/s{chunks}. Next: analyze ingest {output}")


def _print_two_stage(table: Table, form: str) -> None:
    if form in {"table", "md"}:
        _console.out(_two_stage.render(table, form))
    else:
        show(_two_stage.flat(table) if form == "csv" else table, form)


def _print_moves(table: Table, form: str, words: tuple[str, str]) -> None:
    if form in {"table", "md"}:
        _console.out(_what_if.render(table, form, words))
    else:
        show(table, form)
