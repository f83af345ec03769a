"""Files of bills: which of their lines count, and which file counts in place of the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.analyses.cost._bill_lines import Bill, bills_of
from analyzer.analyses.cost._bill_sources import Line, Span, by_path, span


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One tuple a vendor and file, in order of their names."""
    for bill in bills_of(told):
        yield from _of(bill)


def _of(bill: Bill) -> Iterator[tuple[Any, ...]]:
    beside = [line for _, line in bill.beside]
    counted = (*bill.token_lines, *bill.money_lines, *beside, *bill.requests)
    used = by_path({id(line): line for line in counted}.values())
    spans = {path: span(lines) for path, lines in used.items()}
    unused, calls = by_path(bill.unused), by_path(bill.requests)
    for path in sorted({*used, *unused}):
        left = unused.get(path, [])
        first, last = span(left) if left else (None, None)
        yield (
            bill.who, path, len(used.get(path, [])), len(left), first, last,
            _instead(path, left, spans), _sum(calls.get(path, [])),
        )  # fmt: skip


def _instead(path: str, left: list[Line], spans: dict[str, Span]) -> str | None:
    """The file that has most of their time in common."""
    if not left:
        return None
    first, last = span(left)
    common = {
        other: min(last, end) - max(first, start)
        for other, (start, end) in spans.items()
        if other != path
    }
    return max(sorted(common), key=lambda other: common[other]) if common else None


def _sum(calls: list[Line]) -> Any:  # noqa: ANN401 - DECIMAL or NULL
    return sum(line["quantity"] or 0 for line in calls) if calls else None
