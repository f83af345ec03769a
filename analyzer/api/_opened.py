"""A case with its analyses, open for as long as it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from analyzer.contract.types import Filters
from analyzer.engines.duckdb import Engine
from analyzer.store.case import open_case


@contextmanager
def opened(
    db: str, filters: Filters | None = None, told: Mapping[str, Any] | None = None
) -> Iterator[Engine]:
    """Its engine under filters; ``told``: what the user says of the deployment."""
    case = open_case(db)
    try:
        yield Engine(case, filters, told)
    finally:
        case.close()


def asked_span(filters: Filters | None) -> tuple[int | None, int | None]:
    """Both ends of the window that filters ask about."""
    return (filters.since_ns, filters.until_ns) if filters else (None, None)
