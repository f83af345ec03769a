"""Asks the bound model for each pair of batch and context of an engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from analyzer.bounds.cells import decode_cell
from analyzer.bounds.deployed import setting_of


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a pair; ``told`` is in order of the unit."""
    for unit, group in groupby(told, lambda one: one["unit"]):
        pairs = list(group)
        facts = json.loads(pairs[0]["facts"])
        at = setting_of(facts)
        # The limit that is told is that of all engines together.
        told_limit = facts.get("max_running")
        limit = -(-told_limit // at.replicas) if told_limit else None
        limits = [limit, pairs[0]["largest_batch"]]
        most = min((one for one in limits if one), default=None)
        pool = facts.get("kv_capacity_tokens") or pairs[0]["capacity_tokens"]
        for pair in pairs:
            batch, context = pair["batch"], pair["context"]
            cell = decode_cell(at, batch, context, most=most, pool=pool)
            yield (
                unit, batch, context, cell.batch, cell.strict_ns, cell.expected_ns,
                cell.attainable_ns, cell.all_on_gpu_ns, cell.host_ns,
            )  # fmt: skip
