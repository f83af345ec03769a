"""``analyze explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from analyzer.cli import _complete
from analyzer.cli._options import db_option, example, filter_options, format_option, show

if TYPE_CHECKING:
    from analyzer.contract.types import Filters


@click.command(
    "explain",
    epilog=example(
        "analyze explain queue.admission-limit",
    ),
)
@click.argument("rule", metavar="RULE", shell_complete=_complete.rules)
@filter_options
@format_option
@db_option
def command(*, rule: str, filters: Filters, form: str, db: str) -> None:
    """Explain one rule: symptom, evidence with its SQL, cause, action, done when."""
    from analyzer import api

    show(api.explain(db, rule, filters), form)
