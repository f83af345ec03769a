"""Asks the bound model for the batches and contexts of traced decode steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from analyzer.bounds.cells import decode_cell
from analyzer.bounds.deployed import setting_of


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a cell; all have the facts of the one deployment."""
    if not told:
        return
    at = replace(setting_of(json.loads(told[0]["facts"])), tokens=1.0)
    for one in told:
        batch, context, positions = one["batch"], one["context"], one["positions"]
        cell = decode_cell(replace(at, drafts=positions - 1), batch, context, most=None, pool=None)
        yield batch, context, positions, one["steps"], cell.expected_ns, cell.attainable_ns
