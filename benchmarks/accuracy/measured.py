"""Segments and clocks against the truth: what is measured exactly, what is modelled nearly."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

from draws import CLIENT

from analyzer import api

if TYPE_CHECKING:
    from pathlib import Path

    from causes import Attempt, Truth

SEGMENTS = ("queue", "prefill", "decode", "network")
_SQL = """SELECT r.id, r.attempt, {columns}
FROM latency_segment AS s JOIN resolve_request AS r ON s.request_key = r.request_key"""


def measured(db: str, truth: Truth) -> dict[str, list[int]]:
    """Segment -> (values that are told as measured, those that are the truth to the ns)."""
    columns = ", ".join(f"s.{name}_ns, s.{name}_grade" for name in SEGMENTS)
    rows = api.sql(db, _SQL.format(columns=columns)).rows
    known = {(one["id"], one["attempt"]): one for one in truth.attempts}
    formats = {log["format"] for log in truth.world["logs"]}
    told = {name: [0, 0] for name in SEGMENTS}
    for row in rows:
        one = known.get((row["id"], row["attempt"] or 1))
        real = {} if one is None else _real(one, truth, formats)
        for name in SEGMENTS:
            value = row[f"{name}_ns"]
            graded = row[f"{name}_grade"] in ("measured", "derived")
            if value is None or real.get(name) is None or not graded:
                continue
            told[name][0] += 1
            told[name][1] += value == real[name]
    return {name: counts for name, counts in told.items() if counts[0]}


def _real(one: Attempt, truth: Truth, formats: set[str]) -> dict[str, int | None]:
    """What the logs at hand can say at best: an engine's own parts, else the outer difference."""
    logs = truth.world["logs"]
    engine = {"spans", "emit"} & formats or any(
        log.get("options") == {"vantage": "engine"} for log in logs
    )
    if "ollama" in formats:
        # Its load time begins with the request; the wait for a slot is told nowhere.
        load = sum(cause["ns"] for cause in one["causes"] if cause["kind"] == "load")
        return {
            "queue": one.get("frontend_ns", 0) + load,
            "prefill": one.get("prefill_ns"), "decode": one.get("decode_ns"),
        }  # fmt: skip
    client = "stream" in formats or any(log.get("options") == CLIENT for log in logs)
    passed = one["gateway_out_ns"] - one["gateway_in_ns"] if "gateway_out_ns" in one else None
    if engine:
        parts = {name: one.get(f"{name}_ns") for name in SEGMENTS}
        if not client:
            inner = one.get("engine_e2e_ns")
            known = "gateway" in formats and passed is not None and inner is not None
            parts["network"] = passed - inner if known else None
        return parts
    if "gateway" in formats:
        return {"network": one["e2e_ns"] - passed} if client and passed is not None else {}
    if one.get("ttft_ns") is None or one.get("e2e_ns") is None:
        return {}
    return {"decode": one["e2e_ns"] - one["ttft_ns"]}


MODELLED = ("queue", "prefill")
NEAR, LARGE = 0.1, 0.2
"""Shares of the time to first token: an error that is small, a part that matters."""
_MODELLED = """SELECT r.id, r.attempt, m.*
FROM latency_modelled AS m JOIN resolve_request AS r ON m.request_key = r.request_key"""


def modelled(folder: Path, truth: Truth) -> dict[str, Any]:
    """Queue and prefill as the client's log alone gives them, where the world wrote one."""
    logs = folder / "logs"
    told = [logs / name for name in ("client.jsonl", "client-requests.jsonl")]
    client = [path for path in told if path.exists()][:1]
    if not client:
        return {}
    db = str(folder / "client.duckdb")
    api.ingest(db, [str(client[0])])
    rows = api.sql(db, _MODELLED).rows
    known = {(one["id"], one["attempt"]): one for one in truth.attempts}
    result: dict[str, Any] = {
        "refused": sum(row["refused"] is not None for row in rows), "requests": len(rows),
    }  # fmt: skip
    for name in MODELLED:
        pairs = []
        for row in rows:
            one = known.get((row["id"], row["attempt"] or 1), {})
            real, value = one.get(f"{name}_ns"), row[f"{name}_ns"]
            if real is not None and value is not None and one.get("ttft_ns"):
                inside = row[f"{name}_low_ns"] <= real <= row[f"{name}_high_ns"]
                pairs.append(((value - real) / one["ttft_ns"], inside, real / one["ttft_ns"]))
        waited = [pair for pair in pairs if pair[2] >= LARGE]
        result |= {key: _summary(some) for key, some in ((name, pairs), (f"large {name}", waited))}
    return result


def _summary(pairs: list[tuple[float, bool, float]]) -> dict[str, Any]:
    """Of (error / TTFT, whether the truth is in the interval, ...) of the requests of a world."""
    errors = [error for error, _, _ in pairs]
    return {
        "requests": len(errors),
        "near": sum(abs(error) <= NEAR for error in errors),
        "inside": sum(inside for _, inside, _ in pairs),
        "error": round(statistics.median(map(abs, errors)), 5) if errors else None,
        "sum": round(math.fsum(errors), 5),
    }


FILES = {
    "stream": "client.jsonl", "spans": "spans.jsonl", "emit": "emits.jsonl",
    "gateway": "gateway.jsonl", "ollama": "ollama.jsonl",
}  # fmt: skip


def clock_of(db: str, truth: Truth) -> list[dict[str, Any]]:
    """Each clock that is known against the reference: whether the truth is in its interval."""
    rows = api.sql(db, "SELECT * FROM resolve_clock").rows
    reference = [row for row in rows if row["state"] == "reference"]
    logs = {_file_of(log): log for log in truth.world["logs"]}
    base = logs.get(_file_in(reference[0]["clock"], logs)) if reference else None
    told = []
    for row in rows:
        log = logs.get(_file_in(row["clock"], logs))
        if row["state"] != "known" or base is None or log is None or row["offset_ns"] is None:
            continue
        real = _ahead_ns(log, row["at_ns"], truth) - _ahead_ns(base, row["at_ns"], truth)
        width = row["high_ns"] - row["low_ns"]
        told.append({
            "inside": bool(row["low_ns"] <= real <= row["high_ns"]),
            "error_ms": round((row["offset_ns"] - real) / 1e6, 3),
            "width_ms": round(width / 1e6, 3),
            "differs": bool(row["differs"]),
        })  # fmt: skip
    return told


def _file_of(log: dict[str, Any]) -> str:
    if log["format"] == "requests":
        return f"{log['options']['vantage']}-requests.jsonl"
    return FILES.get(log["format"], f"{log.get('replica', '')}.log")


def _file_in(clock: str, logs: dict[str, Any]) -> str:
    """The file that a clock's name tells."""
    return next((name for name in clock.split() if name in logs), "")


def _ahead_ns(log: dict[str, Any], at_ns: int, truth: Truth) -> float:
    """How far a log's clock is ahead of the true one, at a time of its own."""
    skew = log.get("skew_ms", 0.0) * 1e6
    start = truth.start_ns
    return float(skew + (at_ns - skew - start) * log.get("drift_ppm", 0.0) * 1e-6)
