"""Envoy's access log: its default text, Istio's, or JSON lines with their usual names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import polars as pl

from analyzer.contract.types import Batch
from analyzer.readers._access_log import batch_of
from analyzer.readers._envoy import COLUMNS, KEYS, named, requests_of, text_fields
from analyzer.readers._file import Head, InputFile, Lines
from analyzer.readers._json_columns import has_objects, json_columns
from analyzer.readers._line_log import BLANK, LineByLine, read_log, texts
from analyzer.readers._reader import Claim, Options, Reader

OWN_LOG = "line of Envoy's own log"
_OWN_TEXT = re.compile(
    r"^(?:\S+ std(?:out|err) F )?(?:\[\d{4}-\d\d-\d\d [\d:.]+\]\[\d+\]\[\w+\]"
    r"|\d{4}-\d\d-\d\dT[\d:.]+Z\t\w+\t)"
)
_FOREIGN = "not a line of Envoy's default format"


def probe(head: Head) -> Claim:
    """Text of the default format, or JSON lines with a start time, flags and a duration."""
    if not head.lines:
        return Claim(0, "it is empty")
    block = Lines(b"\n".join(head.lines) + b"\n", 1, 0, unterminated=False)
    if has_objects(block.data):
        return _json_claim(block)
    fields = text_fields(texts(block))
    if fields["start_time"].count():
        return Claim(1, "")
    return Claim(0, "no line is of Envoy's default format")


def _json_claim(block: Lines) -> Claim:
    frame = json_columns(block, (*KEYS, "ai_log")).frame
    missing = {"start_time", "response_flags", "duration"} - set(frame.columns)
    if len(missing) == 3:
        return Claim(0, "its JSON lines are not Envoy's")
    if missing:
        return Claim(0.3, f"its JSON lines lack {', '.join(sorted(missing))}")
    if "ai_log" in frame.columns:
        return Claim(0.5, "its lines have Higress's ai_log, which tells tokens as well")
    if not frame["start_time"].count():
        return Claim(0.6, "its JSON lines tell no start_time")
    return Claim(1, "")


class _Log(LineByLine):
    def take(self, block: Lines) -> Batch:
        told, broken = [], []
        lines = texts(block)
        if has_objects(block.data):
            read = json_columns(block, KEYS)
            told, broken = [named(read.frame)], list(read.broken)
            known = [*read.frame["record"], *(record for record, _ in broken)]
            lines = lines.filter(~pl.col("record").is_in(known))
        fields = text_fields(lines)
        told.append(named(fields.filter(pl.col("start_time").is_not_null())))
        others = lines.filter(fields["start_time"].is_null())
        ignored: Counter[str] = Counter()
        for record, text in others.select("record", "text").iter_rows():
            if not text:
                ignored[BLANK] += 1
            elif _OWN_TEXT.match(text):
                ignored[OWN_LOG] += 1
            else:
                broken.append((record, _FOREIGN))
        values = requests_of(pl.concat(told).sort("record"))
        return batch_of(block, values, COLUMNS, None, ignored, broken)


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """One ``request`` row of vantage gateway a line."""
    return read_log(file, options, _Log())


READER = Reader(
    title="Envoy access log (default and Istio text, or JSON lines)",
    record_unit="line",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage",
    cannot="TTFT: upstream_service_time ends at the upstream's headers, and what of the duration "
    "follows is mostly decode, not network. How long the upstream took as a whole, and what each "
    "retry took. Whether a stream was held back. Tokens and model. Times below a millisecond",
    enable="accessLogEncoding: JSON in Istio's mesh config, or Envoy's json_format with "
    "start_time, duration, upstream_service_time, response_code, response_flags, method, path, "
    "request_id, upstream_host and upstream_request_attempt_count "
    "(%UPSTREAM_REQUEST_ATTEMPT_COUNT%); let the server log x-request-id, which joins its rows",
    checked_against="published lines of Istio and Higress; the text formats after Envoy's and "
    "Istio's documentation",
    facts=(
        ("times", "start_time is the start; duration ends with the last byte to the client"),
        (
            "flags",
            "response flags become error classes (UT upstream timeout, UO upstream overflow, SI "
            "stream idle timeout, …); DC and DR are the client's leaving: an abort",
        ),
        (
            "retries",
            "one row a line, whose duration holds all calls; upstream_calls is their number",
        ),
        ("no model calls", "GET, HEAD and OPTIONS, and what Envoy answers itself, are ignored"),
    ),
)
