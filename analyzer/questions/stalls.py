"""Stalls of one request, a line each: when, how long, and why if that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analyzer.engines.duckdb import Engine

_MOST = 8
_WHY = {
    "client blocked": "the client's own loop was blocked",
    "preemption": "the server put it out to make room for others",
    "prefill": "prompts of other requests were in work",
    "process pause": "the whole server stood still",
    "connection": "its connection held the tokens back; other streams went on",
    "delivery": "the tokens were made and came later: the client, or the path all streams share",
}
_LACKS = {
    "ticks": "heartbeats of the client",
    "emission": "when the server gave its tokens out",
    "engine log": "status lines of the engine",
}


def of_request(engine: Engine, key: int) -> tuple[str, ...]:
    """What its stream lost and to what, in order; of many the longest."""
    rows = engine.rows(
        f"""SELECT c.*, c.start_ns - r.start_ns AS after_ns
FROM stream_cause AS c JOIN resolve_request AS r ON c.request_key = r.request_key
WHERE c.request_key = {key} ORDER BY c.excess_ns DESC, c.nth"""
    )
    shown = sorted(rows[:_MOST], key=lambda row: row["nth"])
    lines = [_line(row) for row in shown]
    if len(rows) > _MOST:
        rest = sum(row["excess_ns"] for row in rows[_MOST:])
        lines.append(f"{len(rows) - _MOST} shorter stalls lost {rest / 1e9:.3f} s more")
    return tuple(lines)


def _line(row: dict[str, Any]) -> str:
    at = "" if row["after_ns"] is None else f" {row['after_ns'] / 1e9:.3f} s after its start"
    seen = "" if row["vantage"] == "client" else f" (seen at the {row['vantage']})"
    return f"stalled{at}{seen}, {row['excess_ns'] / 1e9:.3f} s beyond its pace: {_why(row)}"


def _why(row: dict[str, Any]) -> str:
    known = _WHY.get(row["cause"])
    if known is None:
        lacks = _LACKS.get(row["lacks"])
        return f"cause not known; {lacks} would tell more" if lacks else "cause not known"
    if row["cause"] == "prefill" and row["prompt_tokens"]:
        return f"{known} ({row['prompt_tokens']:,.0f} tokens meanwhile)"
    return known
