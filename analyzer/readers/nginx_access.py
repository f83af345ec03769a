"""nginx's access log with the upstream's times: JSON lines, or text with the times appended."""

from __future__ import annotations

import re
from collections.abc import Iterator

from analyzer.contract.types import Batch
from analyzer.readers._access_log import batch_of
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._json_columns import has_objects, json_columns
from analyzer.readers._line_log import LineByLine, read_log
from analyzer.readers._nginx_calls import COLUMNS, requests_of
from analyzer.readers._nginx_lines import COMMON, KEYS, NAMES, UPSTREAM, lines_of, named
from analyzer.readers._reader import Claim, Options, Reader

_TIMED = re.compile(r"\b(?:rt|urt|request_time|upstream_response_time)[=:] ?\"?[\d.-]")
_FORMAT = re.compile(COMMON.replace("(?<", "(?P<"))
_ADD = "add $request_time and $upstream_response_time to its log_format"


def probe(head: Head) -> Claim:
    """JSON lines with a request time and a status, or common log lines with the times appended."""
    data = b"\n".join(head.lines) + b"\n"
    if not head.lines:
        return Claim(0, "it is empty")
    block = Lines(data, 1, 0, unterminated=False)
    if has_objects(data):
        return _json_claim(block)
    best = Claim(0, "no line looks like one of an access log")
    for line in head.lines[:50]:
        match = _FORMAT.match(line.decode("utf-8", "replace"))
        if match is None:
            continue
        if _TIMED.search(match["rest"]) or _ingress(block):
            return Claim(1, "")
        best = Claim(0.6, f"its access lines have no times: {_ADD}")
    return best


def _ingress(block: Lines) -> bool:
    return lines_of(block).frame["took"].count() > 0


def _json_claim(block: Lines) -> Claim:
    strange = ("response_flags", "ai_log", "startTime", "spans", "messages")
    read = json_columns(block, (*KEYS, *strange))
    if any(read.frame[name].count() for name in strange if name in read.frame.columns):
        return Claim(0.2, "its JSON lines have fields that nginx has not")
    frame = named(read.frame)
    if not frame["status"].count():
        return Claim(0, "its JSON lines have no status")
    plain = {"request_time", *NAMES["up_response"], *NAMES["up_header"]} & set(read.frame.columns)
    upstream = any(frame[name].count() for name in UPSTREAM)
    if frame["took"].count() and (plain or upstream):
        return Claim(1, "")
    if upstream or frame["request"].count():
        return Claim(0.6, f"its access lines have no request time: {_ADD}")
    return Claim(0.2, f"its JSON lines have a status, but no request time: {_ADD}")


class _Log(LineByLine):
    def take(self, block: Lines) -> Batch:
        told = lines_of(block)
        values, tags = requests_of(told.frame)
        return batch_of(block, values, COLUMNS, tags, told.ignored, told.broken)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage gateway a line; retries and the like as its tags."""
    return read_log(file, options, _Log())


READER = Reader(
    title="nginx access log (JSON lines, or text with request and upstream times)",
    record_unit="line",
    gives=("request", "request_tag"),
    probe=probe,
    read=read,
    docs="https://nginx.org/en/docs/http/ngx_http_log_module.html, "
    "https://nginx.org/en/docs/http/ngx_http_upstream_module.html#variables",
    cannot="TTFT: $upstream_header_time ends at the headers, which many servers send before the "
    "first token. Whether a stream was held back on the way: proxy_buffering on and off log the "
    "same, and compression that turns a stream into one burst shows at most as fewer bytes sent "
    "than received (tag compressed_stream). Tokens, model, and the way between client and nginx. "
    "A slow client, where proxy_buffering is off: it makes $upstream_response_time longer",
    enable="""log_format llm escape=json '{"msec":"$msec","request":"$request",'
'"status":$status,"request_time":$request_time,"upstream_addr":"$upstream_addr",'
'"upstream_status":"$upstream_status","upstream_connect_time":"$upstream_connect_time",'
'"upstream_header_time":"$upstream_header_time",'
'"upstream_response_time":"$upstream_response_time","bytes_sent":$bytes_sent,'
'"upstream_bytes_received":"$upstream_bytes_received",'
'"sent_http_content_type":"$sent_http_content_type","gzip_ratio":"$gzip_ratio",'
'"request_completion":"$request_completion","http_x_request_id":"$http_x_request_id",'
'"upstream_http_x_request_id":"$upstream_http_x_request_id"}'; access_log FILE llm; """
    "and pass one X-Request-Id on to the server, for its rows to be joined",
    checked_against="a log of nginx 1.22.1 with retries, aborts, slow clients and gzip; published "
    "lines of 1.15; the default format of ingress-nginx after its documentation",
    facts=(
        ("times", "the stamp is the end: a request began request_time before it"),
        (
            "retries",
            "one row a line, for nginx made one answer of all its calls. upstream_ns adds the "
            "calls up, upstream_headers_ns is until the headers of the last, connect_ns is the "
            "last one's (TLS included) and route its address; upstream_calls counts them, "
            "upstream_failed_ns is what those took that failed before, and of the first of them "
            "the tags first_route, first_failure and first_call_ms tell",
        ),
        (
            "aborts",
            "status stays 200 where somebody left in mid-stream: an empty request_completion is "
            "an abort, of the client or of the upstream",
        ),
        ("no model calls", "GET, HEAD and OPTIONS, and what nginx answers itself, are ignored"),
    ),
)
