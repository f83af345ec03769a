"""A world like a case: its arrivals and lengths, and cache and step times fitted to what it tells.

The rows come from the case (``questions/like.py``); here they become a world and the text of its
file. What a case does not tell gets a default, and the file says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analyzer.contract.types import Table
from analyzer.simulate.fit import NS, Load, load_of, median, nonnegative, residual, typical
from analyzer.simulate.summary import Summary, spread
from analyzer.simulate.what_if import KIND as WHAT_IF
from analyzer.simulate.writers import rfc3339, write_lines

Row = Mapping[str, Any]

BLOCK = 16
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_MOST_FITTED = 20_000
_MOST_STREAMS = 8
_MOST_BLOCKS = 4_000_000
_FIRST_FRESH = 1_000_000_000
"""Names of blocks that were never seen before begin here; smaller ones are the shared prefix."""
_MOST_RUNNING = 256
_STEP_TOKENS = 2048
_LONG_PROMPT = 4096
_BUSY = 0.5
_HELD_NS = 100_000_000
_ROOM = 4
"""Times the most that was in flight, where the size of the memory is not told."""


@dataclass(frozen=True)
class Fitted:
    """The world as nested tables, its traces, and what was fitted or assumed, a line each."""

    world: dict[str, Any]
    files: dict[str, list[str]]
    notes: tuple[str, ...]

    def text(self) -> str:
        """The world's file."""
        head = "".join(f"# {note}\n" for note in self.notes)
        return head + "\n" + toml(self.world)

    def write(self, folder: Path) -> Path:
        """Write the world and its traces into a folder; the world's file."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, lines in self.files.items():
            write_lines(folder / name, lines)
        path = folder / "world.toml"
        path.write_text(self.text(), encoding="utf-8", newline="\n")
        return path


def world_like(seen: Mapping[str, Any], seed: int = 1) -> Fitted:
    """Fit a world to what ``questions.like.observed`` gives."""
    rows: list[Row] = [
        one for one in seen["requests"] if one["input_tokens"] is not None and one["output_tokens"]
    ]
    notes = [f"fitted to {len(rows):,} of {seen['total']:,} requests of a case"]
    streams, files = _arrivals(rows, notes)
    first, last = rows[0]["start_ns"], max(one["start_ns"] for one in rows)
    engine = _engine(rows, seen, notes)
    world: dict[str, Any] = {
        "name": "like a case",
        "seed": seed,
        "start": rfc3339(first),
        "duration_s": _short((last - first) / NS + 1e-3),
        "network": _network(rows, notes),
        "gateway": {"overhead_ms": 0.0, "hop_ms": 0.0},
        "engine": engine,
        "arrivals": streams,
        "logs": [{"format": "requests"}, {"format": "spans"}],
    }
    held = [one["held_ns"] for one in rows if (one["held_ns"] or 0) > _HELD_NS]
    if held:
        mean_s = sum(held) / len(held) / NS
        notes.append(
            f"{len(held):,} answers were held back on the way, {mean_s:.2f} s on average; no hop "
            "of this world does that"
        )
    failed = sum(bool(one["failed"]) for one in rows)
    if failed:
        notes.append(f"{failed:,} requests failed in the case; nothing fails in this world")
    return Fitted(world, files, tuple(notes))


# --- arrivals, lengths and cache -----------------------------------------------------------------


def _arrivals(
    rows: Sequence[Row], notes: list[str]
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """A stream for each model, the largest ones, each with the trace of its arrivals."""
    groups: dict[str, list[Row]] = {}
    for one in rows:
        groups.setdefault(one["model"], []).append(one)
    ranked = sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    if len(ranked) > _MOST_STREAMS:
        left = sum(len(members) for _, members in ranked[_MOST_STREAMS:])
        notes.append(f"left out: {left:,} requests of the models with the fewest")
    if len(ranked) > 1:
        notes.append("assumed: all models share one engine")
    if len({one["route"] for one in rows}) > 1:
        notes.append("assumed: all routes lead to the same engine")
    first = rows[0]["start_ns"]
    streams: list[dict[str, Any]] = []
    files: dict[str, list[str]] = {}
    for index, (model, members) in enumerate(ranked[:_MOST_STREAMS]):
        name = f"arrivals-{index}.jsonl"
        size, files[name] = _trace(members, first)
        stream: dict[str, Any] = {"kind": f"stream-{index}"} | ({"model": model} if model else {})
        stream |= {"process": "trace", "file": name}
        stream |= {"file_block_tokens": size} if size else {}
        reasoning = sum(one["output_reasoning_tokens"] or 0 for one in members)
        if reasoning:
            total = sum(one["output_tokens"] for one in members)
            stream["reasoning_share"] = _short(reasoning / total)
        streams.append(stream)
    if all(one["cache_read_tokens"] is None for one in rows):
        notes.append("assumed: no prompt is in the cache; cached tokens are not told")
    return streams, files


def _trace(members: Sequence[Row], first_ns: int) -> tuple[int, list[str]]:
    """Arrivals as lines, and the size of their blocks; 0 where nothing was cached.

    A prompt shares as many blocks as were cached with the turn before it, or with a prefix that
    all first turns share: so the cache finds what it found, as long as it has it.
    """
    size = 0
    if any(one["cache_read_tokens"] for one in members):
        size = BLOCK
        while sum(one["input_tokens"] for one in members) // size > _MOST_BLOCKS:
            size *= 4
    lines = []
    sessions: dict[str, list[int]] = {}
    fresh = _FIRST_FRESH
    for one in members:
        told = {
            "arrival_s": round((one["start_ns"] - first_ns) / NS, 9),
            "prompt_tokens": one["input_tokens"],
            "output_tokens": one["output_tokens"],
        }
        if size:
            known = (one["cache_read_tokens"] or 0) // size
            whole = one["input_tokens"] // size
            before = sessions.get(one["session_id"] or "")
            blocks = list(range(min(known, whole))) if before is None else before[:known]
            rest = whole - len(blocks)
            blocks += range(fresh, fresh + rest)
            fresh += rest
            if one["session_id"]:
                sessions[one["session_id"]] = blocks
            told["blocks"] = blocks
        lines.append(json.dumps(told, separators=(",", ":")))
    return size, lines


# --- network and engine --------------------------------------------------------------------------


def _network(rows: Sequence[Row], notes: list[str]) -> dict[str, Any]:
    told = [one["network_ns"] for one in rows if one["network_ns"] is not None]
    if not told:
        notes.append("assumed: no time on the network; the case does not tell any")
        return {"latency_ms": 0.0}
    return {"latency_ms": _short(median(told) / 2e6)}


@dataclass(frozen=True)
class _Timed:
    """One request on the engine: when it ran, and what it had to compute."""

    queued_ns: int
    admitted_ns: int
    first_ns: int
    end_ns: int
    fresh: int
    cached: int
    steps: int
    context: float


def _timed(one: Row) -> _Timed | None:
    prefill = one["prefill_ns"] if one["prefill_ns"] is not None else one["ttft_ns"]
    decode = one["decode_ns"]
    if decode is None and one["e2e_ns"] is not None and one["ttft_ns"] is not None:
        decode = one["e2e_ns"] - one["ttft_ns"]
    if not prefill or decode is None or decode < 0:
        return None
    cached = min(one["cache_read_tokens"] or 0, one["input_tokens"] - 1)
    # Nearly all of what is in no part is front end, which comes before the queue.
    queued = one["arrived_ns"] + (one["unattributed_ns"] or 0)
    admitted = queued + (one["queue_ns"] or 0)
    return _Timed(
        queued, admitted, admitted + prefill, admitted + prefill + decode,
        one["input_tokens"] - max(0, cached), max(0, cached), one["output_tokens"] - 1,
        one["input_tokens"] + one["output_tokens"] / 2,
    )  # fmt: skip


def _engine(rows: Sequence[Row], seen: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    timed = [one for one in map(_timed, rows) if one is not None]
    if any(one["prefill_ns"] is None for one in rows):
        notes.append("assumed: where prefill is not told, all of the TTFT is prefill")
    running = load_of([(one.first_ns, one.end_ns, 1.0) for one in timed])
    placed = load_of([(one.admitted_ns, one.end_ns, 1.0) for one in timed])
    held = load_of([(one.admitted_ns, one.end_ns, one.context) for one in timed])
    waiting = load_of([(one.queued_ns, one.admitted_ns, 1.0) for one in timed])
    limit = _max_running(rows, seen, typical(placed, waiting), notes)
    capacity = seen["capacity_tokens"]
    if capacity is None:
        capacity = round(_ROOM * max(held.levels, default=1.0)) + _STEP_TOKENS
        notes.append("assumed: KV memory is ample; its size is not told")
    # The fastest ones: the others waited for the step under way, which the engine does by itself.
    front = sorted(one["unattributed_ns"] for one in rows if one["unattributed_ns"] is not None)
    told = [one["cache_read_tokens"] for one in rows if one["cache_read_tokens"] is not None]
    chunk = [one["tokens_per_chunk"] for one in rows if one["tokens_per_chunk"]]
    notes.append(f"assumed: a step takes {max(_STEP_TOKENS, limit):,} tokens at most")
    step, ahead = _step(timed, running, notes)
    return {
        "max_running": limit,
        "max_step_tokens": max(_STEP_TOKENS, limit),
        "kv_blocks": max(1, capacity // BLOCK),
        "block_tokens": BLOCK,
        "prefix_cache": bool(not told or sum(told)),
        "frontend_ms": _short(max(0.0, front[len(front) // 10] / 1e6)) if front else 0.0,
        "tokenize_us_per_token": 0.0,
        "out_ms": 0.0,
        "stream_tokens": max(1, round(median(chunk))) if chunk else 1,
        "asynchronous": ahead,
        "step": step,
    }


def _max_running(
    rows: Sequence[Row], seen: Mapping[str, Any], usual: float, notes: list[str]
) -> int:
    for name in ("told_max_running", "running_while_waiting"):
        if seen.get(name):
            return int(seen[name])
    waits = [one["queue_ns"] for one in rows if one["queue_ns"] is not None]
    limit = max(1, round(usual))
    if waits and sum(waits) / len(waits) > NS / 20:
        notes.append(f"assumed: at most {limit:,} run at once, as many as did while others waited")
        return limit
    notes.append("assumed: no limit on running sequences was reached")
    return max(_MOST_RUNNING, 2 * limit)


def _step(
    timed: Sequence[_Timed], running: Load, notes: list[str]
) -> tuple[dict[str, float], bool]:
    """Parts of a step that explain prefills and times per token together, relative errors least.

    A token's time is a step: fixed, so much a running sequence and a token of their contexts, and
    so much a token of the prompts that were computed meanwhile. A prefill is a step with its own,
    and the one before it where the engine plans a step ahead; which of both fits better is told.
    """
    contexts = load_of([(one.first_ns, one.end_ns, one.context) for one in timed])
    prompts = load_of([
        (one.admitted_ns, one.first_ns, one.fresh / (one.first_ns - one.admitted_ns))
        for one in timed
    ])  # fmt: skip
    long = max((one.fresh for one in timed), default=0) >= _LONG_PROMPT
    stride = max(1, -(-len(timed) // _MOST_FITTED))
    fits = []
    for ahead in (False, True):
        rows: list[list[float]] = []
        wanted: list[float] = []
        for one in timed[::stride]:
            rows.append(_prefill_row(one, running, contexts, prompts, ahead=ahead))
            rows[-1][-1] *= long  # else no prompt is so long that its square could be told
            wanted.append(one.first_ns - one.admitted_ns)
            if one.steps > 0 and one.end_ns > one.first_ns:
                each, span = (one.end_ns - one.first_ns) / one.steps, (one.first_ns, one.end_ns)
                decode = [running.mean(*span), contexts.mean(*span), prompts.mean(*span) * each]
                rows.append([1.0, *decode, 0.0])
                wanted.append(each)
        found = nonnegative(rows, wanted)
        fits.append((residual(rows, wanted, found), ahead, found))
    _, ahead, (fixed, sequence, context, token, pair) = min(fits)
    notes.append(f"step times fitted to {len(wanted):,} prefills and times per token")
    return {
        "fixed_ms": _short(fixed / 1e6),
        "per_sequence_us": _short(sequence / 1e3),
        "per_context_token_ns": _short(context),
        "per_prompt_token_us": _short(token / 1e3),
        "per_prompt_pair_ns": _short(pair),
    }, ahead


def _prefill_row(
    one: _Timed, running: Load, contexts: Load, prompts: Load, *, ahead: bool
) -> list[float]:
    span = (one.admitted_ns, one.first_ns)
    busy = running.mean(*span)
    steps = max(1, -(-one.fresh // _STEP_TOKENS)) + (ahead and busy > _BUSY)
    tokens = max(one.fresh, prompts.mean(*span) * (one.first_ns - one.admitted_ns))
    pairs = one.fresh * (one.cached + one.fresh / 2)
    return [steps, steps * busy, steps * contexts.mean(*span), tokens, pairs]


# --- how near it comes ---------------------------------------------------------------------------


def against(seen: Mapping[str, Any], fitted: Fitted, made: Summary) -> Table:
    """Durations of the case and of a run of its world, side by side."""
    rows: list[dict[str, Any]] = []
    good = [one for one in seen["requests"] if not one["failed"]]
    for name in ("queue", "prefill", "decode", "network", "ttft", "tpot", "e2e"):
        told = spread([round(one[f"{name}_ns"]) for one in good if one[f"{name}_ns"] is not None])
        world = made.spread(name)
        if told is not None and world is not None:
            rows.append(_line(name, "ns", told.mean_ns, world.mean_ns, told.p95_ns, world.p95_ns))
    prompts = sum(one["input_tokens"] or 0 for one in good)
    cached = sum(one["cache_read_tokens"] or 0 for one in good)
    rows.append(_line("requests", "1", len(seen["requests"]), made.requests))
    if prompts and made.prompt_tokens:
        share = made.cached_tokens / made.prompt_tokens
        rows.append(_line("cache share", "ratio", cached / prompts, share))
    return Table(WHAT_IF, tuple(rows), notes=fitted.notes)


def _line(name: str, unit: str, before: float, after: float, *tails: float) -> dict[str, Any]:
    low, high = tails or (None, None)
    return {
        "what_if": "the case, and a world like it", "metric": name, "unit": unit,
        "before": before, "after": after, "change": after / before - 1 if before else None,
        "before_p95": low, "after_p95": high,
    }  # fmt: skip


# --- text ----------------------------------------------------------------------------------------


def _short(value: float) -> float:
    """Six digits: a fit has no more."""
    return float(f"{value:.6g}")


def toml(world: Mapping[str, Any]) -> str:
    """A world's file: its own values, then a table for each part, with what is in it inline."""
    lines = [f"{_key(key)} = {_value(one)}" for key, one in world.items() if not _parts(one)]
    for key, one in world.items():
        for part in _parts(one):
            head = f"[{_key(key)}]" if isinstance(one, Mapping) else f"[[{_key(key)}]]"
            lines += [
                "",
                head,
                *(f"{_key(name)} = {_value(value)}" for name, value in part.items()),
            ]
    return "".join(f"{line}\n" for line in lines)


def _parts(value: object) -> list[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        return [value]
    if isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
        return value
    return []


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        parts = (f"{_key(key)} = {_value(one)}" for key, one in value.items())
        return "{ " + ", ".join(parts) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)
