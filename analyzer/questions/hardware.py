"""How near a case comes to the hardware: observed times against their bounds, by deployment."""

from __future__ import annotations

import json
import math
from typing import Any

from analyzer.bounds.classify import Measured, classify
from analyzer.bounds.deployed import setting_of
from analyzer.contract.outputs import OUTPUTS
from analyzer.contract.types import Chart, Table
from analyzer.engines.duckdb import Engine
from analyzer.questions._context_fit import fit_of

KIND = "analyze.bounds.observed"
_MS = 1e6
_LINES = ("strict", "expected", "attainable")
_SUSPICIOUS = 0.95
_EXPERTS = "a batch whose tokens share experts reads fewer than uniform routing does"
_DRAWN = 240
_BINS = 40


def observed(engine: Engine) -> Table:
    """One row a deployment and model of the requests, those with a bound first."""
    settings = engine.rows(
        "SELECT * FROM hardware_setting ORDER BY usable DESC, requests DESC, deployment, model"
    )
    groups = _by_group(engine, "hardware_group")
    fits = _by_group(engine, "hardware_fit")
    prefills = {(row["deployment"], row["model"]): row for row in engine.rows(_PREFILLS)}
    rows = []
    for one in settings:
        key = (one["deployment"], one["model"])
        row = _row(one, groups.get(key, {}), prefills.get(key, {}), fits.get(key))
        rows.append({name: row.get(name) for name in OUTPUTS[KIND].names})
    # A group of failures only stands beside its servers' own; alone, it says what is missing.
    judged = [row for row in rows if row["tpot_ms"] is not None]
    rows = judged or rows
    notes = () if rows else ("The case holds no request that could be held against a bound.",)
    return Table(KIND, tuple(rows), notes)


_PREFILLS = """SELECT deployment, model, count(*) AS prefills,
  count(*) FILTER (WHERE prefill_ns < 0.99 * strict_ns) AS too_fast,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY prefill_ns) AS prefill_ns,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY strict_ns) AS strict_ns,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY expected_ns) AS expected_ns,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY attainable_ns) AS attainable_ns,
  percentile_cont(0.1) WITHIN GROUP (ORDER BY mfu_ratio) AS p10,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY mfu_ratio) AS p50,
  percentile_cont(0.9) WITHIN GROUP (ORDER BY mfu_ratio) AS p90
FROM hardware_prefill GROUP BY deployment, model"""


def _by_group(engine: Engine, table: str) -> dict[tuple[str, str], dict[str, Any]]:
    rows = engine.rows(f"SELECT * FROM {table}")
    return {(row["deployment"], row["model"]): row for row in rows}


def _row(
    one: dict[str, Any], group: dict[str, Any], prompt: dict[str, Any], fit: dict[str, Any] | None
) -> dict[str, Any]:
    same = ("bound_model", "gpu", "gpus", "layout", "weights", "kv_bits", "weight_bytes", "why")
    out = {name: one[name] for name in same} | {
        "deployment": one["deployment"] or None,
        "model": one["model"] or None,
        "requests": group.get("requests", 0),
        "judged": group.get("judged", 0),
        "too_fast": group.get("faster_than_physics", 0) + prompt.get("too_fast", 0),
        "assumed": json.loads(one["assumed"]),
        "reading": one["why"],
    }
    if not one["usable"] or not group:
        return out | {"reading": one["why"] or "no answer of 16 tokens or more is timed"}
    spread = {name: group[f"{name}_ratio"] for name in ("p10", "p50", "p90")}
    out |= {
        "batch": group["batch"],
        "context": group["context"],
        "observed_ms": _ms(group["tpot_ns"]),
        "tpot_ms": _by_line(group),
        "reached": spread if group["judged"] else None,
        "strict_ratio": group["strict_ratio"],
        "host_ms": _ms(group["host_ns"]),
        "interference_ms": _ms(group["interference_ns"]),
        "fit": fit_of(setting_of(json.loads(one["facts"])), fit),
        "reading": _reading(
            group,
            prompt,
            complete=one["layout"] is not None,
            routed="uniform routing" in one["assumed"],
        ),
    }
    if prompt:
        mfu = {name: prompt[name] for name in ("p10", "p50", "p90")}
        out |= {
            "prefills": prompt["prefills"],
            "prefill_ms": _ms(prompt["prefill_ns"]),
            "ttft_ms": _by_line(prompt),
            "mfu": mfu if mfu["p50"] is not None else None,
        }
    return out


def _by_line(row: dict[str, Any]) -> dict[str, float | None]:
    return {name: _ms(row[f"{name}_ns"]) for name in _LINES}


def _ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / _MS


def _reading(group: dict[str, Any], prompt: dict[str, Any], *, complete: bool, routed: bool) -> str:
    """What the group's numbers say; what is too good comes before what is good."""
    fast, every = group["faster_than_physics"] + prompt.get("too_fast", 0), group["requests"]
    if fast:
        of = f"{fast:,} times in {every:,} answers"
        return f"{of} faster than physics: analyze explain trust.faster-than-physics"
    if group["strict_ns"] is None:
        return "no answer has a place in time, so no batch is known"
    middle = group["p50_ratio"]
    if middle is None:
        share = f"{100 * group['strict_ratio']:.0f} % of strict"
        return f"{share}; no more can be said without the layout and the prompts' tokens"
    if middle > 1:
        why = classify(
            Measured(
                group["tpot_ns"],
                group["strict_ns"],
                group["expected_ns"],
                complete=complete,
                ttft_ns=prompt.get("prefill_ns"),
                prefill_ns=prompt.get("expected_ns"),
            )
        )
        return f"faster than expected ({_EXPERTS if routed else why})"
    if middle >= _SUSPICIOUS:
        why = f"; {_EXPERTS}" if routed else ""
        return f"suspiciously near the bound: check model, precision and GPU first{why}"
    if group["is_far"]:
        return "far from the bound: analyze explain decode.below-bound"
    if group["host_ns"]:
        return "main memory sets the pace: analyze explain decode.offloaded"
    return "within what well tuned engines reach" if middle >= 0.5 else "below half of the bound"


# --- pictures ------------------------------------------------------------------------------------


def charts(engine: Engine) -> tuple[Chart, ...]:
    """Observed time per output token and its three lines, over batch and over context."""
    axes = (
        ("batch", "mean batch", "1"),
        ("batch_context", "context of the whole batch", "tokens"),
    )
    drawn = (_chart(engine, *axis) for axis in axes)
    return tuple(one for one in drawn if one is not None)


def _chart(engine: Engine, column: str, name: str, unit: str) -> Chart | None:
    ends = engine.rows(
        f"SELECT min({column}) AS low, max({column}) AS high, count(*) AS n FROM hardware_decode "
        f"WHERE {column} IS NOT NULL AND strict_ns IS NOT NULL"
    )[0]
    if not ends["n"] or not math.isfinite(ends["high"]):
        return None
    if ends["high"] < 1.05 * ends["low"] and column == "batch":
        return None  # one batch all along: a picture over it would be one column
    width = max((ends["high"] - ends["low"]) / _BINS, 1e-9)
    sql = _points(column, width, 1 + (ends["n"] - 1) // _DRAWN)
    rows = engine.rows(sql)
    told = tuple(row for row in rows if row["y"] is not None)
    title = f"Time per output token and its bounds over the {name}"
    return Chart(
        title, name, unit, "time per output token", "ns", sql, ends["n"], told, lines=_LINES
    )


def _points(column: str, width: float, every: int) -> str:
    """Observed answers, thinned out, and the median of each line in bins."""
    lines = " UNION ALL ".join(
        f"SELECT '{line}' AS series, {column} AS x, {line}_ns AS y FROM told" for line in _LINES
    )
    return f"""WITH told AS (
  SELECT request_key, {column}, tpot_ns, strict_ns, expected_ns, attainable_ns,
    row_number() OVER (ORDER BY {column}, request_key) AS place
  FROM hardware_decode WHERE {column} IS NOT NULL AND strict_ns IS NOT NULL
),
drawn AS ({lines}),
binned AS (
  SELECT series, avg(x) AS x, percentile_cont(0.5) WITHIN GROUP (ORDER BY y) AS y
  FROM drawn WHERE y IS NOT NULL GROUP BY series, CAST(round(x / {width!r}) AS BIGINT)
)
SELECT 'observed' AS series, CAST({column} AS DOUBLE) AS x, tpot_ns AS y FROM told
WHERE (place - 1) % {every} = 0
UNION ALL SELECT series, x, y FROM binned
ORDER BY series, x, y"""
