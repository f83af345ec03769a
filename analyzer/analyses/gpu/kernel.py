"""Looks up what kernels do: a name once, whatever the number of its launches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.catalogs.kernel_classes import class_of


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a kind and name."""
    for row in told:
        found = class_of(row["kind"], row["name"])
        yield row["kind"], row["name"], found.name, found.group, found.rule
