"""``analyze verify``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from analyzer.cli import _complete
from analyzer.cli._options import (
    Window,
    db_option,
    example,
    format_option,
    html_only,
    next_step,
    output_options,
    show,
    slo_option,
    wrote,
)
from analyzer.contract.types import Filters
from analyzer.errors import near
from analyzer.report.answers import unmet
from analyzer.report.values import rfc3339


@click.command(
    "verify",
    epilog=example(
        "analyze verify --window 2026-09-18..2026-09-19",
        "analyze verify queue.admission-limit logs-after-the-fix/",
        "analyze verify --slo 'p95 ttft<=2s' logs-of-tonight/",
    ),
)
@click.argument("words", metavar="[RULE] [PATH...]", nargs=-1, shell_complete=_complete.rules)
@click.option("--window", metavar="A..B", type=Window(), help="A later window of this case.")
@slo_option
@output_options
@format_option
@db_option
def command(
    *,
    words: tuple[str, ...],
    window: tuple[int, int] | None,
    slo: tuple[str, ...],
    output: str | None,
    force: bool,
    form: str,
    db: str,
) -> None:
    """Hold each finding's done-when to a later window, or to logs captured later.

    The first word is a RULE, or the first part of several (queue), if it names one; without,
    every finding that fires is held to. With --slo and no RULE only the objectives are, and of
    the whole case if nothing else is named.
    Exits with 1 unless all are met.
    """
    from analyzer import api

    known = api.rules()
    families = {name.partition(".")[0] for name in known}
    # A folder called queue is meant as one.
    family = bool(words) and words[0] in families and not Path(words[0]).exists()
    rule = words[0] if words and (words[0] in known or family) else None
    if words and not rule and not Path(words[0]).exists():
        meant = near(words[0], families) or near(words[0], known)
        if meant:
            raise click.UsageError(f"no rule or path {words[0]!r}: did you mean {meant[0]}?")
    paths = words[1:] if rule else words
    if (paths and window) or not (paths or window or (slo and not rule)):
        raise click.UsageError("give a later --window A..B, or PATH... of a later capture")
    html_only(output)
    filters = Filters(since_ns=window[0], until_ns=window[1]) if window else None
    if output is None:
        table = api.verify(db, rule, filters, paths=paths, slo=slo)
    else:
        table = api.write_verify(db, output, rule, filters, paths=paths, slo=slo, force=force)
    show(table, form)
    if output is not None:
        wrote(output, form)
    rule_left = unmet(table)
    if rule_left in known:
        next_step(form, db, "explain", str(rule_left))
    elif rule_left and not paths:
        within = ("--since", rfc3339(window[0]), "--until", rfc3339(window[1])) if window else ()
        next_step(form, db, "latency", "--slo", ",".join(slo), *within)
    elif paths and not table.notes:
        why = "to look into these logs in a case of their own"
        next_step(form, "later.duckdb", "ingest", *paths, why=why)
    elif window:
        since, until = map(rfc3339, window)
        next_step(form, db, "findings", "--since", since, "--until", until)
    if any(row["outcome"] != "met" for row in table.rows):
        sys.exit(1)
