"""The one path from files to a verdict; every command is one call of a function here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analyzer.api._asked import (
        bounds,
        bounds_observed,
        catalogued,
        compare,
        cost,
        cost_groups,
        explain,
        explain_family,
        findings,
        formats,
        gpu,
        groups,
        latency,
        over_time,
        report,
        rules,
        schema,
        show,
        simulate,
        simulate_like,
        span,
        sql,
        status,
        turns,
        two_stage,
        verify,
        what_if,
        what_if_like,
        write_compare,
        write_gpu_window,
        write_report,
        write_verify,
    )
    from analyzer.intake import hold_to, ingest

__all__ = [
    "bounds", "bounds_observed", "catalogued", "compare", "cost", "cost_groups", "explain",
    "explain_family", "findings", "formats", "gpu", "groups", "hold_to", "ingest", "latency",
    "over_time", "report", "rules", "schema", "show", "simulate", "simulate_like", "span",
    "sql", "status", "turns", "two_stage", "verify", "what_if", "what_if_like", "write_compare",
    "write_gpu_window", "write_report", "write_verify",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401 - PEP 562
    # Questions load analyses, worlds and pages, which takes as long as reading a large log.
    if name in ("hold_to", "ingest"):
        from analyzer import intake

        return getattr(intake, name)
    if name in __all__:
        import analyzer.api._asked as asked

        return getattr(asked, name)
    msg = f"module 'analyzer.api' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
