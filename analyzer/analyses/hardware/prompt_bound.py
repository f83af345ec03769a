"""Asks the bound model for each size of prompt of an engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from analyzer.bounds.cells import prefill_cell
from analyzer.bounds.deployed import setting_of


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a size; ``told`` is in order of the unit."""
    for unit, group in groupby(told, lambda one: one["unit"]):
        sizes = list(group)
        at = setting_of(json.loads(sizes[0]["facts"]))
        for size in sizes:
            new, cached = size["new_cell"], size["cached_cell"]
            cell = prefill_cell(at, new + cached, cached)
            yield (
                unit, new, cached, cell.strict_ns, cell.expected_ns, cell.attainable_ns,
                cell.peak_ns,
            )  # fmt: skip
