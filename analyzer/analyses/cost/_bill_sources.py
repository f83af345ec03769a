"""Which of several exports of one vendor count: no time of it is told twice, and none is lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import median
from typing import Any

HOUR = 3_600_000_000_000
Line = dict[str, Any]
Span = tuple[int, int]
_FIGURES = ("quantity", "amount", "list_amount")
_PLACE = (
    "reader", "start_ns", "end_ns", "model", "token_kind", "unit", "item", "charge",
    "service_tier", "is_long", "currency",
)  # fmt: skip


def once(lines: Iterable[Line]) -> list[Line]:
    """Without what a file repeats of another of its format: an export that was fetched again.

    Files of one format are parts of one export, and may share periods; a repeat has the same
    figures at most of the places that both tell, zeros aside: any two agree on those. There the
    file that reaches further counts, for it is the newer one.
    """
    files = by_path(lines)
    seen: dict[tuple[Any, ...], Line] = {}
    kept: list[Line] = []
    for path in sorted(files, key=lambda path: (-span(files[path])[1], path)):
        own = files[path]
        both = [(line, seen[place]) for line in own if (place := _place(line)) in seen]
        same = [(a, b) for a, b in both if any(a[name] or b[name] for name in _FIGURES)]
        equal = sum(all(a[name] == b[name] for name in _FIGURES) for a, b in same)
        is_repeat = 2 * equal > len(same)
        kept += [line for line in own if not (is_repeat and _place(line) in seen)]
        seen |= {_place(line): line for line in own if _place(line) not in seen}
    return kept


def taken(lines: Iterable[Line]) -> list[Line]:
    """Of exports over the same time the fullest; usage reports before bills that tell tokens too.

    What lies outside of its time counts from the others. Files of one format are one export where
    their periods are as long: hours and days of the same format are two.
    """
    exports: dict[tuple[bool, str, int], list[Line]] = defaultdict(list)
    for own in by_path(lines).values():
        length = int(median(end - start for start, end in map(period, own)))
        for line in own:
            exports[line["amount"] is not None, line["reader"], length].append(line)
    found: list[Line] = []
    spans: list[Span] = []
    for name in sorted(exports, key=lambda one: (one[0], -_fullness(exports[one]), one)):
        own = exports[name]
        found += [line for line in own if not _overlaps(period(line), spans)]
        spans += [span(some) for some in by_path(own).values()]
    return found


def period(line: Line) -> Span:
    """A line's period, at least an hour long."""
    start, end = line["start_ns"], line["end_ns"]
    if end is None or end - start < HOUR:
        start -= start % HOUR
        end = start + HOUR
    return start, end


def _overlaps(own: Span, spans: Iterable[Span]) -> bool:
    return any(own[0] < end and start < own[1] for start, end in spans)


def span(lines: Iterable[Line]) -> Span:
    """From the first to the last period: an hour between without a line had no usage."""
    told = [period(line) for line in lines]
    return min(start for start, _ in told), max(end for _, end in told)


def by_path(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """Lines by their file."""
    found: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        found[line["path"]].append(line)
    return found


def _place(line: Line) -> tuple[Any, ...]:
    return tuple(line[name] for name in _PLACE)


def _fullness(lines: list[Line]) -> int:
    return sum(1 + bool(line["token_kind"]) + bool(line["model"]) for line in lines)
