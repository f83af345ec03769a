"""Envoy's access log as columns, from its JSON form or its text: durations, flags, who served.

What gateways built on Envoy write as JSON has the same fields beside their own.
"""

from __future__ import annotations

import polars as pl

from analyzer.readers._access_log import (
    endpoint,
    first_bad,
    ignoring,
    milliseconds,
    moment,
    told,
    trace_of,
    unread,
    whole,
)

NAMES: dict[str, tuple[str, ...]] = {
    "start": ("start_time", "startTime", "timestamp"),
    "duration": ("duration", "duration_ms"),
    "service_time": ("upstream_service_time", "x_envoy_upstream_service_time"),
    "response_duration": ("response_duration",),
    "status": ("response_code", "status"),
    "flags": ("response_flags",),
    "method": ("method", "x_method"),
    "target": ("path", "x_envoy_original_path"),
    "host": ("upstream_host",),
    "cluster": ("upstream_cluster", "upstream_cluster_raw"),
    "asked_id": ("request_id", "x_request_id"),
    "trace": ("trace_id", "traceparent"),
    "calls": ("upstream_request_attempt_count", "request_attempt_count"),
    "content_type": ("response_content_type", "content_type"),
}  # fmt: skip
KEYS = tuple(key for keys in NAMES.values() for key in keys)
COLUMNS = (
    "vantage", "request_id", "trace_id", "route", "endpoint", "start_ns", "clock", "timing",
    "e2e_ns", "upstream_headers_ns", "upstream_calls", "status", "error", "finish_reason",
)  # fmt: skip

FLAGS = {
    "UT": "upstream timeout", "UO": "upstream overflow", "UF": "upstream connection failure",
    "UC": "upstream connection closed", "UR": "upstream reset", "UH": "no healthy upstream",
    "LH": "failed health check", "NR": "no route", "NC": "no cluster", "SI": "stream idle timeout",
    "UMSDR": "stream duration timeout", "DT": "duration timeout", "RL": "rate limited",
    "RLSE": "limiter failed", "OM": "proxy overloaded", "DO": "proxy overloaded",
    "LR": "local reset", "DF": "name look-up failed", "UPE": "upstream protocol error",
    "DPE": "invalid request", "IH": "invalid header", "UAEX": "not authorised",
    "FI": "injected fault", "NFCF": "no filter configuration", "RFCF": "upstream filter failed",
    "URX": "upstream retries exhausted",
}  # fmt: skip
"""Response flags that say why a request failed, as error classes; the most telling first.

``DC`` and ``DR`` are the client's leaving, which is no error of the server's: an abort.
"""
_LEFT = {"DC", "DR"}
_HEAD = (
    r'^\[(?<start_time>[^\]]*)\] "(?<method>[^ ]+) (?<path>[^ ]+) [^"]+" '
    r"(?<response_code>[0-9]+|-) (?<response_flags>[^ ]+) "
)
_DETAILS = r'[^ ]+ [^ ]+ "[^"]*" '
_TIMES = r'[0-9]+ [0-9]+ (?<duration>[0-9]+|-) (?<upstream_service_time>[0-9]+|-) "[^"]*" '
_HOSTS = r' "(?<request_id>[^"]*)" "[^"]*" "(?<upstream_host>[^"]*)"'
_TEXTS = (
    f'{_HEAD}{_TIMES}"[^"]*"{_HOSTS}$',
    f'{_HEAD}{_DETAILS}{_TIMES}"[^"]*"{_HOSTS}(?: |$)',
    f'{_HEAD}(?:{_DETAILS})?{_TIMES}".*"{_HOSTS}(?: |$)',
)
"""Envoy's default format; Istio's, with details in the middle and more at the end; and either
with quotes in the user agent, which Envoy does not escape. One that leaves no choice is fast.
"""
_PREFIX = r"^[^ \[{]+ std(?:out|err) F "


def text_fields(lines: pl.DataFrame) -> pl.DataFrame:
    """Fields of text lines, all NULL where a line is of another format."""
    rest = lines.with_columns(pl.col("text").str.replace(_PREFIX, ""))
    found = []
    for pattern in _TEXTS:
        groups = pl.col("text").str.extract_groups(pattern).alias("fields")
        fields = rest.with_columns(groups).unnest("fields")
        fits = pl.col("start_time").is_not_null()
        found.append(fields.filter(fits))
        rest = fields.filter(~fits).select("record", "text")
        if not rest.height:
            break
    return pl.concat([*found, rest], how="diagonal").drop("text").sort("record")


def named(frame: pl.DataFrame) -> pl.DataFrame:
    """One text column a name; the first key that is there tells it."""
    have = set(frame.columns)
    columns = {}
    for name, keys in NAMES.items():
        some = [pl.col(key) for key in keys if key in have]
        columns[name] = pl.coalesce(*map(told, some)) if some else pl.lit(None, pl.String)
    return frame.select("record", **columns)


def requests_of(lines: pl.DataFrame) -> pl.DataFrame:
    """``COLUMNS`` of ``request`` with ``ignored`` and ``bad``."""
    flags = {text: _flagged(text) for text in lines["flags"].unique().drop_nulls()}
    values = lines.with_columns(
        vantage=pl.lit("gateway"),
        request_id=pl.col("asked_id"),
        trace_id=trace_of(pl.col("trace")),
        route=pl.coalesce("host", "cluster"),
        endpoint=endpoint(pl.col("target")),
        start_ns=moment(pl.col("start")),
        timing=pl.lit("stated"),
        e2e_ns=milliseconds(pl.col("duration")),
        status_text=pl.col("status"),
        status=whole(pl.col("status")),
        error=_mapped({text: error for text, (error, _) in flags.items()}),
        finish_reason=_mapped({text: reason for text, (_, reason) in flags.items()}),
        # Envoy counts its calls where it is asked to; not what each of them took.
        upstream_calls=whole(pl.col("calls")),
        is_own=pl.col("host").is_null() & pl.col("service_time").is_null(),
    )
    values = values.with_columns(
        # Without a header of its own, the time to the first byte that came from upstream.
        upstream_headers_ns=milliseconds(pl.coalesce("service_time", "response_duration")),
        clock=pl.when(pl.col("start_ns").is_not_null()).then(pl.lit("wall")),
    )
    return values.with_columns(
        bad=_bad(),
        ignored=ignoring(),
        # Code 0: nobody got an answer.
        status=pl.when(pl.col("status") > 0).then("status"),
    )


def _flagged(text: str) -> tuple[str | None, str | None]:
    """Error and finish reason of flags such as ``UF,URX``."""
    flags = set(text.split(","))
    error = next((name for flag, name in FLAGS.items() if flag in flags), None)
    return error, "abort" if flags & _LEFT else None


def _mapped(words: dict[str, str | None]) -> pl.Expr:
    return pl.col("flags").replace_strict(words, default=None, return_dtype=pl.String)


def _bad() -> pl.Expr:
    return first_bad(
        [
            (pl.col("start").is_null(), "no start time: add %START_TIME% to the format"),
            *unread({"start_ns": "start", "e2e_ns": "duration", "status": "status_text"}),
            (
                pl.coalesce("service_time", "response_duration").is_not_null()
                & pl.col("upstream_headers_ns").is_null(),
                "an upstream time that is none",
            ),
        ]
    )
