"""Calls of one trace: which of them are requests, and what the spans around them add."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from analyzer.readers._pending import Part
from analyzer.readers._times import DURATIONS

_DEEPEST = 64
_SLACK_NS = 1_000_000
_TOLD_AROUND = ("session_id", "model", "provider", "max_output_tokens", "finish_reason", "streamed")
_USAGE = (
    "input_fresh_tokens", "cache_read_tokens", "cache_write_short_tokens",
    "cache_write_long_tokens", "cache_write_unknown_tokens", "output_visible_tokens",
    "output_reasoning_tokens", "usage_convention",
)  # fmt: skip


def joined(parts: list[Part]) -> list[dict[str, Any]]:
    """A row of ``request`` a call that encloses no other, each with the record of its span."""
    spans = _once(parts)
    calls = [part for part in parts if _is_call(part)]
    calls = [call for call in calls if spans.get(call["span"] or "", call) is call]
    within: dict[str, int] = {}
    for call in calls:
        for outer in _ancestors(call, spans):
            if _is_call(outer) and _encloses(outer, call):
                within[outer["span"]] = within.get(outer["span"], 0) + 1
    alone = {name for name, inner in within.items() if inner == 1}
    rows: dict[int, dict[str, Any]] = {}
    for call in calls:
        if call["span"] not in within:
            rows[id(call)] = _row(call, list(_ancestors(call, spans)), alone)
    requests = {call["span"]: rows[id(call)] for call in calls if id(call) in rows}
    _add_network(parts, spans, requests)
    return sorted(rows.values(), key=lambda row: row["record"])


def _is_call(part: Part) -> bool:
    return "columns" in part


def _once(parts: list[Part]) -> dict[str, Part]:
    """Spans by id. One that was exported twice counts once, as the export that tells more."""
    spans: dict[str, Part] = {}
    for part in parts:
        name = part["span"]
        if not name:
            continue
        before = spans.get(name)
        if before is None or len(part.get("columns", ())) > len(before.get("columns", ())):
            spans[name] = part
    return spans


def _ancestors(part: Part, spans: dict[str, Part]) -> Iterator[Part]:
    """From the parent on; a circle ends somewhere."""
    for _ in range(_DEEPEST):
        above = spans.get(part["parent"] or "")
        if above is None or above is part:
            return
        yield above
        part = above


def _encloses(outer: Part, call: Part) -> bool:
    """Whether the call ran within the other: a turn that begins later is another request.

    A gateway's span of the same answer is the same request from another vantage.
    """
    one, other = outer["columns"], call["columns"]
    same_answer = one.get("response_id") and one.get("response_id") == other.get("response_id")
    if same_answer and one["vantage"] != other["vantage"]:
        return False
    if outer["span"] == call["span"]:
        return False
    if outer["end"] is None or call["start"] is None:
        return True
    return bool(call["start"] + _SLACK_NS < outer["end"])


def _row(call: Part, around: list[Part], alone: set[str]) -> dict[str, Any]:
    columns = dict(call["columns"])
    for outer in around:
        # Of several calls within it, none can be told which of them its words are about.
        if _is_call(outer) and outer["span"] in alone:
            told = outer["columns"]
            if not any(columns.get(name) is not None for name in _USAGE):
                columns |= {name: told[name] for name in _USAGE if name in told}
            for name in (*_TOLD_AROUND, "cost"):
                columns.setdefault(name, told.get(name))
        session = outer["columns"].get("session_id") if _is_call(outer) else outer.get("session")
        if session:
            columns.setdefault("session_id", session)
    cost = columns.pop("cost", None)
    columns["reported_cost_usd"] = None if cost is None else Decimal(cost)
    return columns | {"record": call["record"]}


def _add_network(
    parts: list[Part], spans: dict[str, Part], requests: dict[str, dict[str, Any]]
) -> None:
    """Steps of the connection below a request; those that lie over each other count once."""
    steps: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for part in parts:
        if "column" not in part:
            continue
        owner = next(
            (one["span"] for one in _ancestors(part, spans) if one["span"] in requests), ""
        )
        if owner:
            steps.setdefault((owner, part["column"]), []).append((part["start"], part["end"]))
    for (owner, column), times in steps.items():
        total, until = 0, 0
        for start, end in sorted(times):
            total += max(0, end - max(start, until))
            until = max(until, end)
        if total in DURATIONS:
            requests[owner][column] = total
