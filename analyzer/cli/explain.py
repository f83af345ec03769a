"""``analyze explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from analyzer.cli import _complete
from analyzer.cli._options import (
    db_option,
    example,
    filter_options,
    format_option,
    next_step,
    show,
)
from analyzer.errors import AnalyzerError, hint_of, near

if TYPE_CHECKING:
    from analyzer.contract.types import Filters


@click.command(
    "explain",
    epilog=example(
        "analyze explain queue.admission-limit",
        "analyze explain queue",
    ),
)
@click.argument("rule", metavar="RULE", shell_complete=_complete.rules)
@filter_options
@format_option
@db_option
def command(*, rule: str, filters: Filters, form: str, db: str) -> None:
    """Explain one rule: symptom, evidence with its SQL, cause, action, done when.

    The first part of a rule's name (queue) lists the rules that begin with it.
    """
    from analyzer import api
    from analyzer.contract.types import Finding

    family = None if "." in rule else api.explain_family(db, rule, filters)
    if family is not None and not family.rows:
        families = {name.partition(".")[0] for name in api.rules()}
        known = families if near(rule, families) else api.rules()
        raise AnalyzerError(f"no rule or family {rule!r}", hint_of(rule, known))
    if family is None:
        told = api.explain(db, rule, filters)
        show(told, form)
        found = told.outcome
        if isinstance(found, Finding) and found.unit == "requests" and found.examples:
            next_step(form, db, "show", found.examples[0], why="one of its requests in full")
        return
    show(family, form)
    worst = next((row["rule"] for row in family.rows if row["outcome"] == "found"), None)
    next_step(form, db, "explain", worst or family.rows[0]["rule"])
