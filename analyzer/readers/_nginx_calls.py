"""Requests of nginx's lines: what the last upstream call took, and what those before it cost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from analyzer.readers._access_log import (
    EVENT_STREAM,
    NO_REQUEST,
    endpoint,
    first_bad,
    ignoring,
    moment,
    seconds,
    told,
    trace_of,
    unread,
    whole,
    written,
)
from analyzer.readers._nginx_lines import UPSTREAM
from analyzer.readers._times import seconds_to_ns

COLUMNS = (
    "vantage", "request_id", "response_id", "trace_id", "route", "endpoint", "start_ns", "clock",
    "timing", "e2e_ns", "connect_ns", "upstream_headers_ns", "upstream_ns", "upstream_calls",
    "upstream_failed_ns", "streamed", "status", "finish_reason",
)  # fmt: skip
_CLOSED = 499
_MORE = r", | : "
_BETWEEN = re.compile(r"(, | : )")
_LISTS = ("up_addr", "up_status", "up_connect", "up_header", "up_response")
_CALLS = pl.Schema(
    {"record": pl.Int64, "last_addr": pl.String, "connect_ns": pl.Int64,
     "upstream_headers_ns": pl.Int64, "upstream_ns": pl.Int64, "upstream_calls": pl.Int64,
     "upstream_failed_ns": pl.Int64}
)  # fmt: skip
_TAGS = pl.Schema({"record": pl.Int64, "name": pl.String, "value": pl.String})


@dataclass(frozen=True)
class _Call:
    """One call of an upstream; what is not told is None."""

    address: str | None
    status: int | None
    connect_ns: int | None
    header_ns: int | None
    response_ns: int | None
    retried: bool
    """nginx went on to the next server of the group, as it only does after a failure."""

    @property
    def failed(self) -> bool:
        """A redirect to another group follows an answer, so that one is no failure."""
        return self.retried if self.status is None else self.status >= 400


def requests_of(lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Columns of ``request`` with ``ignored`` and ``bad``; and ``request_tag``."""
    several = pl.any_horizontal(pl.col(name).str.contains(_MORE) for name in _LISTS)
    lines = lines.with_columns(several.fill_null(value=False).alias("several"))
    calls, retries = _several(lines.filter("several"))
    frame = lines.join(calls, on="record", how="left", maintain_order="left")
    method, target = written(pl.col("request"))
    up_ns = {name: seconds(pl.col(name)) for name in ("up_connect", "up_header", "up_response")}
    frame = frame.with_columns(
        method=pl.coalesce(told(pl.col("method")), method),
        target=pl.coalesce(told(pl.col("target")), target),
        end_ns=moment(pl.col("at")),
        e2e_ns=seconds(pl.col("took")),
        status_text=pl.col("status"),
        status=whole(pl.col("status")),
        connect_ns=pl.coalesce("connect_ns", up_ns["up_connect"]),
        upstream_headers_ns=pl.coalesce("upstream_headers_ns", up_ns["up_header"]),
        upstream_ns=pl.coalesce("upstream_ns", up_ns["up_response"]),
        upstream_calls=pl.coalesce("upstream_calls", _one_call()),
        is_own=pl.any_horizontal(pl.col(name).is_not_null() for name in UPSTREAM)
        & pl.all_horizontal(told(pl.col(name)).is_null() for name in UPSTREAM),
    )
    frame = frame.with_columns(**_identity(), **_outcome())
    values = frame.with_columns(
        ignored=pl.when(
            pl.col("request").is_not_null() & pl.col("method").is_null()
            & (pl.col("status") >= 400)
        ).then(pl.lit(NO_REQUEST)).otherwise(ignoring()),
        bad=_bad(),
    )  # fmt: skip
    return values, pl.concat([retries, _tags(values)]).sort("record", maintain_order=True)


def _one_call() -> pl.Expr:
    """One call where an upstream is told and no list of them."""
    called = pl.any_horizontal(told(pl.col(name)).is_not_null() for name in UPSTREAM)
    return pl.when(called).then(pl.lit(1, pl.Int64))


def _identity() -> dict[str, pl.Expr]:
    """What others know the request by: the id that came in, then the one that went on."""
    asked, answer, own = (told(pl.col(name)) for name in ("asked_id", "answer_id", "own_id"))
    first = pl.coalesce(asked, answer, own)
    other = pl.coalesce(pl.when(one != first).then(one) for one in (answer, own))
    return {
        "vantage": pl.lit("gateway"),
        "request_id": first,
        "response_id": other,
        "trace_id": trace_of(told(pl.col("trace"))),
        "route": pl.when("several").then("last_addr").otherwise(told(pl.col("up_addr"))),
        "endpoint": endpoint(pl.col("target")),
    }


def _outcome() -> dict[str, pl.Expr]:
    left = pl.col("completion").is_in(["", "-"]).fill_null(value=False)
    is_json = pl.col("sent_type").str.starts_with("application/json")
    events = pl.coalesce("sent_type", "some_type").str.contains(EVENT_STREAM)
    return {
        "start_ns": pl.col("end_ns") - pl.col("e2e_ns"),
        "clock": pl.when(pl.col("end_ns").is_not_null()).then(pl.lit("wall")),
        "timing": pl.lit("stated"),
        "streamed": pl.when(events)
        .then(pl.lit(value=True))
        .when(is_json)
        .then(pl.lit(value=False)),
        "finish_reason": pl.when(left | (pl.col("status") == _CLOSED)).then(pl.lit("abort")),
    }


def _bad() -> pl.Expr:
    one = ~pl.col("several")
    return first_bad(
        [
            (
                pl.col("took").is_null() & pl.col("status_text").is_null(),
                "neither a JSON object nor a common log line",
            ),
            (pl.col("took").is_null(), "no $request_time: add it to log_format"),
            (pl.col("e2e_ns").is_null(), "a request time that is none"),
            *unread({"end_ns": "at", "status": "status_text"}),
            *(
                (one & told(pl.col(text)).is_not_null() & pl.col(value).is_null(),
                 f"an upstream time that is none ({text.removeprefix('up_')})")
                for text, value in (
                    ("up_connect", "connect_ns"), ("up_header", "upstream_headers_ns"),
                    ("up_response", "upstream_ns"),
                )
            ),
        ]
    )  # fmt: skip


def _tags(values: pl.DataFrame) -> pl.DataFrame:
    """The vendor's own time, and streams that left much smaller than they came: compressed."""
    last = pl.col("up_bytes").str.extract(r"([0-9]{1,15})$").cast(pl.Int64, strict=False)
    sent = whole(pl.col("sent_bytes"))
    packed = told(pl.col("gzip")).is_not_null() | (2 * sent < last)
    small = pl.col("streamed") & packed & pl.col("finish_reason").is_null()
    vendor = told(pl.col("vendor_ms"))
    parts = [
        values.filter(small).select(
            "record", name=pl.lit("compressed_stream"), value=pl.lit("yes")
        ),
        values.filter(vendor.is_not_null()).select(
            "record", name=pl.lit("openai-processing-ms"), value=vendor
        ),
    ]  # fmt: skip
    return pl.concat(parts).match_to_schema(_TAGS)


def _several(lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Times of requests that took more than one call; and how the first ones failed."""
    rows, tags = [], []
    for record, *texts in lines.select("record", *_LISTS).iter_rows():
        calls = list(_calls(*texts))
        *before, last = calls
        spent = sum(call.response_ns or 0 for call in before)
        failed = any(call.failed for call in before)
        rows.append(
            (record, last.address, last.connect_ns,
             None if last.header_ns is None else spent + last.header_ns,
             None if last.response_ns is None else spent + last.response_ns, len(calls),
             sum(call.response_ns or 0 for call in before if call.failed) if failed else None)
        )  # fmt: skip
        tags += [(record, name, value) for name, value in _retries(before)]
    return (
        pl.DataFrame(rows, schema=_CALLS, orient="row"),
        pl.DataFrame(tags, schema=_TAGS, orient="row"),
    )


def _calls(*texts: str | None) -> Iterator[_Call]:
    lists = [_BETWEEN.split(text or "") for text in texts]
    count = max(len(one) for one in lists)
    marks = next(one for one in lists if len(one) == count)
    for place in range(0, count, 2):
        address, status, *times = (one[place] if place < len(one) else "" for one in lists)
        connect, header, response = (seconds_to_ns(text.strip() or None) for text in times)
        yield _Call(
            address.strip("- ") or None,
            int(status) if re.fullmatch(r"[0-9]{3}", status) else None,
            connect, header, response,
            retried=place + 1 < count and marks[place + 1] == ", ",
        )  # fmt: skip


def _retries(before: list[_Call]) -> Iterator[tuple[str, Any]]:
    """As gateways of our own records tell it: where the first call went, and how it failed."""
    first = before[0]
    if not first.failed:
        return
    if first.address:
        yield "first_route", first.address
    yield "first_failure", str(first.status or "no answer")
    if first.response_ns is not None:
        yield "first_call_ms", str(first.response_ns // 1_000_000)
