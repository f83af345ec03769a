"""Conversations as people read them: a line a conversation, or a line a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.report.blocks import Block, Grid, Words
from analyzer.report.values import (
    NONE,
    duration,
    moment,
    money,
    percent,
    plain_number,
    plural,
    safe_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analyzer.contract.types import Table

    Row = dict[str, Any]

_ENDS = 10
"""Calls at both ends of a long conversation that are shown whatever happened in them."""
_LONG = 60
"""A conversation of more calls than this is cut to its ends and to what happened."""
_MOST = 100
_GAP = "…"


def sessions(table: Table) -> list[Block]:
    """Conversations, costliest first; only the columns that some of them have."""
    notes: list[Block] = [Words(note) for note in table.notes]
    if not table.rows:
        return notes or [Words("no call belongs to a conversation")]
    return [_grid([_session(row) for row in table.rows]), *notes]


def _session(row: Row) -> dict[str, str]:
    threads = f" in {row['threads']:,}" if row["threads"] > 1 else ""
    return {
        "session": safe_text(str(row["session"])),
        "calls": f"{row['calls']:,}{threads}",
        "prompt": _grown(row["first_tokens"], row["max_tokens"]),
        "grows": "" if row["calls"] == 1 else safe_text(str(row["state"] or NONE)),
        "prompts, tokens": shortly(row["input_tokens"]),
        "sent again": percent(row["resent_ratio"]) if row["resent_ratio"] else NONE,
        "cached": percent(row["read_ratio"]) if row["read_ratio"] is not None else NONE,
        "could be": percent(row["could_ratio"]) if row["could_ratio"] is not None else NONE,
        "lost": _lost(row),
        "cost": money(row["cost_usd"]) if row["cost_usd"] is not None else NONE,
        "mostly": f"{100 * row['part_ratio']:.0f} % {_PARTS[row['part']]}" if row["part"] else NONE,
        "for losses": money(row["lost_usd"]) if row["lost_usd"] else NONE,
    }


_PARTS = {
    "lost": "lost",
    "read": "history",
    "again": "uncached history",
    "new": "new text",
    "answers": "answers",
}
"""What most of a conversation's cost is, or of its prompts where no price is known."""


def _lost(row: Row) -> str:
    if not row["lost_tokens"]:
        return NONE
    why = "never cached" if row["reason"] == "off" else str(row["reason"])
    return f"{shortly(row['lost_tokens'])} {safe_text(why)}"


def _grown(first: int | None, highest: int | None) -> str:
    if first is None or highest is None:
        return NONE
    return shortly(first) if first == highest else f"{shortly(first)} to {shortly(highest)}"


def shortly(tokens: int | None) -> str:
    """Tokens, in thousands and millions where there are many."""
    if tokens is None:
        return NONE
    for size, letter in ((1_000_000, "M"), (10_000, "k")):
        if tokens >= size:
            unit = 1_000_000 if letter == "M" else 1_000
            return f"{tokens / unit:,.3g} {letter}" if tokens < unit * 1000 else _whole(tokens)
    return plain_number(tokens)


def _whole(tokens: int) -> str:
    return f"{tokens / 1_000_000:,.0f} M"


def calls(table: Table) -> list[Block]:
    """Calls in order; of a long conversation its ends and the calls in which something happened."""
    numbered = any(row["turn"] not in (None, row["nth"]) for row in table.rows)
    threads: dict[str, list[Row]] = {}
    for row in table.rows:
        threads.setdefault(row["thread"], []).append(row)
    main = next(iter(threads), "")
    shown, left = _cut(table.rows)
    lines = [
        _call(row, _below(str(row["thread"]), main), threads[row["thread"]], numbered=numbered)
        if isinstance(row, dict)
        else {"what happened": plural(row, "call")}
        for row in shown
    ]
    out: list[Block] = [_grid(lines)]
    if left:
        told = "where nothing happened are" if left > 1 else "where nothing happened is"
        out.append(Words(f"{plural(left, 'call')} {told} left out; -f csv has every one."))
    return out + [Words(note) for note in table.notes]


def _cut(rows: Sequence[Row]) -> tuple[list[Row | int], int]:
    """Rows to show, for a gap the number of its calls, and how many are left out."""
    if len(rows) <= _LONG:
        return list(rows), 0
    spoken = [n for n, row in enumerate(rows) if row["reason"] or row["event"]]
    keep = {*range(_ENDS), *range(len(rows) - _ENDS, len(rows)), *spoken[:_MOST]}
    out: list[Row | int] = []
    for n, row in enumerate(rows):
        if n in keep:
            out.append(row)
        elif out and isinstance(out[-1], int):
            out[-1] += 1
        else:
            out.append(1)
    return out, len(rows) - len(keep)


def _call(row: Row, thread: str, own: Sequence[Row], *, numbered: bool) -> dict[str, str]:
    return {
        "thread": safe_text(thread),
        "call": plain_number(row["nth"]),
        "turn": _number(row["turn"]) if numbered else NONE,
        "start": moment(row["start_ns"]) if row["start_ns"] is not None else NONE,
        "after": duration(row["idle_ns"]) if row["idle_ns"] is not None else NONE,
        "prompt": shortly(row["input_tokens"]),
        "cached": shortly(row["read_tokens"]),
        "fresh": shortly(row["fresh_tokens"]),
        "written": shortly(row["write_tokens"]),
        "output": shortly(row["output_tokens"]),
        "TTFT": duration(row["ttft_ns"]) if row["ttft_ns"] is not None else NONE,
        "cost": money(row["cost_usd"]) if row["cost_usd"] is not None else NONE,
        "what happened": f"{happened(row)}{_in_all(own)}"
        if row["event"] == "agent"
        else happened(row),
    }


def _in_all(calls: Sequence[Row]) -> str:
    """What a sub-agent comes to."""
    known = [row["cost_usd"] for row in calls if row["cost_usd"] is not None]
    cost = f", {money(sum(known))}" if len(known) == len(calls) else ""
    return f": {plural(len(calls), 'call')}{cost}"


def _below(thread: str, main: str) -> str:
    """Name of a thread below its conversation's: readers write session/agent."""
    return "" if thread == main else thread.rpartition("/")[2]


def _number(value: int | None) -> str:
    return NONE if value is None else plain_number(value)


_EVENTS = {
    "first": "",
    "agent": "a sub-agent begins",
    "fork": "goes on from its parent",
    "side call": "a side call",
    "compaction": "compacted",
    "shrunk": "shorter than before",
    "model switch": "another model",
}
_REASONS = {
    "changed": "prompt changed",
    "rewritten": "history rewritten",
    "expired": "expired",
    "evicted": "evicted",
    "elsewhere": "another server",
    "restart": "server restarted",
    "tier switch": "another tier",
    "unknown": "not known why",
    "off": "never cached",
    "compaction": "compacted",
    "model switch": "another model",
}


def happened(row: Row) -> str:
    """What is to be said of a call: its event, and what it lost and why."""
    event = _EVENTS.get(row["event"] or "", str(row["event"] or ""))
    if not row["reason"]:
        return safe_text(event) or NONE
    why = _REASONS.get(row["reason"], row["reason"])
    what = f" ({row['changed']})" if row["changed"] else ""
    at = f" at {shortly(row['at_token'])}" if row["at_token"] else ""
    doubt = "?" if row["confidence"] == "suspected" else ""
    told = f"lost {shortly(row['lost_tokens'])}: {why}{what}{at}{doubt}"
    own = f" (provider: {row['diagnosis']})" if row["diagnosis"] else ""
    return safe_text(f"{told}{own}" if event in ("", why) else f"{event}; {told}{own}")


_DISPENSABLE = (
    *("turn", "start", "grows", "sent again", "prompts, tokens", "for losses", "could be"),
    *("fresh", "output", "written", "TTFT", "after", "mostly", "cached"),
)
"""Columns that a narrow terminal goes without, in this order."""


def _grid(lines: Iterable[dict[str, str]]) -> Grid:
    """Columns that some line has something in; an empty line is a gap."""
    listed = list(lines)
    names = [
        name
        for name in next((line for line in listed if line), {})
        if any(line.get(name, NONE) not in ("", NONE) for line in listed)
    ]
    grid: Grid | None = None
    spare = [name for name in _DISPENSABLE if name in names]
    for dropped in range(len(spare), -1, -1):
        kept = [name for name in names if name not in spare[:dropped]]
        grid = _table(listed, kept, grid)
    return grid or _table(listed, names, None)


def _table(lines: list[dict[str, str]], names: list[str], narrow: Grid | None) -> Grid:
    left = ("session", "thread", "start", "grows", "lost", "mostly", "what happened")
    return Grid(
        header=tuple(names),
        rows=tuple(
            tuple(line.get(name, _GAP if name == names[0] else "") for name in names)
            for line in lines
        ),
        right=tuple(name not in left for name in names),
        keep=tuple(True for _ in names),
        narrow=narrow,
    )
