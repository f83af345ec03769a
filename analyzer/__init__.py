"""Where did the time and the money go, how do we know, and when is it fixed.

The Python API is the command line without the terminal::

    import analyzer

    analyzer.ingest("case.duckdb", ["logs/"])
    result = analyzer.findings("case.duckdb")
    analyzer.write_report("case.duckdb", "reports/incident.html")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from analyzer.api import (
        compare,
        cost,
        explain,
        findings,
        formats,
        gpu,
        ingest,
        latency,
        show,
        sql,
        status,
        turns,
        verify,
        write_report,
    )

__all__ = [
    "compare",
    "cost",
    "explain",
    "findings",
    "formats",
    "gpu",
    "ingest",
    "latency",
    "show",
    "sql",
    "status",
    "turns",
    "verify",
    "write_report",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - PEP 562 lazy export keeps `analyze --help` instant
    if name in __all__:
        from analyzer import api

        return getattr(api, name)
    msg = f"module 'analyzer' has no attribute {name!r}"
    raise AttributeError(msg)
