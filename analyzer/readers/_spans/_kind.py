"""What a kind of span is, and the list of them by looking at this folder."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import analyzer.readers._spans
from analyzer.readers._fast_lines import Fast
from analyzer.readers._jsonl import Sink
from analyzer.readers._pending import Part
from analyzer.readers._rows import text_or_none


@dataclass(frozen=True)
class Span:
    """One span with its attributes as plain values."""

    name: str
    trace_id: str | None
    start_ns: int | None
    end_ns: int | None
    failed: bool
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]
    span_id: str | None = None
    parent_id: str | None = None
    server: bool = False
    """It is the receiving end of a call."""
    events: tuple[tuple[str, int | None, Mapping[str, Any]], ...] = ()
    """Name, time and attributes of what happened within it."""

    @property
    def deployment(self) -> str | None:
        """The service that sent it, where somebody has named it."""
        name = text_or_none(self.resource.get("service.name"))
        return None if name is None or name.startswith("unknown_service") else name


@dataclass(frozen=True)
class Kind:
    """Spans of one origin.

    ``rows(span, record, sink)`` adds the rows and returns what of the span could not be believed,
    as a sentence for the reader of the report; empty if all is well.

    Where several spans make a request, ``part(span)`` gives the key under which they belong
    together and what this one tells, JSON-able; None if it adds nothing. ``joined(parts)`` makes
    rows of ``request`` of the parts that have met, each with the ``record`` of its part. ``name``
    tells such kinds apart. A part whose ``ignored`` says why tells no request of its own, but may
    say where other spans belong; it is kept if its key is not empty.
    """

    matches: Callable[[str, Mapping[str, Any], Mapping[str, Any]], bool]
    rows: Callable[[Span, int, Sink], str] | None = None
    part: Callable[[Span], tuple[str, Part] | None] | None = None
    joined: Callable[[list[Part]], list[dict[str, Any]]] | None = None
    name: str = ""
    fast: Fast | None = None
    """The rows of many such spans at once, where each makes its own; ``deployment`` is added."""
    general: bool = False
    """Asked after all others, for spans that none of them knows."""


@cache
def all_kinds() -> tuple[Kind, ...]:
    """The kinds of every module of this folder that does not start with ``_``."""
    folder = analyzer.readers._spans
    names = sorted(
        module.name
        for module in pkgutil.iter_modules(folder.__path__)
        if not module.name.startswith("_")
    )
    modules = (importlib.import_module(f"{folder.__name__}.{name}") for name in names)
    return tuple(sorted((module.KIND for module in modules), key=lambda kind: kind.general))
