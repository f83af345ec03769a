"""HTTP archives (HAR 1.2) of a browser, a proxy or a recorder: phases of each call at the client.

Of headers only ids, limits and counts are looked at, by name; cookies, keys and texts are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from analyzer.contract.types import Batch, Problem
from analyzer.readers._access_log import NO_CALL
from analyzer.readers._document import each_value
from analyzer.readers._errors import error_class
from analyzer.readers._file import BOM, Head, InputFile
from analyzer.readers._json_stream import Item, each_item, is_entry
from analyzer.readers._jsonl import Bad, Sink, Skip, object_of
from analyzer.readers._part_bodies import prompt_in, settings_in
from analyzer.readers._parts import write_prompt
from analyzer.readers._reader import Claim, Options, Reader
from analyzer.readers._rows import COUNTS, excerpt, int_or_none, text_or_none
from analyzer.readers._sse_lines import Framing, Stamp
from analyzer.readers._sse_streams import Stream
from analyzer.readers._times import ms_to_ns, seconds_to_ns
from analyzer.readers._vendor_bodies import told_by_body
from analyzer.readers._vendor_events import told_by

_ENTRIES = [("log", "entries")]
_BEGINS = re.compile(rb'\s*\{\s*"log"\s*:\s*\{')
_A_BATCH = 500
_SLACK_NS = 1_500_000
"""Phases are whole milliseconds in many a tool; so is their sum."""
_PHASES = ("dns", "connect", "send", "wait", "receive")
_MESSAGES = ("_eventSourceMessages", "_eventStreamMessages")
_EVENTS = ("text/event-stream", "application/vnd.amazon.eventstream")
_OWN_IDS = ("x-request-id", "x-client-request-id")
_TRACE = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_OTHER_SUM = "where phases add up to another time than 'time' less 'blocked', the phases are taken"


def probe(head: Head) -> Claim:
    """An object ``log`` with entries that have timings."""
    if not _BEGINS.match(head.data.removeprefix(BOM)):
        return Claim(0, "it does not begin with an object 'log'")
    keys = set(re.findall(rb'"(\w+)"\s*:', head.data))
    if {b"entries", b"startedDateTime"} <= keys or (b"entries" in keys and b"creator" in keys):
        return Claim(1, "")
    if b"creator" in keys and b"version" in keys and not head.whole:
        return Claim(1, "")
    return Claim(0.6, "its 'log' has no entries of an HTTP archive")


def read(file: InputFile, options: Options) -> Iterator[Batch]:
    """A client row a call, with the stream's chunks where the archive times its messages."""
    sink, records, before = Sink(zone=options.zone), 0, 0
    for item in each_item(file, _ENTRIES):
        if not item.broken and not is_entry(item.path, _ENTRIES):
            continue
        records += 1
        try:
            _take(_entry(item), records, sink)
        except Skip as skip:
            sink.ignored[str(skip)] += 1
        except Bad as bad:
            text = item.value if isinstance(item.value, str) else ""
            sink.problems.append(Problem(records, str(bad), excerpt(text), item.offset))
        if records - before >= _A_BATCH:
            yield sink.batch(records - before)
            sink, before = Sink(zone=options.zone), records
    yield sink.batch(records - before)


def _entry(item: Item) -> dict[str, Any]:
    if item.broken:
        raise Bad(item.broken)
    if not isinstance(item.value, dict):
        raise Bad("an entry that is no object")
    return item.value


def _take(entry: dict[str, Any], record: int, sink: Sink) -> None:
    request, response = _object(entry.get("request")), _object(entry.get("response"))
    content = _object(response.get("content"))
    kind = str(content.get("mimeType") or "").partition(";")[0].strip().lower()
    if request.get("method") in ("GET", "HEAD", "OPTIONS") and kind not in _EVENTS:
        raise Skip(NO_CALL)
    start = sink.needed_time("startedDateTime", entry.get("startedDateTime"))
    columns = _network(entry, kind, sink) | _request(request, record, sink)
    if start is not None:
        columns |= {"start_ns": start + columns.get("hold_ns", 0), "clock": "wall"}
    messages = _messages(entry)
    stream = Stream(record, sent=Stamp(columns["start_ns"], "wall") if messages else None)
    for name, value in _headers(response):
        stream.header(name, value)
    columns |= _outcome(response, columns.get("request_id"), stream)
    if "status" not in columns:  # nothing came, in one piece or many
        columns.pop("streamed", None)
    for event, stamp in _timed(messages) if messages else _untimed(content, kind):
        told = told_by(event) or told_by_body(event)
        if told is not None and not told.idle:
            stream.take(told, stamp, sink)
    if messages:  # which time the stream better than the archive's phases do
        stream.over = True
        columns |= {"streamed": True}
        columns = {name: columns[name] for name in columns if name not in ("timing", "e2e_ns")}
    asked = {"request_id": columns["request_id"]} if "request_id" in columns else {}
    # What the answer says of itself beats what was asked for, but for the caller's own id.
    stream.facts.columns = columns | stream.facts.columns | asked
    if not messages and "streamed" not in columns:
        stream.facts.columns["streamed"] = None
    stream.write(sink)


def _network(entry: dict[str, Any], kind: str, sink: Sink) -> dict[str, Any]:
    """Phases of the call; -1 and what is left out are none. TLS is a part of connect."""
    timings = _object(entry.get("timings"))
    phases = {name: _phase(timings, name) for name in (*_PHASES, "blocked", "ssl")}
    whole = ms_to_ns(entry.get("time"))
    held = phases["blocked"] or 0
    told = [phases[name] for name in _PHASES]
    total = sum(ns for ns in told if ns is not None)
    if phases["wait"] is not None and phases["receive"] is not None:
        if whole is not None and abs(whole - held - total) > _SLACK_NS:
            sink.assumed.add(_OTHER_SUM)
        e2e: int | None = total
    else:
        e2e = whole - held if whole is not None and whole >= held else None
    columns: dict[str, Any] = {"timing": "stated", "e2e_ns": e2e, "hold_ns": held or None}
    connect, tls = phases["connect"], phases["ssl"]
    columns |= {
        "dns_ns": phases["dns"],
        "connect_ns": connect if connect is None or not tls or tls > connect else connect - tls,
        "tls_ns": tls,
    }
    if kind in _EVENTS and phases["receive"]:
        columns["streamed"] = True
    elif kind and phases["receive"] == 0 and phases["wait"]:
        columns["streamed"] = False  # the whole answer came with its first byte
    return {name: value for name, value in columns.items() if value is not None}


def _phase(timings: dict[str, Any], name: str) -> int | None:
    value = timings.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or value < 0:
        return None
    return ms_to_ns(value)


def _request(request: dict[str, Any], record: int, sink: Sink) -> dict[str, Any]:
    """What was asked for; of the body only its settings, of the address only its path."""
    columns: dict[str, Any] = {"endpoint": _path(request.get("url"))}
    sent = [int_or_none(request.get(name)) for name in ("headersSize", "bodySize")]
    if all(size is not None and size >= 0 for size in sent):
        columns["bytes_sent"] = sum(size or 0 for size in sent)
    for name, value in _headers(request):
        if name in _OWN_IDS:
            columns.setdefault("request_id", value)
        elif name == "x-stainless-retry-count" and value.isdecimal() and len(value) < 4:
            columns["attempt"] = int(value) + 1
        elif name == "traceparent" and (match := _TRACE.fullmatch(value)):
            columns["trace_id"] = match[1]
    body = _body(_object(request.get("postData")).get("text"))
    columns["model"] = text_or_none(body.get("model"))
    limit = next((body[n] for n in ("max_completion_tokens", "max_tokens") if n in body), None)
    if limit in COUNTS:
        columns["max_output_tokens"] = limit
    columns |= settings_in(body) | write_prompt(sink, record, prompt_in(body))
    return {name: value for name, value in columns.items() if value is not None}


def _outcome(response: dict[str, Any], own_id: str | None, stream: Stream) -> dict[str, Any]:
    """Status and failure; code 0 is no answer, of which some browsers say why."""
    status = int_or_none(response.get("status"))
    columns: dict[str, Any] = {"status": status if status else None}
    why = text_or_none(response.get("_error")) or text_or_none(response.get("_errorMessage"))
    if why and "abort" in why.lower():
        columns["finish_reason"] = "abort"
    elif why:
        columns["error"] = error_class(why.replace("_", " "))
    given = stream.facts.columns.get("request_id")
    if own_id and given and given != own_id:
        columns["response_id"] = given
    return {name: value for name, value in columns.items() if value is not None}


def _messages(entry: dict[str, Any]) -> list[Any]:
    """Messages of the stream with a time each, where the tool kept them."""
    some = next((entry[name] for name in _MESSAGES if entry.get(name)), None)
    return some if isinstance(some, list) else []


def _timed(messages: list[Any]) -> Iterator[tuple[dict[str, Any], Stamp | None]]:
    for message in messages:
        one = _object(message)
        ns = seconds_to_ns(one.get("time")) if not isinstance(one.get("time"), str) else None
        if event := _body(one.get("data")):
            yield event, None if ns is None else Stamp(ns, "wall")


def _untimed(content: dict[str, Any], kind: str) -> Iterator[tuple[dict[str, Any], None]]:
    """The answer's events or body, where they were archived: tokens and ids, no times."""
    text = content.get("text")
    if not isinstance(text, str) or content.get("encoding") == "base64":
        return
    if kind == "text/event-stream":
        framing = Framing(None)
        for line in [*text.encode("utf-8", "replace").split(b"\n"), b""]:
            for event in framing.line(line).events:
                yield event, None
    elif kind.endswith("json"):
        for _, _, value in each_value(text, 0, " \t\r\n,"):
            if isinstance(value, dict):
                yield value, None


def _body(text: object) -> dict[str, Any]:
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return {}
    try:
        return object_of(text.encode("utf-8", "replace"))
    except Bad:
        return {}


def _headers(message: dict[str, Any]) -> Iterator[tuple[str, str]]:
    headers = message.get("headers")
    for one in headers if isinstance(headers, list) else ():
        name, value = _object(one).get("name"), _object(one).get("value")
        if isinstance(name, str) and isinstance(value, str):
            yield name.lower(), value


def _path(url: object) -> str | None:
    try:
        return urlsplit(url).path or None if isinstance(url, str) else None
    except ValueError:
        return None


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


READER = Reader(
    title="HTTP archive (HAR) of calls at the client",
    record_unit="entry",
    gives=("request", "chunk", "prompt_part", "request_tag"),
    probe=probe,
    read=read,
    docs="http://www.softwareishard.com/blog/har-12-spec/",
    cannot="TTFT, where the archive has no times of the stream's messages: wait ends at the "
    "headers. Queue and prefill at the server; wait holds them and the way there and back",
    enable="export from Chrome's DevTools with the stream's messages (_eventSourceMessages); send "
    "an X-Request-Id that gateway and server log",
    checked_against="archives of Firebug and of Polly.JS (a recorded Bedrock agent call); Chrome's "
    "fields for streams after its source",
    facts=(
        (
            "phases",
            "blocked is hold_ns and stands outside e2e_ns; dns, connect (without TLS) and tls are "
            "named parts of the network; a body that took no time to receive was not streamed",
        ),
        ("secrets", "only ids and counts of named headers are kept, and of bodies the usage"),
        ("no model calls", "GET, HEAD and OPTIONS are ignored, unless they were a stream"),
    ),
)
