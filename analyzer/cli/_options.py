"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from analyzer.cli import DEFAULT_DB, _console
from analyzer.contract.types import Filters
from analyzer.report.formats import FORMATS, render
from analyzer.report.values import rfc3339, safe_text, size

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[..., Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INT64 = 2**63
_CLOCK = re.compile(r"(\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9})\d*)?[Zz]?")
_NO_ZONE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?")
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d))?"
)


def _db(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    """Take the option after the command, else the one before it, else the default."""
    del param
    return value or ctx.find_root().params.get("db") or ctx.find_root().obj or DEFAULT_DB


def db_option(command: Command) -> Command:
    """Add ``--db`` to a command."""
    text = f"The case's database (default {DEFAULT_DB})."
    # Eager: a time without a date asks the case for its day.
    return click.option("--db", metavar="FILE", callback=_db, help=text, is_eager=True)(command)


def format_option(command: Command) -> Command:
    """Add ``-f`` to a command."""
    return click.option(
        "-f",
        "--format",
        "form",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="How to print the result.",
    )(command)


class Moment(click.ParamType[int]):
    """An RFC 3339 time or a date (its first moment, UTC), as ns since the epoch."""

    name = "time"

    def convert(
        self,
        value: str | int,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """Read to the nanosecond; a time without a zone is refused, since it could be any."""
        if isinstance(value, int):
            return value
        clock_only = _CLOCK.fullmatch(value.strip())
        if clock_only:
            value = self._on_the_only_day(clock_only, value, param, ctx)
        match = _TIME.fullmatch(value.strip())
        if not match and _NO_ZONE.fullmatch(value.strip()):
            told = value.strip().replace(" ", "T")
            self.fail(f"{value!r} is no time: it names no zone; UTC is {told}Z", param, ctx)
        if not match:
            self.fail(
                f"{value!r} is no time; write 2026-09-17 or 2026-09-17T14:10:00Z (zone needed)",
                param,
                ctx,
            )
        day, clock, fraction, zone = match.groups()
        text = f"{day}T{clock}{'+00:00' if zone in 'Zz' else zone}" if clock else f"{day}T00:00Z"
        try:
            seconds = (datetime.fromisoformat(text) - _EPOCH).total_seconds()
        except ValueError as error:
            self.fail(f"{value!r} is no time: {error}", param, ctx)
        moment_ns = int(seconds) * 1_000_000_000 + int((fraction or "0").ljust(9, "0"))
        if abs(moment_ns) >= _INT64:
            self.fail(f"{value!r} is out of range; times run from 1678 to 2262", param, ctx)
        return moment_ns

    def _on_the_only_day(
        self,
        match: re.Match[str],
        value: str,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        """Give a clock its date where the case has one day only; say so, for it is a guess."""
        from analyzer import api

        db = ctx.params.get("db") if ctx else None
        ends = api.span(db) if db and Path(db).exists() else None
        days = sorted({rfc3339(end)[:10] for end in ends}) if ends else []
        if len(days) != 1:
            spans = f"; the case runs from {days[0]} to {days[-1]}" if days else ""
            day = days[0] if days else "2026-09-17"
            self.fail(
                f"{value!r} is no time: it names no date{spans}. Write {day}T{match[1]}Z",
                param,
                ctx,
            )
        told = f"{days[0]}T{match[1]}{f'.{match[2]}' if match[2] else ''}Z"
        _console.note(f"note: {value} is read as {told}, the case's only day")
        return told


class Window(click.ParamType[tuple[int, int]]):
    """Two moments with ``..`` between: from the first on, before the second."""

    name = "window"

    def convert(
        self,
        value: str | tuple[int, int],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[int, int]:
        """Read both ends; a window that does not end after it begins is refused."""
        if isinstance(value, tuple):
            return value
        first, dots, last = value.partition("..")
        if not dots:
            self.fail(f"{value!r} is no window; write 2026-09-17..2026-09-18", param, ctx)
        moment = Moment()
        start, end = moment.convert(first, param, ctx), moment.convert(last, param, ctx)
        if end <= start:
            self.fail(f"{value!r} does not end after it begins", param, ctx)
        return start, end


def filter_options(command: Command) -> Command:
    """Add the filters to a command, which gets them as one ``filters`` argument."""

    @wraps(command)
    def filtered(**values: Any) -> Any:  # noqa: ANN401 - whatever the command takes and returns
        filters = Filters(
            since_ns=values.pop("since"),
            until_ns=values.pop("until"),
            model=values.pop("model"),
            route=values.pop("route"),
            session=values.pop("session"),
        )
        return command(filters=filters, **values)

    added = (
        click.option("--session", metavar="ID", help="Only this session."),
        click.option("--route", metavar="NAME", help="Only this route."),
        click.option("--model", metavar="NAME", help="Only this model."),
        click.option("--until", type=Moment(), help="Before this time or date (exclusive)."),
        click.option("--since", type=Moment(), help="From this time or date on (RFC 3339)."),
    )
    out: Command = filtered
    for option in added:
        out = option(out)
    return out


class MarkAt(click.ParamType["tuple[int, str]"]):
    """``TIME TEXT``: a moment the user knows of, and what happened then."""

    name = "mark"

    def convert(
        self,
        value: str | tuple[int, str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[int, str]:
        """Take the time from the front; what is left is the text."""
        if isinstance(value, tuple):
            return value
        match = _TIME.match(value.strip()) or _CLOCK.match(value.strip())
        text = value.strip()[match.end() :] if match else ""
        # A clock that is left over had no zone; it must not become the text of a mark at midnight.
        if not match or not text[:1].isspace() or re.match(r"\s+\d\d:\d\d", text):
            example = "2026-09-17T14:10:00Z roll-out of v2"
            self.fail(
                f"{value!r} is no mark; write time, zone and text, as {example!r}",
                param,
                ctx,
            )
        return Moment().convert(match[0], param, ctx), text.strip()


def slo_option(command: Command) -> Command:
    """Add ``--slo``, objectives in the user's terms."""
    text = "Objectives, as 'ttft<=2s,p95 tpot<=50ms'; a failure misses all. Repeatable."
    return click.option("--slo", metavar="GOAL,...", multiple=True, help=text)(command)


def output_options(command: Command) -> Command:
    """Add ``-o`` and ``--force`` to a command whose answer can be a page."""
    command = click.option("--force", is_flag=True, help="Overwrite the file named by -o.")(command)
    text = "Write the answer as an HTML page too."
    return click.option("-o", "--output", metavar="FILE.html", help=text)(command)


def html_only(path: str | None) -> None:
    """Refuse a page that is called like something else: a PDF would be no PDF."""
    ending = Path(path).suffix.lower() if path else ""
    if ending not in ("", ".html", ".htm"):
        raise click.UsageError(f"-o {path}: it is written as HTML; give a name that ends in .html")


def wrote(path: str | Path, form: str) -> None:
    """Say what was written; on stderr where stdout is for a program."""
    file = Path(path)
    text = f"Wrote {file} ({size(file.stat().st_size)}, opens without a network)"
    if form == "table":
        _console.out(f"\n{safe_text(text)}\n")
    else:
        _console.note(text)


def next_step(form: str, db: str, *words: str, why: str = "") -> None:
    """Name the command that people run next."""
    if form == "table":
        case = () if db == DEFAULT_DB else ("--db", db)
        what = f"Next, {why}" if why else "Next"
        _console.out(f"\n{what}: {safe_text(shlex.join(('analyze', *case, *words)))}\n")


def example(*lines: str) -> str:
    """Lay out the example at the end of a command's help, marked so that click won't wrap it."""
    return "\n".join(("\b", "Example:", *(f"  {line}" for line in lines)))


def show(value: object, form: str) -> None:
    """Print a result in the format asked for."""
    _console.out(render(value, form, width=_console.width(), color=_console.color()))
