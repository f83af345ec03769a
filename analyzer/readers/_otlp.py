"""OTLP/JSON to plain spans: int64 may be text, attributes are lists of key and typed value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analyzer.readers._rows import text_or_none
from analyzer.readers._spans._kind import Span

_ERROR = (2, "STATUS_CODE_ERROR")
_SERVER = (2, "SPAN_KIND_SERVER")
_MOST_EVENTS = 10_000


@dataclass(frozen=True)
class Broken:
    """Something that should be a span, or hold spans, and does not."""

    reason: str
    value: Any


def spans_of(batch: dict[str, Any]) -> Iterator[Span | Broken]:
    """Every span below ``resourceSpans``, in file order."""
    for group in _list(batch, "resourceSpans"):
        if isinstance(group, Broken) or not isinstance(group, dict):
            yield _broken(group, "an entry of resourceSpans is no object")
            continue
        holder = group.get("resource")
        resource = attributes(holder.get("attributes")) if isinstance(holder, dict) else {}
        # The second name is the one of OTLP before 0.20.
        name = "scopeSpans" if "scopeSpans" in group else "instrumentationLibrarySpans"
        for scope in _list(group, name):
            if isinstance(scope, Broken) or not isinstance(scope, dict):
                yield _broken(scope, f"an entry of {name} is no object")
                continue
            for span in _list(scope, "spans"):
                yield _span(span, resource)


def _list(holder: dict[str, Any], name: str) -> list[Any]:
    value = holder.get(name)
    if value is None:
        return []
    return value if isinstance(value, list) else [Broken(f"{name} is no list", value)]


def _broken(value: Any, reason: str) -> Broken:  # noqa: ANN401 - foreign JSON
    return value if isinstance(value, Broken) else Broken(reason, value)


def _span(value: Any, resource: dict[str, Any]) -> Span | Broken:  # noqa: ANN401
    if not isinstance(value, dict):
        return _broken(value, "a span that is no object")
    name, status = text_or_none(value.get("name")), value.get("status")
    if name is None:
        return Broken("a span without a name", value)
    return Span(
        name,
        text_or_none(value.get("traceId")),
        _nanos(value.get("startTimeUnixNano")),
        _nanos(value.get("endTimeUnixNano")),
        isinstance(status, dict) and status.get("code") in _ERROR,
        attributes(value.get("attributes")),
        resource,
        text_or_none(value.get("spanId")),
        text_or_none(value.get("parentSpanId")),
        value.get("kind") in _SERVER,
        tuple(_events(value.get("events"))),
    )


def _events(values: Any) -> Iterator[tuple[str, int | None, dict[str, Any]]]:  # noqa: ANN401
    for one in values[:_MOST_EVENTS] if isinstance(values, list) else ():
        name = text_or_none(one.get("name")) if isinstance(one, dict) else None
        if name is not None:
            yield name, _nanos(one.get("timeUnixNano")), attributes(one.get("attributes"))


@dataclass(frozen=True)
class Event:
    """One log record: its name where it has one, its time, its attributes as plain values."""

    name: str | None
    time_ns: int | None
    attributes: dict[str, Any]
    resource: dict[str, Any]


def events_of(batch: dict[str, Any]) -> Iterator[Event | Broken]:
    """Every log record below ``resourceLogs``, in file order."""
    for group in _list(batch, "resourceLogs"):
        if isinstance(group, Broken) or not isinstance(group, dict):
            yield _broken(group, "an entry of resourceLogs is no object")
            continue
        holder = group.get("resource")
        resource = attributes(holder.get("attributes")) if isinstance(holder, dict) else {}
        name = "scopeLogs" if "scopeLogs" in group else "instrumentationLibraryLogs"
        for scope in _list(group, name):
            if isinstance(scope, Broken) or not isinstance(scope, dict):
                yield _broken(scope, f"an entry of {name} is no object")
                continue
            for value in _list(scope, "logRecords"):
                yield _event(value, resource)


def _event(value: Any, resource: dict[str, Any]) -> Event | Broken:  # noqa: ANN401
    if not isinstance(value, dict):
        return _broken(value, "a log record that is no object")
    told = attributes(value.get("attributes"))
    # The body of such an event is its name; that of any other record is somebody's text.
    names = (told.get("event.name"), value.get("eventName"), _plain(value.get("body")))
    return Event(
        next((name for name in names if isinstance(name, str) and name), None),
        _nanos(value.get("timeUnixNano")) or _nanos(value.get("observedTimeUnixNano")),
        told,
        resource,
    )


def attributes(pairs: Any) -> dict[str, Any]:  # noqa: ANN401
    """Key -> plain value; what has no known type is left out."""
    found: dict[str, Any] = {}
    for pair in pairs if isinstance(pairs, list) else ():
        if isinstance(pair, dict) and isinstance(pair.get("key"), str):
            value = _plain(pair.get("value"))
            if value is not None:
                found[pair["key"]] = value
    return found


def _plain(value: Any) -> Any:  # noqa: ANN401
    if not isinstance(value, dict):
        return None
    if "intValue" in value:
        return _whole(value["intValue"])
    if "doubleValue" in value:
        number = value["doubleValue"]
        return float(number) if number in ("NaN", "Infinity", "-Infinity") else number
    if "arrayValue" in value:
        inner = value["arrayValue"]
        items = inner.get("values") if isinstance(inner, dict) else None
        return [_plain(one) for one in items] if isinstance(items, list) else []
    return value.get("stringValue", value.get("boolValue"))


def _whole(value: Any) -> int | None:  # noqa: ANN401
    if isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _nanos(value: Any) -> int | None:  # noqa: ANN401
    """A time stamp; 0 means unknown in OTLP."""
    ns = _whole(value)
    return ns or None
