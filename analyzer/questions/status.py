"""What a case holds: sources, time span, how well each quantity is known, what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analyzer.contract.types import CannotSay, Status, Table
from analyzer.engines.duckdb import Engine
from analyzer.questions import modelled
from analyzer.questions.timeline import window_of

_QUANTITIES = (
    "queue", "prefill", "decode", "network", "e2e", "ttft", "tpot", "itl",
)  # fmt: skip
_TOLD = (
    ("prompt tokens", "input_tokens"),
    ("cached tokens", "cache_read_tokens"),
    ("output tokens", "output_tokens"),
)


def status_of(db: str, engine: Engine, cannot_say: tuple[CannotSay, ...]) -> Status:
    """Sources, coverage, problems, assumptions; ``cannot_say`` comes from the runbook."""
    requests = int(engine.value("SELECT count(*) FROM resolve_request") or 0)
    assumed = engine.rows(
        "SELECT s.path, n.note FROM source_note AS n JOIN source AS s ON n.source_id = s.source_id "
        "WHERE n.kind = 'assumed' ORDER BY s.source_id, n.note"
    )
    return Status(
        db=db,
        sources=sources(engine),
        coverage=_coverage(engine, requests),
        problems=_problems(engine),
        assumed=tuple((row["path"], row["note"]) for row in assumed),
        cannot_say=cannot_say,
        requests=requests,
        window=window_of(engine),
        engines=engines(engine),
    )


def engines(engine: Engine) -> Table:
    """What each server's own samples show at most."""
    rows = engine.rows(
        "SELECT engine, count(*) AS samples, max(running) AS running, max(waiting) AS waiting, "
        "max(kv_used_ratio) AS kv_used_ratio, min(time_ns) AS first_ns, max(time_ns) AS last_ns "
        "FROM resolve_engine_sample GROUP BY engine ORDER BY engine"
    )
    return Table("analyze.engines", tuple(rows))


def engine_sentence(engine: Engine, say: Callable[[Any, str], str]) -> str:
    """The servers at their fullest, for a case in which no request tells its time."""
    rows = [row for row in engines(engine).rows if row["running"] is not None]
    if not rows:
        return ""
    worst = max(rows, key=lambda row: (row["waiting"] or 0, row["running"]))
    parts = [f"{say(worst['running'], '')} running"]
    if worst["waiting"] is not None:
        parts.append(f"{say(worst['waiting'], '')} waiting")
    if worst["kv_used_ratio"] is not None:
        parts.append(f"{say(worst['kv_used_ratio'], 'ratio')} of the KV cache in use")
    return (
        f"The servers' own samples show at most {', '.join(parts)}; ingest request spans or a "
        "client's log of the same time to see whom it delayed, and why."
    )


def sources(engine: Engine) -> Table:
    """Every file that was read, with its account."""
    rows = engine.rows(
        "SELECT path, reader, record_unit, records, used, ignored, problems, first_ns, last_ns, "
        "bytes, sha256 FROM source ORDER BY source_id"
    )
    return Table("analyze.sources", tuple(rows))


def _coverage(engine: Engine, requests: int) -> Table:
    counted = {
        row["metric"]: row
        for row in engine.rows(
            "SELECT metric, count(*) FILTER (WHERE grade = 'measured') AS measured, "
            "count(*) FILTER (WHERE grade = 'derived') AS derived, "
            "count(*) FILTER (WHERE grade = 'absent') AS absent FROM latency_metric GROUP BY metric"
        )
    }
    rows = []
    for name in _QUANTITIES:
        one = counted.get(name, {"measured": 0, "derived": 0, "absent": 0})
        rows.append((name, one["measured"], one["derived"], one["absent"]))
    fitted = modelled.counts(engine) if requests else {}
    told = engine.rows(
        "SELECT "
        + ", ".join(f"count({column}) AS {column}" for _, column in _TOLD)
        + " FROM resolve_request"
    )[0]
    rows += [(name, told[column], 0, requests - told[column]) for name, column in _TOLD]
    return Table(
        "analyze.coverage",
        tuple(
            {
                "quantity": name,
                "requests": requests,
                "measured": measured,
                "derived": derived,
                "modelled": fitted.get(name, 0),
                "absent": absent - fitted.get(name, 0),
                "coverage": (measured + derived) / requests if requests else None,
            }
            for name, measured, derived, absent in rows
        ),
    )


def _problems(engine: Engine) -> Table:
    rows = engine.rows(
        "SELECT s.path, min(p.record) AS record, count(*) AS records, p.reason, "
        "min_by(p.excerpt, p.record) AS excerpt "
        "FROM problem AS p JOIN source AS s ON p.source_id = s.source_id "
        "GROUP BY s.source_id, s.path, p.reason ORDER BY s.source_id, record, p.reason"
    )
    return Table("analyze.problems", tuple(rows))
