"""Asks the bound model for the batches and contexts of traced decode steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from analyzer.bounds.cells import decode_cell
from analyzer.bounds.deployed import setting_of


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a pair; all have the facts of the one deployment."""
    if not told:
        return
    at = setting_of(json.loads(told[0]["facts"]))
    for one in told:
        cell = decode_cell(at, one["batch"], one["context"], most=None, pool=None)
        yield one["batch"], one["context"], one["steps"], cell.expected_ns, cell.attainable_ns
