"""What ``curl -w`` wrote: JSON objects (``%{json}``), or a format of one's own with named times.

curl's times are cumulative seconds from the start of the call; their differences are the phases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from analyzer.contract.types import Batch, Problem
from analyzer.readers._document import each_value
from analyzer.readers._errors import error_class
from analyzer.readers._file import BOM, Head, InputFile, Lines
from analyzer.readers._items import items_of
from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import excerpt, int_or_none
from analyzer.readers._times import DURATIONS, seconds_to_ns

_NAMES = {
    "time_namelookup": ("namelookup", "dns", "dns_lookup", "lookup"),
    "time_connect": ("connect", "tcp", "tcp_connect"),
    "time_appconnect": ("appconnect", "tls", "ssl", "tls_handshake"),
    "time_pretransfer": ("pretransfer",),
    "time_redirect": ("redirect",),
    "time_starttransfer": ("starttransfer", "ttfb", "first_byte"),
    "time_total": ("total",),
    "http_code": ("response_code", "code", "status", "http_status"),
    "exitcode": ("exit_code",),
}  # fmt: skip
_CALLED = {name: name for name in _NAMES} | {
    alias: name for name, aliases in _NAMES.items() for alias in aliases
}
_ORDER = (
    "time_namelookup", "time_connect", "time_appconnect", "time_pretransfer",
    "time_starttransfer", "time_total",
)  # fmt: skip
_PAIR = re.compile(r"\b([A-Za-z_]{2,40})\s*[=:]\s*\"?([0-9]+(?:[.,][0-9]+)?)\s*(ms|us|s)?\b")
_SCALE = {"ms": -3, "us": -6}
_RULE = re.compile(r"[-=_*\s]*")
_BLANK, _NOTE = "blank line or rule", "text of the format without a figure"
_FAILED = {
    5: "name look-up failed", 6: "name look-up failed", 7: "connection failure", 28: "timeout",
    35: "tls connection failure", 52: "connection closed", 55: "connection closed",
    56: "connection reset", 60: "tls certificate refused",
}  # fmt: skip
_FEWEST = 3


def probe(head: Head) -> Claim:
    """Objects with curl's times, or lines that name at least three of them, the total included."""
    data = head.data.removeprefix(BOM).lstrip()
    if data.startswith((b"{", b"[")):
        text = data.decode("utf-8", "replace")
        begin = 1 if text.startswith("[") else 0
        for _, _, value in each_value(text, begin, " \t\r\n,"):
            if not isinstance(value, dict) or "time_total" not in value:
                return Claim(0, "its first object is not curl's")
            if "time_starttransfer" in value or "time_pretransfer" in value:
                return Claim(1, "")
            return Claim(0.5, "it has a time_total, but no other time of curl's")
        return Claim(0, "its first object is cut off or broken")
    told: set[str] = set()
    for line in head.lines[:20]:
        told |= _pairs(line.decode("utf-8", "replace")).keys()
    times = {name for name in told if name.startswith("time_")}
    if "time_total" in times and "time_starttransfer" in times and len(times) >= _FEWEST:
        return Claim(1, "")
    return Claim(0, "no line names curl's times")


def _pairs(line: str) -> dict[str, str]:
    """Values by curl's own names, times in seconds."""
    found: dict[str, str] = {}
    for name, value, unit in _PAIR.findall(line):
        known = _CALLED.get(name.lower())
        if known is not None:
            number = value.replace(",", ".")
            found[known] = f"{number}e{_SCALE[unit]}" if unit in _SCALE else number
    return found


def read(file: InputFile, _options: Options) -> Iterator[Batch]:
    """A client row a call; it has no start, for curl does not tell when it was."""
    if file.head.data.removeprefix(BOM).lstrip().startswith((b"{", b"[")):
        yield from _objects(file)
    else:
        yield from _lines(file)


def _objects(file: InputFile) -> Iterator[Batch]:
    sink, records = Sink(), 0
    for item in items_of(file):
        records += 1
        if isinstance(item, Problem):
            sink.problems.append(item)
            continue
        try:
            _add(item.value, records, sink)
        except Bad as bad:
            sink.problems.append(Problem(records, str(bad), excerpt(item.text)))
    yield sink.batch(records)


class _Text:
    """A call's figures, on one line or over several: one told again begins the next call."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}
        self.record = 0
        self.excerpt, self.offset = "", 0

    def take(self, pairs: Mapping[str, str], block: Lines, index: int, sink: Sink) -> None:
        if self.told.keys() & pairs.keys():
            self.close(sink)
        if not self.told:
            self.record = block.first_record + index
            self.excerpt, self.offset = excerpt(block.lines[index]), block.starts[index]
        self.told |= pairs

    def close(self, sink: Sink) -> None:
        """The row of what is held, in the account of its first line."""
        if not self.told:
            return
        told, self.told = self.told, {}
        try:
            _add(told, self.record, sink)
        except Bad as bad:
            sink.problems.append(Problem(self.record, str(bad), self.excerpt, self.offset))


def _lines(file: InputFile) -> Iterator[Batch]:
    text, sink, records = _Text(), Sink(), 0
    for block in file.lines():
        for index, line in enumerate(block.lines):
            record, words = block.first_record + index, line.decode("utf-8", "replace")
            records += 1
            if pairs := _pairs(words):
                text.take(pairs, block, index, sink)
            elif _RULE.fullmatch(words):
                sink.ignored[_BLANK] += 1
            elif re.search(r"\d", words) is None:
                sink.ignored[_NOTE] += 1
            else:
                reason = "none of curl's times; write them as name=value"
                problem = Problem(record, reason, excerpt(line), block.starts[index])
                sink.problems.append(problem)
    text.close(sink)
    yield sink.batch(records)


def _add(value: Mapping[str, Any], record: int, sink: Sink) -> None:
    times = {name: _time(name, value.get(name)) for name in (*_ORDER, "time_redirect")}
    total = times["time_total"]
    if total is None:
        raise Bad("no time_total: add it to the format, or use -w '%{json}'")
    # Zero: that far it did not come, or there was none (TLS).
    reached = [ns for name in _ORDER if (ns := times[name])]
    if reached != sorted(reached):
        raise Bad("its times do not grow as curl's do: write them as they are, not as differences")
    row: dict[str, Any] = {"e2e_ns": total}
    if not times["time_redirect"]:
        row |= _phases(times)
    code = int_or_none(_number(value.get("http_code", value.get("response_code"))))
    kind = value.get("content_type")
    sink.add(
        "request", record, vantage="client", timing="stated", **row,
        status=code if code else None,
        error=_error(value),
        endpoint=_path(value.get("url_effective") or value.get("url")),
        streamed=True if isinstance(kind, str) and kind.startswith("text/event-stream") else None,
        bytes_sent=_sent(value),
    )  # fmt: skip


def _time(name: str, value: object) -> int | None:
    if value is None:
        return None
    ns = seconds_to_ns(value) if isinstance(value, (int, float, str)) else None
    if ns is None or ns not in DURATIONS:
        raise Bad(f"{name} is no time")
    return ns


def _phases(times: Mapping[str, int | None]) -> dict[str, int | None]:
    """Look-up, TCP and TLS of a new connection."""
    lookup, connect, tls = (times[name] or None for name in _ORDER[:3])
    return {
        "dns_ns": lookup,
        "connect_ns": connect - lookup if connect and lookup else None,
        "tls_ns": tls - connect if tls and connect else None,
    }


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _error(value: Mapping[str, Any]) -> str | None:
    code = int_or_none(_number(value.get("exitcode")))
    if not code:
        return None
    message = value.get("errormsg")
    told = error_class(message) if isinstance(message, str) else None
    return _FAILED.get(code) or told or "error"


def _sent(value: Mapping[str, Any]) -> int | None:
    sizes = [int_or_none(value.get(name)) for name in ("size_request", "size_upload")]
    return None if None in sizes else sum(size or 0 for size in sizes)


def _path(url: object) -> str | None:
    try:
        return urlsplit(url).path or None if isinstance(url, str) else None
    except ValueError:
        return None


READER = Reader(
    title="curl -w timings (JSON, or named times as text)",
    record_unit="line",
    gives=("request",),
    probe=probe,
    read=read,
    docs="https://curl.se/docs/manpage.html#-w",
    cannot="when the call was made, so it joins nothing; TTFT: time_starttransfer is the first "
    "byte, which many servers send before the first token; tokens and model",
    enable="curl -w '%{json}\\n' -o answer …; for TTFT let curl -N print the stream with a time a "
    "line, which another reader reads",
    checked_against="output of curl 7.88 against a local stream",
    facts=(
        (
            "phases",
            "curl's times are cumulative: dns_ns is time_namelookup, connect_ns and tls_ns are "
            "what time_connect and time_appconnect add; after redirects they are not told",
        ),
        ("text", "name=value or name: value with curl's names or dns, connect, tls, ttfb, total"),
    ),
)
