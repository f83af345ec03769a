"""What was used and what it costs: by group, in all, and what of it bought nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analyzer.bridging.told import SECRET, hashed
from analyzer.contract._cost_outputs import COST_GROUPS
from analyzer.contract.costs import Costs
from analyzer.contract.types import Table
from analyzer.engines.duckdb import Engine
from analyzer.errors import AnalyzerError, near
from analyzer.questions import _zone, cost_notes

_COLUMNS = {
    "model": "q.model",
    "provider": "q.provider",
    "route": "q.route",
    "tier": "coalesce(b.tier, q.service_tier)",
    "source": "q.source",
    "session": "coalesce(h.session, q.session_id)",
    "agent": "CASE WHEN h.is_agent THEN h.thread ELSE 'main' END",
    "user": "p.user_name",
    "key": "p.key_name",
    "team": "p.team",
    "part": "e.part",
}
_JOINS = {
    "tier": "LEFT JOIN resolve_billed_tag AS b ON q.request_key = b.request_key",
    "session": "LEFT JOIN turns_thread AS h ON q.request_key = h.request_key",
    "user": "LEFT JOIN cost_spender AS p ON q.request_key = p.request_key",
    "part": "JOIN cost_part AS e ON q.request_key = e.request_key",
}
_SAME = {"agent": "session", "key": "user", "team": "user"}
"""Groups that stand in the same table."""

_DAY, _HOUR = 86_400_000_000_000, 3_600_000_000_000
_TIMES = ("day", "hour")

_MONEY = "DECIMAL(38,15)"
_SUMS = f"""count(*) AS requests,
  CAST(sum(coalesce(q.input_fresh_tokens, 0)) AS BIGINT) AS input_fresh_tokens,
  CAST(sum(coalesce(q.cache_read_tokens, 0)) AS BIGINT) AS cache_read_tokens,
  CAST(sum(coalesce(q.cache_write_tokens, 0)) AS BIGINT) AS cache_write_tokens,
  CAST(sum(coalesce(q.output_tokens, 0)) AS BIGINT) AS output_tokens,
  CAST(sum(coalesce(q.output_reasoning_tokens, 0)) AS BIGINT) AS reasoning_tokens,
  CAST(sum(c.usd) AS {_MONEY}) AS cost_usd,
  CAST(sum(c.unpriced_tokens) AS BIGINT) AS unpriced_tokens,
  count(CASE WHEN t.is_answer THEN 1 END) AS answers,
  count(CASE WHEN t.is_answer AND c.usd IS NOT NULL THEN 1 END) AS priced_answers,
  CAST(sum(CASE WHEN c.is_subscription THEN c.usd END) AS {_MONEY}) AS api_equivalent_usd,
  CAST(sum(c.reported_usd) AS {_MONEY}) AS reported_usd"""
_PARTS = f"""count(DISTINCT q.request_key) AS requests,
  CAST(sum(e.fresh_tokens) AS BIGINT) AS input_fresh_tokens,
  CAST(sum(e.read_tokens) AS BIGINT) AS cache_read_tokens,
  CAST(sum(e.write_tokens) AS BIGINT) AS cache_write_tokens,
  CAST(sum(e.output_tokens) AS BIGINT) AS output_tokens,
  CAST(sum(CASE WHEN e.part = 'reasoning' THEN e.output_tokens ELSE 0 END) AS BIGINT)
    AS reasoning_tokens,
  CAST(sum(CASE WHEN c.usd IS NOT NULL THEN e.usd END) AS {_MONEY}) AS cost_usd,
  CAST(sum(e.unpriced_tokens) AS BIGINT) AS unpriced_tokens,
  CAST(NULL AS BIGINT) AS answers,
  CAST(NULL AS BIGINT) AS priced_answers,
  CAST(sum(CASE WHEN c.is_subscription THEN e.usd END) AS {_MONEY}) AS api_equivalent_usd,
  CAST(NULL AS {_MONEY}) AS reported_usd"""
_ONE_OR_BOTH = """CASE WHEN min(c.{0}) = max(c.{0}) THEN min(c.{0})
    WHEN min(c.{0}) IS NOT NULL THEN concat(min(c.{0}), ', ', max(c.{0})) END AS {0}"""
_PRICES = ",\n  ".join(
    (
        _ONE_OR_BOTH.format("price_source"),
        _ONE_OR_BOTH.format("price_version"),
        "max(c.price_date) AS price_date",
    )
)
_FROM = """FROM cost_tracked AS t
JOIN cost_request AS c ON t.request_key = c.request_key
JOIN resolve_request AS q ON t.request_key = q.request_key"""

_WASTE = """SELECT kind, why, confidence, count(*) AS requests,
  CAST(sum(tokens) AS BIGINT) AS tokens, CAST(sum(usd) AS DECIMAL(38,15)) AS cost_usd
FROM {0}
GROUP BY kind, why, confidence
ORDER BY cost_usd DESC NULLS LAST, tokens DESC NULLS LAST, kind, why, confidence"""
_ON_BILL = "told by the bill alone"
_WITH_BILL = f"""(
  SELECT
    w.kind, CASE WHEN h.request_key IS NULL THEN w.why ELSE '{_ON_BILL}' END AS why, w.confidence,
    coalesce(h.tokens, w.tokens) AS tokens, coalesce(h.usd, w.usd) AS usd
  FROM cost_waste AS w
  LEFT JOIN cost_hidden AS h
    ON w.request_key = h.request_key AND h.is_billed AND h.kind <> 'inside'
      AND w.why = 'usage not told'
  UNION ALL
  SELECT 'failed attempts', '{_ON_BILL}', 'derived', tokens, usd
  FROM cost_hidden
  WHERE is_billed AND kind = 'inside'
) AS paid"""


def costs(
    engine: Engine,
    by: Sequence[str] = (),
    *,
    top: int = 20,
    zone: str = "UTC",
    billed: bool = False,
) -> Costs:
    """Cost by group, dearest first (by time where a day or an hour leads), and in all.

    ``billed``: there are bills, so that attempts no log tells the usage of may stand there.
    """
    names = _asked(by)
    total = total_of(engine)
    rows = _grouped(engine, names, zone)
    shown = rows[:top] if top else rows
    if names[0] in _TIMES:
        shown = sorted(shown, key=lambda row: _time_of(row, names))
    return Costs(
        by=names,
        rows=Table("analyze.cost", tuple(_priced(_shown(row, names), total) for row in shown)),
        groups=len(rows),
        total=total,
        waste=waste(engine, total, billed=billed),
        notes=cost_notes.notes(engine, total, names),
    )


def _asked(by: Sequence[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(by)) or ("model",)
    for name in names:
        if name not in COST_GROUPS:
            meant = near(name, COST_GROUPS)
            hint = f"did you mean {' or '.join(meant)}?" if meant else ", ".join(COST_GROUPS)
            raise AnalyzerError(f"cost cannot be grouped by {name!r}", hint)
    return names


def total_of(engine: Engine) -> dict[str, Any]:
    """All that the logs track with its usage, each answer once."""
    (row,) = engine.rows(f"SELECT {_SUMS}\n{_FROM}\nWHERE t.is_metered")
    empty = {name: 0 for name, value in row.items() if value is None and name.endswith("_tokens")}
    total = row | empty
    priced = total.pop("priced_answers")
    return total | {"usd_per_answer": _each(total["cost_usd"], priced)}


def waste(engine: Engine, total: dict[str, Any], *, billed: bool = False) -> Table:
    """What bought nothing, or more than was needed, by kind; of ``total``, or on a bill alone."""
    rows = tuple(
        row
        | {"share": None if row["why"] == _ON_BILL else _share(row["cost_usd"], total["cost_usd"])}
        for row in engine.rows(_WASTE.format(_WITH_BILL if billed else "cost_waste"))
    )
    keys = ("kind", "why", "requests", "tokens", "cost_usd", "share", "confidence")
    return Table("analyze.cost.waste", tuple({key: row[key] for key in keys} for row in rows))


def _grouped(engine: Engine, names: tuple[str, ...], zone: str) -> list[dict[str, Any]]:
    """Rows by group, dearest first; times are local ones, in ns."""
    columns, joins = [], []
    local = _local(engine, zone) if set(names) & set(_TIMES) else ""
    for name in names:
        if name in _TIMES:
            width = _DAY if name == "day" else _HOUR
            columns.append(f"q.start_ns + {local} - (q.start_ns + {local}) % {width} AS {name}")
            columns += [f"{local} AS offset_ns"] if name == "hour" else []
        else:
            columns.append(f"{_COLUMNS[name]} AS {name}")
            joins += [_JOINS[table]] if (table := _SAME.get(name, name)) in _JOINS else []
    keys = ", ".join(str(number) for number in range(1, len(columns) + 1))
    listed = ",\n  ".join(columns)
    sums = _PARTS if "part" in names else _SUMS
    joined = "".join(f"\n{join}" for join in dict.fromkeys(joins))
    return engine.rows(
        f"SELECT {listed},\n  {sums},\n  {_PRICES}\n{_FROM}{joined}\nWHERE t.is_metered\n"
        f"GROUP BY {keys}\nORDER BY cost_usd DESC NULLS LAST, unpriced_tokens DESC, {keys}"
    )


def _local(engine: Engine, zone: str) -> str:
    where = _zone.zone_named(zone)
    (ends,) = engine.rows("SELECT min(start_ns) AS a, max(start_ns) AS b FROM resolve_request")
    if ends["a"] is None:
        return "CAST(0 AS BIGINT)"
    return _zone.offset_sql(where, "q.start_ns", (ends["a"], ends["b"]))


def _time_of(row: dict[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    """In order of time: of an hour that comes twice, the first one first."""
    back = {"hour": row.get("offset_ns") or 0}
    return tuple(
        (row[name] is not None, (row[name] or 0) - back.get(name, 0))
        if name in _TIMES
        else (row[name] is not None, str(row[name]))
        for name in names
    )


def _shown(row: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    out = {key: value for key, value in row.items() if key != "offset_ns"}
    for name in names:
        if row[name] is None:
            continue
        if name == "day":
            out[name] = _zone.day_of(row[name])
        elif name == "hour":
            out[name] = _zone.hour_of(row[name], row["offset_ns"])
        elif name in SECRET:
            out[name] = hashed(str(row[name]))
    return out


def _priced(row: dict[str, Any], total: dict[str, Any]) -> dict[str, Any]:
    """The row with what follows from it, in the order that is published."""
    out: dict[str, Any] = {}
    for key, value in row.items():
        if key == "priced_answers":
            out["usd_per_answer"] = _each(row["cost_usd"], value)
            continue
        out[key] = value
        if key == "cost_usd":
            out["share"] = _share(value, total["cost_usd"])
    return out


def _share(part: Any, whole: Any) -> float | None:  # noqa: ANN401 - DECIMAL or NULL
    return float(part / whole) if part is not None and whole else None


def _each(usd: Any, answers: int | None) -> Any:  # noqa: ANN401 - DECIMAL or NULL
    return None if usd is None or not answers else round(usd / answers, 15)
