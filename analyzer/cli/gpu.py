"""``analyze gpu``."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

import click

from analyzer.cli._options import Moment, Window, db_option, example, format_option, show

if TYPE_CHECKING:
    Asked = tuple[str, int, int]

_MS = re.compile(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*(?:ms)?\s*")


class Span(click.ParamType["tuple[str, int, int]"]):
    """``A..B``: two moments, or two times in ms since the trace's first event."""

    name = "window"

    def convert(
        self,
        value: str | Asked,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Asked:
        """Numbers are milliseconds; everything else is a time as --since takes it."""
        if isinstance(value, tuple):
            return value
        first, dots, last = value.partition("..")
        if not dots:
            self.fail(
                f"{value!r} is no window; write 120..180 (ms since the trace began), or two times",
                param,
                ctx,
            )
        ends = [_MS.fullmatch(one) for one in (first, last)]
        if not (ends[0] and ends[1]):
            return ("wall", *Window().convert(value, param, ctx))
        start, end = (int(Decimal(one[1]) * 1_000_000) for one in ends if one)
        if end <= start:
            self.fail(f"{value!r} does not end after it begins", param, ctx)
        return ("offset", start, end)


@click.command(
    "gpu",
    epilog=example(
        "analyze gpu",
        "analyze gpu --steps --top 10",
        "analyze gpu --export-window 120..180 window.json.gz",
    ),
)
@click.option("--steps", is_flag=True, help="Steps one by one, the longest first.")
@click.option("--classes", is_flag=True, help="All classes of work.")
@click.option("--ranks", is_flag=True, help="Ranks beside each other.")
@click.option("--trust", is_flag=True, help="What each rank's trace can carry.")
@click.option(
    "--top",
    metavar="N",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Steps listed; 0 = all.",
)
@click.option(
    "--export-window",
    "export",
    metavar="A..B FILE",
    type=(Span(), click.Path(dir_okay=False)),
    help="Write that window for Perfetto (.json or .json.gz): times, or ms since the trace began.",
)
@click.option("--force", is_flag=True, help="Overwrite the file of --export-window.")
@click.option("--since", type=Moment(), help="From this time or date on (RFC 3339).")
@click.option("--until", type=Moment(), help="Before this time or date (exclusive).")
@format_option
@db_option
def command(
    *,
    top: int,
    export: tuple[Asked, str] | None,
    force: bool,
    since: int | None,
    until: int | None,
    form: str,
    db: str,
    **tables: bool,
) -> None:
    """Profiler traces: can they be trusted, and where did device time go.

    Busy, idle and why; classes of kernels; steps by phase; ranks. --since and --until apply where
    a trace has wall time.
    """
    from analyzer import api
    from analyzer.contract.types import Filters

    asked_for = [name for name, is_asked in tables.items() if is_asked]
    if len(asked_for) > 1:
        raise click.UsageError(f"{', '.join(f'--{name}' for name in asked_for)}: give one")
    if export is not None:
        if asked_for or since is not None or until is not None:
            raise click.UsageError("--export-window A..B FILE stands alone")
        asked, path = export
        if not path.lower().endswith((".json", ".json.gz")):
            raise click.UsageError(
                f"--export-window {path}: give a name that ends in .json or .json.gz"
            )
        show(api.write_gpu_window(db, path, asked, force=force), form)
        return
    filters = Filters(since_ns=since, until_ns=until)
    show(api.gpu(db, filters, table="".join(asked_for), top=top), form)
