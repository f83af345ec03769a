"""Lines of nginx's access log as columns: JSON of any key names people use, or text with times."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import polars as pl

from analyzer.readers._file import Lines
from analyzer.readers._json_columns import has_objects, json_columns
from analyzer.readers._line_log import BLANK, texts

ERROR_LINE = "line of the error log"

NAMES: dict[str, tuple[str, ...]] = {
    "at": (
        "msec", "time_msec", "time_ms", "timestamp", "ts", "@timestamp", "time_iso8601",
        "time_local", "time", "date",
    ),
    "took": ("request_time", "nginx_time", "req_time", "responsetime", "request_duration", "rt"),
    "status": ("status", "http_status", "response_status"),
    "method": ("request_method", "method", "http_method"),
    "target": ("request_uri", "uri", "path", "url"),
    "request": ("request", "request_line"),
    "up_addr": ("upstream_addr", "upstream_address", "upstream", "upstreamhost", "ua"),
    "up_status": ("upstream_status", "ups_status", "us"),
    "up_connect": ("upstream_connect_time", "uct"),
    "up_header": ("upstream_header_time", "uht"),
    "up_response": ("upstream_response_time", "upstream_time", "upstreamtime", "urt", "ut"),
    "up_bytes": ("upstream_bytes_received",),
    "sent_bytes": ("bytes_sent",),
    "sent_type": ("sent_http_content_type", "upstream_http_content_type"),
    "some_type": ("content_type",),
    "gzip": ("gzip_ratio",),
    "completion": ("request_completion",),
    "asked_id": (
        "http_x_request_id", "x_request_id", "oneapi_request_id", "xrid", "rid",
    ),
    "answer_id": (
        "upstream_http_x_request_id", "sent_http_x_request_id", "upstream_http_request_id",
        "upstream_x_request_id",
    ),
    "own_id": ("request_id", "req_id", "nginx_request_id"),
    "trace": (
        "trace_id", "traceId", "otel_trace_id", "opentelemetry_trace_id", "http_traceparent",
        "traceparent",
    ),
    "vendor_ms": ("openai_processing_ms", "upstream_http_openai_processing_ms"),
}  # fmt: skip
"""What a column may be called, the best first: ``$msec`` has milliseconds, other stamps have not.

``content_type`` is ambiguous: ``$content_type`` is the request's, and many log the answer's so.
"""
_SHORT = ("rt", "ua", "us", "ut", "uct", "uht", "urt", "rid", "xrid")
"""Customary in text alone: in JSON, ``ua`` is somebody's user agent."""
_ALL = tuple(key for keys in NAMES.values() for key in keys)
KEYS = tuple(key for key in _ALL if key not in _SHORT)
UPSTREAM = ("up_addr", "up_status", "up_connect", "up_header", "up_response")

_ERROR = re.compile(rb"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\w+\] \d+#\d+:")
_ERROR_TEXT = r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\w+\] \d+#\d+:"
COMMON = (
    r"^(?:[^\[]{0,200}? )??(?:\S+) - .*? ?\[(?<time_local>\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d "
    r"[+-]\d{4})\] \"(?<request>(?:[^\"\\]|\\.)*)\" (?<status>\d{3}) (?:\d+|-)(?<rest>.*)$"
)
"""The combined format, and what people append to it."""
INGRESS = (
    r"^ \"(?:[^\"\\]|\\.)*\" \"(?:[^\"\\]|\\.)*\" \d+ (?<request_time>[\d.]+) "
    r"\[[^\]]*\] \[[^\]]*\] "
    r"(?<upstream_addr>-|\S+?(?:(?:, | : )\S+?)*) (?:-|\d+(?:(?:, | : )(?:-|\d+))*) "
    r"(?<upstream_response_time>-|[\d.]+(?:(?:, | : )(?:-|[\d.]+))*) "
    r"(?<upstream_status>-|\d{3}(?:(?:, | : )(?:-|\d{3}))*) (?<req_id>\S+)\s*$"
)
"""What the ingress controller of Kubernetes appends by default."""
PAIR_KEYS = tuple(key for key in _ALL if "_" in key or key in _SHORT or key in ("msec",))
_QUOTED = r'^ "(?:[^"\\]|\\.)*" "(?:[^"\\]|\\.)*"'
"""Referer and user agent, which say what clients like."""


@dataclass(frozen=True)
class Told:
    """``frame``: record and a text column for each name, NULL where a line has no such field."""

    frame: pl.DataFrame
    ignored: Counter[str]
    broken: list[tuple[int, str]]


def lines_of(block: Lines) -> Told:
    """What the lines of a block tell, each on its own."""
    if has_objects(block.data):
        return _objects(block)
    return _text(block)


def _objects(block: Lines) -> Told:
    read = json_columns(block, KEYS)
    ignored: Counter[str] = Counter()
    broken = list(read.broken)
    rest: list[tuple[int, bytes]] = []
    for record, line in read.others:
        if not line:
            ignored[BLANK] += 1
        elif _ERROR.match(line):
            ignored[ERROR_LINE] += 1
        else:
            rest.append((record, line))
    frame = named(read.frame)
    if rest:  # a file in which the format changed half-way
        lines = pl.DataFrame(
            {"record": [record for record, _ in rest],
             "text": [line.decode("utf-8", "replace") for _, line in rest]}
        )  # fmt: skip
        frame = pl.concat([frame, named(_fields(lines))]).sort("record")
    return Told(frame, ignored, broken)


def _text(block: Lines) -> Told:
    lines = texts(block)
    ignored: Counter[str] = Counter()
    blank = pl.col("text") == ""
    error = pl.col("text").str.contains(_ERROR_TEXT)
    for reason, some in ((BLANK, blank), (ERROR_LINE, error)):
        if count := lines.filter(some).height:
            ignored[reason] = count
    return Told(named(_fields(lines.filter(~blank & ~error))), ignored, [])


def _fields(lines: pl.DataFrame) -> pl.DataFrame:
    """Fields of text lines, under the names of nginx's variables."""
    frame = lines.with_columns(pl.col("text").str.extract_groups(COMMON).alias("head")).unnest(
        "head"
    )
    frame = frame.with_columns(tail=pl.col("rest").str.replace(_QUOTED, ""))
    found: dict[str, pl.Expr] = {}
    rest = frame["tail"].drop_nulls()
    sample = "\n".join(rest.head(1000).to_list() + rest.tail(1000).to_list())
    for key in PAIR_KEYS:
        if re.search(rf"\b{key}[=:]", sample):
            found[key] = pl.col("tail").str.extract(
                rf'(?:^|[ "|]){key}[=:] ?"?((?:[^" |,:]|, |:| : )*)'
            )
    frame = frame.with_columns(pl.col("rest").str.extract_groups(INGRESS).alias("ingress")).unnest(
        "ingress"
    )
    for key, value in found.items():
        both = pl.coalesce(value, key) if key in frame.columns else value
        frame = frame.with_columns(both.alias(key))
    return frame.drop("text", "rest", "tail")


def named(frame: pl.DataFrame) -> pl.DataFrame:
    """One column a name: the first key that tells something, else what the last one said."""
    have = set(frame.columns)
    columns = {}
    for name, keys in NAMES.items():
        some = [pl.col(key) for key in keys if key in have]
        full = [pl.when(~column.is_in(["", "-"])).then(column) for column in some]
        columns[name] = pl.coalesce(*full, *some) if some else pl.lit(None, pl.String)
    return frame.select("record", **columns)
