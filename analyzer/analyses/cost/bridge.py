"""The bridge over the last lasting rise of cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from analyzer.bridging.told import told

_COLUMNS = ("factor", "cost_usd", "share", "before", "after", "unit", "drivers")


def rows(cells: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a factor, the largest first; ``cells`` are the rows of ``cost_window``."""
    spans = {row["is_window"]: (row["from_ns"], row["until_ns"]) for row in cells}
    if len(spans) < 2:
        return
    found = told(cells, (spans[False], spans[True]), per="window")
    session, session_usd = _largest_session(cells)
    lead = max(found.rows, key=lambda row: row["cost_usd"])
    for place, row in enumerate(found.rows, 1):
        yield (
            place, row is lead, *(row[name] for name in _COLUMNS), found.difference, *found.usd,
            float(found.windows[1].days), session, session_usd, found.windows[1].unpriced_tokens,
            found.sentence,
        )  # fmt: skip


def _largest_session(cells: list[dict[str, Any]]) -> tuple[str | None, Decimal | None]:
    moved: dict[str, Decimal] = defaultdict(Decimal)
    for row in cells:
        if row["kind"] == "session" and row["name"] is not None:
            moved[row["name"]] += row["usd"] if row["is_window"] else -row["usd"]
    if not moved:
        return None, None
    name = max(moved, key=lambda one: (moved[one], one))
    return name, moved[name]
