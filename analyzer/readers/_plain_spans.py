"""One span as tools print it outside OTLP, to the span all kinds know.

JavaScript's readable spans (times as seconds and nanoseconds), Python's console exporter, Phoenix's
spans (API, JSON download, and its table of one column an attribute), and plain lists of spans.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from analyzer.readers._rows import first, text_or_none
from analyzer.readers._spans._kind import Span
from analyzer.readers._times import NS, time_to_ns

_TRACE = ("traceId", "trace_id", "traceID")
_SPAN = ("spanId", "span_id", "spanID")
_HOLDERS = ("spanContext", "_spanContext", "context")
_PARENT = ("parentSpanId", "parent_span_id", "parent_id", "parentId")
_DEEPEST, _MOST_EVENTS = 6, 10_000
_PREFIX = "attributes."
_JS_SERVER = 1


def is_span(value: Mapping[str, Any]) -> bool:
    """Whether an object is a span in one of these shapes."""
    if "hrTime" in value:
        return False
    timed = _is_pair(value.get("startTime")) or "start_time" in value
    return timed and _ids(value)[1] is not None


def is_record(value: Mapping[str, Any]) -> bool:
    """Whether it is a log record of JavaScript's SDK."""
    return _is_pair(value.get("hrTime")) and isinstance(value.get("attributes"), dict)


def _ids(value: Mapping[str, Any]) -> tuple[str | None, str | None]:
    holders = [value, *(value[h] for h in _HOLDERS if isinstance(value.get(h), dict))]
    trace = first(text_or_none(holder.get(name)) for holder in holders for name in _TRACE)
    span = first(text_or_none(holder.get(name)) for holder in holders for name in _SPAN)
    return (
        _bare(trace or text_or_none(value.get("context.trace_id"))),
        _bare(span or text_or_none(value.get("context.span_id"))),
    )


def _bare(name: str | None) -> str | None:
    """Python's console exporter writes ids as 0x..."""
    return name.removeprefix("0x") if name else None


def plain_span(value: Mapping[str, Any], zone: str | None) -> Span:
    """The span an object that :func:`is_span` tells."""
    trace, own = _ids(value)
    inner = value.get("parentSpanContext")
    parent = first(text_or_none(value.get(name)) for name in _PARENT)
    if parent is None and isinstance(inner, dict):
        parent = text_or_none(inner.get("spanId"))
    attributes = _attributes(value)
    return Span(
        text_or_none(value.get("name")) or "",
        trace,
        moment(value.get("startTime", value.get("start_time")), zone),
        moment(value.get("endTime", value.get("end_time")), zone),
        _failed(value),
        attributes,
        resource_of(value),
        own,
        _bare(parent),
        _is_server(value.get("kind"), js="startTime" in value),
        tuple(_events(value.get("events"), zone)),
    )


def _attributes(value: Mapping[str, Any]) -> dict[str, Any]:
    given = value.get("attributes")
    if isinstance(given, str):
        given = _json(given)
    found = dict(_flat(given)) if isinstance(given, dict) else {}
    for name, one in value.items():
        if name.startswith(_PREFIX):
            key = name.removeprefix(_PREFIX)
            if isinstance(one, str) and one.startswith("{"):
                one = _json(one)
            found.update(_flat({key: one}))
    kind = value.get("span_kind")
    if isinstance(kind, str) and "openinference.span.kind" not in found:
        found["openinference.span.kind"] = kind
    return found


def _json(text: str) -> Any:  # noqa: ANN401 - foreign JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _flat(value: dict[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Names with dots: newer exports nest what older ones write side by side."""
    for key, inner in value.items():
        if isinstance(inner, dict) and depth < _DEEPEST:
            yield from _flat(inner, f"{before}{key}.", depth + 1)
        elif inner is not None and inner == inner:  # NaN stands for an empty cell
            yield f"{before}{key}", inner


def resource_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of what sent it."""
    for name in ("resource", "resource_attributes"):
        holder = value.get(name)
        if isinstance(holder, dict):
            inner = holder.get("attributes", holder.get("_attributes", holder))
            return dict(_flat(inner)) if isinstance(inner, dict) else {}
    return {}


def _failed(value: Mapping[str, Any]) -> bool:
    status = value.get("status")
    if isinstance(status, dict):
        return status.get("code") == 2 or status.get("status_code") == "ERROR"
    return "ERROR" in (value.get("status_code"), status)


def _is_server(kind: Any, *, js: bool) -> bool:  # noqa: ANN401
    return kind in ("SpanKind.SERVER", "SPAN_KIND_SERVER", "SERVER") or (js and kind == _JS_SERVER)


def _events(values: Any, zone: str | None) -> Iterator[tuple[str, int | None, dict[str, Any]]]:  # noqa: ANN401
    if isinstance(values, str):
        values = _json(values)
    for one in values[:_MOST_EVENTS] if isinstance(values, list) else ():
        name = text_or_none(one.get("name")) if isinstance(one, dict) else None
        if name is not None:
            told = one.get("attributes")
            when = moment(one.get("time", one.get("timestamp")), zone)
            yield name, when, dict(_flat(told)) if isinstance(told, dict) else {}


def _is_pair(value: Any) -> bool:  # noqa: ANN401
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(one, int) and not isinstance(one, bool) for one in value)
    )


_DIGITS = re.compile(r"\d{13}|\d{16}|\d{19}")


def moment(value: Any, zone: str | None) -> int | None:  # noqa: ANN401
    """A pair of seconds and nanoseconds, RFC 3339, or a count since the epoch by its length."""
    if _is_pair(value):
        return time_to_ns(value[0]) and value[0] * NS + value[1]
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        return None
    if _DIGITS.fullmatch(text := str(value)):
        return time_to_ns(int(text[:10])) and int(text.ljust(19, "0"))
    return time_to_ns(value, zone)
