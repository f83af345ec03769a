"""What access logs of proxies have in common: times, durations, and which lines are model calls.

Columns come as text, as the log has them; ``-`` and nothing at all mean the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl
import pyarrow as pa

from analyzer.contract.types import Batch
from analyzer.readers._fast_kinds import decimal
from analyzer.readers._fast_lines import contracted
from analyzer.readers._file import Lines
from analyzer.readers._line_log import problem_at
from analyzer.readers._times import DURATIONS, TIMES

NO_CALL = "GET, HEAD or OPTIONS: no model call"
NO_REQUEST = "a connection without a request"
OWN_ANSWER = "answered by the proxy itself"
EVENT_STREAM = r"^(?:text/event-stream|application/vnd\.amazon\.eventstream)"
_NUMBER = r"^[0-9]{1,%d}(?:\.[0-9]{1,9})?$"
_CLF = "%d/%b/%Y:%H:%M:%S %z"
_WRITTEN = r"^(\S+) (\S+)(?: \S+)?$"


def told(column: pl.Expr) -> pl.Expr:
    """The text, NULL where the log says there is none."""
    return pl.when(~column.str.strip_chars().is_in(["-", ""])).then(column)


def seconds(column: pl.Expr) -> pl.Expr:
    """Seconds as text to nanoseconds; NULL where they are none."""
    return _decimal(column, 9)


def milliseconds(column: pl.Expr) -> pl.Expr:
    """Milliseconds as text to nanoseconds; NULL where they are none."""
    return _decimal(column, 6)


def _decimal(column: pl.Expr, digits: int) -> pl.Expr:
    # More digits would be more nanoseconds than there are, and no duration.
    fits = column.str.contains(_NUMBER % (18 - digits))
    ns = decimal(pl.when(fits).then(column), digits)
    return pl.when(ns <= DURATIONS.last).then(ns)


def whole(column: pl.Expr) -> pl.Expr:
    """A count; NULL where it is none."""
    return pl.when(column.str.contains(r"^[0-9]{1,15}$")).then(column).cast(pl.Int64, strict=False)


def moment(column: pl.Expr) -> pl.Expr:
    """Unix seconds or milliseconds, ISO 8601 with its offset, or the common log's own form."""
    text = column.str.strip_chars("[] ")
    unix = pl.when(text.str.contains(r"^[0-9]{9,10}(?:\.[0-9]{1,9})?$")).then(text)
    ms = pl.when(text.str.contains(r"^[0-9]{12,13}(?:\.[0-9]{1,6})?$")).then(text)
    iso = text.str.to_datetime("%+", time_unit="ns", strict=False, time_zone="UTC").dt.epoch("ns")
    clf = text.str.to_datetime(_CLF, time_unit="us", strict=False).dt.epoch("us") * 1000
    ns = pl.coalesce(decimal(unix, 9), decimal(ms, 6), iso, clf)
    return pl.when(ns.is_between(TIMES.start, TIMES.last)).then(ns)


def written(request: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Method and target of a request line such as ``POST /v1/messages HTTP/1.1``."""
    return request.str.extract(_WRITTEN, 1), request.str.extract(_WRITTEN, 2)


def endpoint(target: pl.Expr) -> pl.Expr:
    """The path alone: hosts tell nothing of the call, and queries may hold keys."""
    return told(target.str.replace(r"^[a-z]+://[^/]*", "").str.replace(r"[?#].*$", ""))


def trace_of(column: pl.Expr) -> pl.Expr:
    """The trace id in a ``traceparent``, or the id itself."""
    return pl.coalesce(column.str.extract(r"^[0-9a-f]{2}-([0-9a-f]{32})-"), column)


def ignoring() -> pl.Expr:
    """Why a line is no model call, from ``method``, ``status`` and ``is_own``; NULL where it is.

    A proxy's own refusal (429, 502) is a failed call; its own answer to anything else is none.
    """
    status = pl.col("status").fill_null(0)
    return (
        pl.when(pl.col("method").is_in(["GET", "HEAD", "OPTIONS"]) & (status != 101))
        .then(pl.lit(NO_CALL))
        .when(pl.col("is_own").fill_null(value=False) & status.is_between(200, 399))
        .then(pl.lit(OWN_ANSWER))
    )


def unread(names: Mapping[str, str]) -> list[tuple[pl.Expr, str]]:
    """Columns that a line tells, but not so that they can be read: ``name_ns`` is then NULL."""
    return [
        (told(pl.col(text)).is_not_null() & pl.col(value).is_null(), f"{text} that is none")
        for value, text in names.items()
    ]


def first_bad(checks: Iterable[tuple[pl.Expr, str]]) -> pl.Expr:
    """What is wrong with a line, NULL where nothing is."""
    return pl.coalesce(*(pl.when(wrong).then(pl.lit(reason)) for wrong, reason in checks))


def batch_of(
    block: Lines,
    values: pl.DataFrame,
    columns: Sequence[str],
    tags: pl.DataFrame | None = None,
    others: Mapping[str, int] | None = None,
    broken: Sequence[tuple[int, str]] = (),
) -> Batch:
    """Rows and account of one block.

    ``values`` has the ``columns`` of ``request``, and ``ignored`` and ``bad``, both texts; a line
    that is bad gives no row. ``others``: lines ignored before, by reason.
    """
    ignored = values.filter(pl.col("ignored").is_not_null())
    asked = values.filter(pl.col("ignored").is_null())
    good = asked.filter(pl.col("bad").is_null())
    wrong = asked.filter(pl.col("bad").is_not_null()).select("record", "bad").rows()
    tables: dict[str, pa.Table] = {}
    if good.height:
        tables["request"] = contracted("request", good.select("record", *columns))
    if tags is not None and tags.height:
        kept = tags.join(good.select("record"), on="record", how="semi", maintain_order="left")
        if kept.height:
            tables["request_tag"] = contracted("request_tag", kept)
    counts = dict(others or {})
    for reason, lines in ignored.group_by("ignored").len().iter_rows():
        counts[reason] = counts.get(reason, 0) + lines
    problems = tuple(
        problem_at(record, reason, block) for record, reason in sorted([*wrong, *broken])
    )
    return Batch(tables, len(block.lines), good.height, counts, problems)
