"""Fits the model of each group, in windows of one level, or says why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from analyzer.analyses.latency._lines import quantile
from analyzer.analyses.latency._ttft import Line, Point, best_line, error_of, place, step_of

FEWEST = 12
"""Points below which a bent line fits anything."""
FEWEST_IDLE, IDLE_SHARE = 15, 0.08
"""Requests that found nobody ahead: fewer are chance, and their edge is no unloaded server."""
CALIBRATED = 8
"""Requests whose parts are told, from which on these alone shape the fit."""
SPREAD_OF_PROMPTS = 1.5
"""Ninth over first decile of uncached tokens, below which a rate is noise."""
LOOSE = 0.4
"""Scatter of unloaded requests above which length does not explain their time."""
TIGHT = 0.1
"""Scatter at which a hidden cache would show: its hits would lie far below the line."""
CHUNK_TOKENS = 3072
"""Tokens of a prompt in one step, and what is scheduled behind it.

Servers take 512 to 8192 and do not tell clients; 2048 and half a step more fits most.
"""
_Z = 1.645
_KEY = ("model", "deployment", "route", "vantage")
_FOREVER = (-(2**62), 2**62)


@dataclass(frozen=True)
class _Fit:
    line: Line
    points: int
    told: int
    floor_error: float
    token_error: float
    fixed: float
    least: float


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a group and window; ``told`` is in order of group and time."""
    for key, members in groupby(told, lambda one: tuple(one[name] for name in _KEY)):
        group = list(members)
        counts = (group[0]["requests"], group[0]["idle_requests"])
        for (start, end), part in _windows(group):
            fit = _fit(part, group)
            if isinstance(fit, str):
                yield (*key, start, end, *counts, 0, 0, fit, *([None] * 13))
            else:
                yield (*key, start, end, *counts, *_told(fit))


def _told(fit: _Fit) -> tuple[Any, ...]:
    line = fit.line
    # Whether a step hides behind the rate or adds to it shows only where both are seen.
    unsure = line.least if fit.told < CALIBRATED else 0.0
    off = _Z * fit.floor_error
    token_off = _Z * fit.token_error
    grows = line.token > 0 or line.pair > 0
    return (
        fit.told, fit.points, None, line.floor,
        max(0.0, line.floor - off - (0.0 if line.added else unsure)),
        line.floor + off + (unsure if line.added else 0.0), line.token if grows else None,
        max(0.0, line.token - token_off) if grows else None,
        line.token + token_off if grows else None, line.pair, fit.fixed, fit.least,
        max(0.0, line.gap - 0.5) * line.least, min(line.gap, 0.5) * line.least,
        line.token * CHUNK_TOKENS + line.least, line.spread,
    )  # fmt: skip


def _windows(
    group: list[dict[str, Any]],
) -> list[tuple[tuple[int, int], list[dict[str, Any]]]]:
    """Parts of a group in each of which the unloaded time keeps its level."""
    edges = [_FOREVER[0], *_changes(group, 0), _FOREVER[1]]
    parts = []
    for start, end in pairwise(edges):
        parts.append(((start, end), [one for one in group if start <= one["start_ns"] < end]))
    return parts


def _changes(group: list[dict[str, Any]], depth: int) -> list[int]:
    """Moments at which the level of unloaded requests steps, both sides steady."""
    points = _points(group)
    least = step_of([one["step_ns"] for one in group if one["step_ns"]])
    fit = _line(points, least)
    if fit is None or depth == _DEEPEST:
        return []
    line, used, _ = fit
    used = sorted(used, key=lambda one: one.start)
    off = _off(used, line)
    best: tuple[float, int] | None = None
    for at in range(_SIDE, len(off) - _SIDE):
        if not at % max(1, len(off) // 60):
            step = abs(quantile(off[at:], 0.5) - quantile(off[:at], 0.5))
            within = max(_scatter(off[:at]), _scatter(off[at:]))
            if step > max(_STEP, _APART * within) and (best is None or step - within > best[0]):
                best = (step - within, at)
    if best is None:
        return []
    moment = used[best[1]].start
    before = [one for one in group if one["start_ns"] < moment]
    after = [one for one in group if one["start_ns"] >= moment]
    return [*_changes(before, depth + 1), moment, *_changes(after, depth + 1)]


_DEEPEST, _SIDE = 2, 12
_STEP, _APART = 0.15, 3.0
_FAR = 0.03


def _off(points: Sequence[Point], line: Line) -> list[float]:
    """What the line leaves over, as shares of a usual time: a level adds alike to all lengths."""
    usual = quantile([one.value for one in points], 0.5)
    return [(one.value - line.total(one)) / usual for one in points]


def _scatter(values: Sequence[float]) -> float:
    middle = quantile(values, 0.5)
    return 1.4826 * quantile([abs(value - middle) for value in values], 0.5)


def _points(group: list[dict[str, Any]]) -> list[Point]:
    points = []
    for one in group:
        cached = one["cached_tokens"] or 0
        fresh = float(one["fresh_tokens"])
        points.append(
            Point(
                value=float(one["ttft_ns"] - (one["queue_ns"] or 0)),
                fresh=fresh,
                pairs=fresh * (cached + fresh / 2),
                start=one["start_ns"],
                first=one["first_ns"],
                last=one["last_ns"],
                after=one["next_ns"],
                told=one["queue_ns"] is not None,
                prefill=None if one["prefill_ns"] is None else float(one["prefill_ns"]),
            )
        )
    return points


def _line(points: Sequence[Point], least: float) -> tuple[Line, list[Point], int] | None:
    """The line, the points behind it, and how many of all had nobody ahead."""
    known = [one for one in points if one.told and one.prefill is not None]
    if len(known) >= CALIBRATED:
        place(points, min(one.value for one in points))
        line = best_line(known, least, 0.6)
        return (line, known, len(known)) if line else None
    if len(points) < FEWEST:
        return None
    most = quantile([one.value for one in points], 0.01)
    floor, fit = 0.0, None
    for _ in range(3):
        place(points, floor)
        idle = [one for one in points if one.ahead <= 0]
        alone = [one for one in idle if one.alone]
        need = max(FEWEST, len(points) // 20)
        use, core = (alone, 0.6) if len(alone) >= need else (idle, 0.5)
        if len(use) < FEWEST_IDLE:
            return None
        line = best_line(use, least, core)
        if line is None:
            return None
        fit = (line, use, len(idle))
        if abs(min(line.floor, most) - floor) <= 0.01 * line.floor:
            break
        floor = min(line.floor, most)
    return fit


def _fit(part: list[dict[str, Any]], group: list[dict[str, Any]]) -> _Fit | str:
    points = _points(part)
    if len(points) < FEWEST:
        return f"fewer than {FEWEST} requests tell a prompt and a time to first token"
    least = step_of([one["step_ns"] for one in group if one["step_ns"]])
    found = _line(points, least)
    known = [one for one in points if one.told and one.prefill is not None]
    share = part[0]["idle_requests"] / part[0]["requests"]
    if len(known) < CALIBRATED and (found is None or share < IDLE_SHARE):
        return "hardly any request found nobody ahead: what it takes without a queue never shows"
    if found is None:
        return "no line fits its times"
    line, used, _ = found
    if line.spread > LOOSE:
        return "times of requests with nobody ahead do not follow the length of the prompt"
    hidden = sum(one["cached_tokens"] is None for one in part) > len(part) / 10
    if hidden and line.spread > TIGHT:
        return "cached tokens are not told, and times scatter as they would with a cache"
    if _second_level(_off(used, line), line.spread):
        return "unloaded requests have several levels at once, as with two paths or servers"
    prompts = [one.fresh for one in used]
    if quantile(prompts, 0.9) < SPREAD_OF_PROMPTS * max(1.0, quantile(prompts, 0.1)):
        # What does not vary cannot be told from the floor; the queue still can.
        level = line.floor + quantile([line.total(one) - line.floor for one in used], 0.5)
        flat = Line(level, 0.0, 0.0, 0.0, 0.0, added=False, spread=line.spread)
        return _Fit(flat, len(used), len(known), line.spread * level, 0.0, 0.0, 0.0)
    floor_error, token_error = error_of(used, line)
    fixed = line.least if line.added else 0.0
    if len(known) >= CALIBRATED:
        line, fixed = _calibrated(known, line, fixed)
        return _Fit(line, len(used), len(known), floor_error, token_error, fixed, line.least)
    return _Fit(line, len(used), len(known), floor_error, token_error, fixed, line.least)


def _calibrated(known: Sequence[Point], line: Line, fixed: float) -> tuple[Line, float]:
    """The constant, split between floor and prefill as the requests with told parts split it."""
    more = quantile([(one.prefill or 0.0) - (line.total(one) - line.floor) for one in known], 0.5)
    moved = max(-line.floor, min(line.floor, more))
    if moved > 0:
        fixed += moved
    return (
        Line(
            max(0.0, line.floor - moved), line.token, line.pair, line.gap,
            max(0.0, line.least + moved), line.added, line.spread,
        ),
        fixed,
    )  # fmt: skip


def _second_level(off: Sequence[float], spread: float) -> bool:
    """A crowd of its own beyond the scatter: many, and close together."""
    beyond = sorted(value for value in off if value > max(4 * spread, _FAR))
    many = max(6, len(off) // 7)
    if len(beyond) < many:
        return False
    widths = [beyond[at + many - 1] - beyond[at] for at in range(len(beyond) - many + 1)]
    return min(widths) < max(2 * spread, 0.02)
