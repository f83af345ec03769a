"""``analyze findings``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from analyzer.cli._options import db_option, example, filter_options, format_option, next_step, show

if TYPE_CHECKING:
    from analyzer.contract.types import Filters, Findings


@click.command(
    "findings",
    epilog=example(
        "analyze findings --fail-on critical",
        "analyze findings -f json | jq '.findings[].rule'",
    ),
)
@click.option(
    "--fail-on",
    type=click.Choice(("critical", "warning")),
    help="Exit with 1 on a finding of this severity or a worse one.",
)
@filter_options
@format_option
@db_option
def command(*, fail_on: str | None, filters: Filters, form: str, db: str) -> None:
    """List what was found, what is clear and what cannot be said, counted apart."""
    from analyzer import api
    from analyzer.contract.types import Filters

    result = api.findings(db, filters)
    show(result, form)
    worst = next((one.rule for one in result.found if one.severity != "note"), None)
    if worst and filters == Filters():
        next_step(form, db, "explain", worst)
    if fail_on:
        _hold(result, fail_on)


def _hold(result: Findings, fail_on: str) -> None:
    from analyzer.contract.types import SEVERITIES
    from analyzer.errors import GateFailed

    bad = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    rules = [item.rule for item in result.found if item.severity in bad]
    if rules:
        message = f"--fail-on {fail_on}: found {', '.join(rules)}"
        raise GateFailed(message, f"analyze explain {rules[0]}")
