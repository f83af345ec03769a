"""What a finding touches: its requests, or what else a play counts, and where they stand."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.engines.duckdb import Engine
from analyzer.runbook._play import Front

_EXAMPLES = 3


@dataclass(frozen=True)
class Touched:
    """How many, their sums, when and where."""

    requests: int
    excess: float
    whole: float
    first_ns: int | None
    last_ns: int | None
    total: float
    where: str | None
    examples: tuple[str, ...]

    @property
    def window(self) -> tuple[int, int] | None:
        """From the first to the last, in wall time."""
        known = self.first_ns is not None and self.last_ns is not None
        return (self.first_ns, self.last_ns) if known else None  # type: ignore[return-value]


def touched_by(front: Front, engine: Engine) -> Touched:
    """Sums over what is touched, and where it stands."""
    if front.unit != "requests":
        return _items(front, engine)
    return _requests(front.touched, engine)


def _items(front: Front, engine: Engine) -> Touched:
    """Steps, launches, ranks: the play's SQL names them itself."""
    row = engine.rows(
        f"""WITH touched AS ({front.touched})
SELECT
  count(*) AS items, coalesce(SUM(CAST(excess AS DOUBLE)), 0) AS excess,
  coalesce(SUM(CAST(whole AS DOUBLE)), 0) AS whole,
  min(start_ns) AS first_ns, max(end_ns) AS last_ns,
  count(DISTINCT place) AS places, count(place) AS placed, min(place) AS place
FROM touched"""
    )[0]
    if not row["items"]:
        return Touched(0, 0, 0, None, None, 0, None, ())
    examples = engine.rows(
        f"WITH touched AS ({front.touched}) SELECT item FROM touched "
        f"ORDER BY excess DESC, item LIMIT {_EXAMPLES}"
    )
    total = float(engine.value(front.total) or 0) if front.total else 0.0
    alone = row["places"] == 1 and row["placed"] == row["items"]
    return Touched(
        row["items"], row["excess"], row["whole"], row["first_ns"], row["last_ns"], total,
        row["place"] if alone else None, tuple(str(one["item"]) for one in examples),
    )  # fmt: skip


def _requests(sql: str, engine: Engine) -> Touched:
    rows = engine.rows(
        f"""WITH touched AS ({sql})
SELECT
  count(*) AS requests, coalesce(SUM(CAST(t.excess AS DOUBLE)), 0) AS excess,
  coalesce(SUM(CAST(t.whole AS DOUBLE)), 0) AS whole,
  min(r.start_ns) AS first_ns, max(r.start_ns + coalesce(s.e2e_ns, 0)) AS last_ns,
  count(DISTINCT r.route) AS routes, min(r.route) AS route, count(r.route) AS with_route,
  count(DISTINCT r.model) AS models, min(r.model) AS model, count(r.model) AS with_model
FROM touched AS t
JOIN resolve_request AS r ON t.request_key = r.request_key
JOIN latency_segment AS s ON t.request_key = s.request_key"""
    )
    row = rows[0]
    if not row["requests"]:
        return Touched(0, 0, 0, None, None, 0, None, ())
    case = engine.rows(
        "SELECT coalesce(SUM(CAST(e2e_ns AS DOUBLE)), 0) AS total, "
        "count(DISTINCT r.route) AS routes, count(DISTINCT r.model) AS models "
        "FROM latency_segment AS s "
        "JOIN resolve_request AS r ON s.request_key = r.request_key"
    )[0]
    examples = engine.rows(
        f"WITH touched AS ({sql}) SELECT r.id FROM touched AS t JOIN resolve_request AS r "
        f"ON t.request_key = r.request_key ORDER BY t.excess DESC, t.request_key LIMIT {_EXAMPLES}"
    )
    where = [
        f"{name} {row[name]}"
        for name in ("route", "model")
        if row[f"{name}s"] == 1 and row[f"with_{name}"] == row["requests"] and case[f"{name}s"] > 1
    ]
    return Touched(
        row["requests"], row["excess"], row["whole"], row["first_ns"], row["last_ns"],
        case["total"], ", ".join(where) or None, tuple(one["id"] for one in examples),
    )  # fmt: skip
