"""Access log of an AWS Application Load Balancer, as it lies in S3 (gzip or not)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import polars as pl

from analyzer.contract.types import Batch
from analyzer.readers._access_log import (
    NO_REQUEST,
    batch_of,
    endpoint,
    first_bad,
    ignoring,
    moment,
    seconds,
    told,
    unread,
    whole,
    written,
)
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._line_log import BLANK, LineByLine, read_log, texts
from analyzer.readers._reader import Claim, Options, Reader

_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}Z"
_START = re.compile(
    rf"(?:https?|h2|grpcs?|wss?) {_STAMP} \S+ \S+:\d+ \S+ (?:-?[\d.]+ ){{3}}".encode()
)
_CLASSIC = re.compile(rf"{_STAMP} \S+ \S+:\d+ \S+ (?:-?[\d.]+ ){{3}}".encode())
_HEAD = (
    rf"^\S+ (?<time>{_STAMP}) \S+ \S+ (?<target>\S+) (?<wait>\S+) (?<headers>\S+) \S+ "
    r'(?<status>\d{3}|-) (?:\d{3}|-) \d+ \d+ "(?<request>.*?)" "(?<rest>.*)$'
)
_REST = (
    r'^.*?" \S+ \S+ \S+ "(?<trace>[^"]*)" "[^"]*" "[^"]*" \S+ '
    rf'(?<created>{_STAMP}) "'
)
_COLUMNS = (
    "vantage", "request_id", "trace_id", "route", "endpoint", "start_ns", "clock", "timing",
    "e2e_ns", "upstream_headers_ns", "status", "finish_reason",
)  # fmt: skip
_CLOSED = 460
_FOREIGN = "not a line of an Application Load Balancer"


def probe(head: Head) -> Claim:
    """Lines that begin with a scheme, an end time and three processing times."""
    if any(_START.match(line) for line in head.lines[:50]):
        return Claim(1, "")
    if any(_CLASSIC.match(line) for line in head.lines[:50]):
        return Claim(0.6, "a classic load balancer's log has no time for the end of an answer")
    return Claim(0, "no line begins as those of a load balancer do")


def _requests(fields: pl.DataFrame) -> pl.DataFrame:
    method, url = written(pl.col("request"))
    trace = told(pl.col("trace"))
    root = trace.str.extract(r"Root=([^;\s]+)")
    frame = fields.with_columns(
        vantage=pl.lit("gateway"),
        # A client's own trace id keeps its root; what the balancer adds is the call's own.
        request_id=pl.coalesce(trace.str.extract(r"Self=([^;\s]+)"), root),
        trace_id=root,
        route=told(pl.col("target")),
        method=method,
        endpoint=endpoint(url.str.replace(r"^\w+://[^/]*", "")),
        end_ns=moment(pl.col("time")),
        start_ns=moment(pl.col("created")),
        clock=pl.lit("wall"),
        timing=pl.lit("stamps"),
        # -1: nothing was sent to a target, or it closed the connection.
        headers=pl.when(~pl.col("headers").str.starts_with("-")).then("headers"),
        status_text=pl.col("status"),
        status=whole(pl.col("status")),
        is_own=told(pl.col("target")).is_null(),
    ).with_columns(
        e2e_ns=pl.col("end_ns") - pl.col("start_ns"),
        upstream_headers_ns=seconds(pl.col("headers")),
        finish_reason=pl.when(pl.col("status") == _CLOSED).then(pl.lit("abort")),
    )
    return frame.with_columns(
        ignored=pl.when(pl.col("method") == "-").then(pl.lit(NO_REQUEST)).otherwise(ignoring()),
        bad=first_bad(
            [
                (pl.col("time").is_null(), _FOREIGN),
                (pl.col("created").is_null(), "cut off before its request_creation_time"),
                *unread({"end_ns": "time", "start_ns": "created", "status": "status_text"}),
                (pl.col("e2e_ns") < 0, "it ends before it was created"),
                (
                    pl.col("headers").is_not_null() & pl.col("upstream_headers_ns").is_null(),
                    "a target_processing_time that is none",
                ),
            ]
        ),
    )


class _Log(LineByLine):
    def take(self, block: Lines) -> Batch:
        lines = texts(block)
        ignored: Counter[str] = Counter()
        if blank := lines.filter(pl.col("text") == "").height:
            ignored[BLANK] = blank
        fields = (
            lines.filter(pl.col("text") != "")
            .select("record", pl.col("text").str.extract_groups(_HEAD).alias("head"))
            .unnest("head")
        )
        fields = fields.with_columns(pl.col("rest").str.extract_groups(_REST).alias("tail")).unnest(
            "tail"
        )
        return batch_of(block, _requests(fields), _COLUMNS, None, ignored)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage gateway a line."""
    return read_log(file, options, _Log())


READER = Reader(
    title="AWS Application Load Balancer access log",
    record_unit="line",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://docs.aws.amazon.com/elasticloadbalancing/latest/application/"
    "load-balancer-access-logs.html",
    cannot="TTFT and decode: target_processing_time ends at the target's headers, and the time of "
    "a streamed body is in none of the three times (only end less request_creation_time holds "
    "it). Retries, tokens, model, and whether a stream was held back",
    enable="access_logs.s3.enabled on the load balancer; let the server log the header "
    "X-Amzn-Trace-Id, whose Root (or Self) joins its rows",
    checked_against="an example line of the documentation in a public fixture",
    facts=(
        ("times", "the stamp is the end; request_creation_time the start; their difference e2e"),
        ("aborts", "status 460: the client left before the answer was whole"),
        ("no model calls", "GET, HEAD and OPTIONS, and what the balancer answers, are ignored"),
    ),
)
