"""Rows of spans, whatever container they came in: one by one, or of several that make a request."""

from __future__ import annotations

from typing import Any

from analyzer.readers._jsonl import Sink
from analyzer.readers._parts import Part, add_parts
from analyzer.readers._pending import Part as Held
from analyzer.readers._pending import Pending
from analyzer.readers._rows import believed
from analyzer.readers._spans._kind import Kind, Span, all_kinds

UNKNOWN = "span of no known kind"
NOTHING_NEW = "span that adds nothing to its request"
HEALTH_CHECK = "health check"
# Processes export their spans half a second apart: so many requests may begin meanwhile.
_HELD = 2_000
_MOST_GENERAL = 30_000
"""Spans held in all; they are kept in the case for when the file grows."""


class Gather:
    """Takes spans, and gives the rows of those that had to meet others first."""

    def __init__(self, state: Any = None) -> None:  # noqa: ANN401 - stored JSON
        # Spans of no kind of their own are many: they must not drive out those of the others.
        held = state if isinstance(state, dict) else {"requests": state}
        self._pending = Pending(_HELD, held.get("requests"))
        self._general = Pending(_HELD, held.get("traces"), _MOST_GENERAL)
        # Told once, with the row of their request; not kept for when the file grows.
        self._prompts: dict[int, list[Part]] = {}

    def take(self, span: Span, record: int, sink: Sink) -> str:
        """Adds the rows of one span, now or later; what of it could not be believed."""
        for kind in all_kinds():
            if kind.matches(span.name, span.attributes, span.resource):
                return self._take(kind, span, record, sink)
        sink.ignored[UNKNOWN] += 1
        return ""

    def _take(self, kind: Kind, span: Span, record: int, sink: Sink) -> str:
        if kind.part is None:
            return kind.rows(span, record, sink) if kind.rows else ""
        told = kind.part(span)
        if told is None:
            sink.ignored[NOTHING_NEW] += 1
            return ""
        key, part = told
        if key == HEALTH_CHECK:
            sink.ignored[HEALTH_CHECK] += 1
            return ""
        if reason := part.pop("ignored", None):
            sink.ignored[reason] += 1
            if not key:
                return ""
        strange = [str(part.pop("strange", "")), believed(part.get("columns", {}))]
        if prompt := part.pop("prompt", None):
            self._prompts[record] = prompt
        part |= {"record": record, "kind": kind.name}
        pending = self._general if kind.general else self._pending
        pending.add(f"{kind.name} {key}", part)
        return "; ".join(one for one in strange if one)

    def settle(self, sink: Sink) -> None:
        """Adds the rows of requests that nothing was added to for long enough."""
        for parts in [*self._pending.settled(), *self._general.settled()]:
            self._emit(parts, sink)

    def finish(self, sink: Sink) -> tuple[int, ...]:
        """Adds all other rows; their records, for they may change when the file grows."""
        records: list[int] = []
        for parts in [*self._pending.rest(), *self._general.rest()]:
            records += self._emit(parts, sink)
        return tuple(sorted(records))

    def state(self) -> Any:  # noqa: ANN401 - stored JSON
        """What a later read goes on from."""
        return {"requests": self._pending.state(), "traces": self._general.state()}

    def _emit(self, parts: list[Held], sink: Sink) -> list[int]:
        joined = next(kind.joined for kind in all_kinds() if kind.name == parts[0]["kind"])
        rows = joined(parts) if joined else []
        prompts = {one["record"]: self._prompts.pop(one["record"], []) for one in parts}
        for row in rows:
            sink.rows.setdefault("request", []).append(row)
            add_parts(sink, row["record"], prompts.get(row["record"], []))
        return [row["record"] for row in rows]
