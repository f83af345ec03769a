"""What the two per-request files of AIPerf share: who a request was, and how it ended."""

from __future__ import annotations

from typing import Any

from analyzer.readers._errors import error_class
from analyzer.readers._file import Head
from analyzer.readers._jsonl import Bad, Skip, objects
from analyzer.readers._loadgen import document, summary
from analyzer.readers._reader import Claim
from analyzer.readers._rows import int_or_none, text_or_none
from analyzer.readers._times import DURATIONS

DOCS = "https://docs.nvidia.com/aiperf/"
_START = ("request_start_ns", "timestamp_ns")


def claim(head: Head, kind: str) -> Claim:
    """A claim on JSON lines with ``metadata`` and ``metrics`` or ``responses``."""
    other = "responses" if kind == "metrics" else "metrics"
    for one in objects(head):
        meta = one.get("metadata")
        if not isinstance(meta, dict) or not any(name in meta for name in _START):
            continue
        if kind in one and other not in one:
            return Claim(1, "")
        return Claim(0.5, f"its lines have metadata of AIPerf, but no {kind}")
    text = document(head)
    if kind == "metrics" and '"aiperf_version"' in text and '"request_latency"' in text:
        instead = "read profile_export.jsonl of the same run (--export-level records)"
        return summary("the profile_export_aiperf.json of AIPerf", instead)
    return Claim(0, "its lines have no metadata with request_start_ns")


def identity(meta: Any) -> dict[str, Any]:  # noqa: ANN401 - foreign JSON
    """Columns of ``metadata``; warm-up requests are no part of the run."""
    if not isinstance(meta, dict):
        raise Bad("'metadata' is missing")
    if "warmup" in (meta.get("benchmark_phase"), meta.get("credit_phase"), meta.get("phase_kind")):
        raise Skip("warm-up request")
    start = next((meta[name] for name in _START if meta.get(name) is not None), None)
    start_ns, issued = int_or_none(start), int_or_none(meta.get("credit_issued_ns"))
    if start_ns is None:
        raise Bad("'request_start_ns' is missing or no number")
    hold = start_ns - issued if issued is not None else None
    turn, depth = int_or_none(meta.get("turn_index")), int_or_none(meta.get("agent_depth"))
    session = text_or_none(meta.get("x_correlation_id"))
    return {
        "vantage": "client",
        "request_id": text_or_none(meta.get("x_request_id")),
        "session_id": session,
        "turn": turn + 1 if turn is not None and session is not None else None,
        "parent_session_id": text_or_none(meta.get("parent_correlation_id")),
        "is_sidechain": depth > 0 if depth is not None else None,
        "start_ns": start_ns,
        "clock": "wall",
        "hold_ns": hold if hold is not None and hold in DURATIONS else None,
    }


def outcome(value: dict[str, Any]) -> dict[str, Any]:
    """Columns of ``error``. A code of 499 is AIPerf's own, for what it cancelled itself."""
    meta, error = value.get("metadata"), value.get("error")
    if isinstance(meta, dict) and meta.get("was_cancelled") is True:
        return {"error": "cancelled"}
    if not isinstance(error, dict):
        return {}
    code = int_or_none(error.get("code"))
    kind, message = error.get("type"), error.get("message")
    if code is not None and 400 <= code < 600 and code != 499:
        return {"status": code, "error": f"http {code}"}
    return {"error": error_class(f"{kind}: {message}") or "error"}
