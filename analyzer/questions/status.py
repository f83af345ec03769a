"""What a case holds: sources, time span, how well each quantity is known, what went wrong."""

from __future__ import annotations

from analyzer.contract.types import CannotSay, Status, Table
from analyzer.engines.duckdb import Engine

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
    span = engine.rows(
        "SELECT count(*) AS requests, min(r.start_ns) AS first_ns, "
        "max(r.start_ns + coalesce(s.e2e_ns, 0)) AS last_ns "
        "FROM resolve_request AS r JOIN latency_segment AS s ON r.request_key = s.request_key"
    )[0]
    assumed = engine.rows(
        "SELECT s.path, n.note FROM source_note AS n JOIN source AS s ON n.source_id = s.source_id "
        "WHERE n.kind = 'assumed' ORDER BY s.source_id, n.note"
    )
    return Status(
        db=db,
        sources=sources(engine),
        coverage=_coverage(engine, span["requests"]),
        problems=_problems(engine),
        assumed=tuple((row["path"], row["note"]) for row in assumed),
        cannot_say=cannot_say,
        requests=span["requests"],
        window=(span["first_ns"], span["last_ns"]) if span["first_ns"] is not None else None,
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
                "absent": absent,
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
