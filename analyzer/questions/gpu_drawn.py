"""Device time for the report: representative steps as lanes, beside what the command tells."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from analyzer.contract.devices import Devices, DrawnStep
from analyzer.engines.duckdb import Engine
from analyzer.questions.gpu import devices

_STEPS, _LANES, _CELLS, _EVENTS = 3, 6, 300, 200_000
_LEVELS = 4
"""Shades of a cell: how much of it is at work."""

_TYPICAL = """WITH usable AS (
  SELECT s.*, coalesce(s.phase, 'step') AS what FROM gpu_step AS s
  WHERE s.device IS NOT NULL AND s.lost_launches = 0 AND NOT s.is_lull AND s.step_ns > 0
),
usual AS (
  SELECT what, bool_or(is_whole) AS whole,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY CASE WHEN is_whole THEN step_ns END) AS whole_ns,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY step_ns) AS some_ns, count(*) AS steps
  FROM usable GROUP BY what
),
placed AS (
  SELECT u.what, u.rank_key, u.device, u.step, u.name, u.place, u.start_ns, u.end_ns, u.step_ns,
    a.steps, row_number() OVER (PARTITION BY u.what ORDER BY
      abs(u.step_ns - coalesce(a.whole_ns, a.some_ns)), u.rank_key, u.step, u.device) AS place_nr
  FROM usable AS u JOIN usual AS a ON u.what = a.what WHERE u.is_whole OR NOT a.whole
)
SELECT * FROM placed WHERE place_nr = 1 ORDER BY steps DESC, what"""

_WORK = """SELECT concat('stream ', CAST(stream AS VARCHAR)) AS lane, class_group AS part,
  start_ns - {start} AS start_ns, end_ns - {start} AS end_ns
FROM gpu_placed
WHERE rank_key = {rank} AND device = {device} AND start_ns < {end} AND end_ns > {start}
ORDER BY start_ns, nr LIMIT {most}"""
_HOST = """SELECT 'host' AS lane,
  CASE WHEN kind IN ('runtime', 'graph_launch') THEN 'launch' ELSE 'host' END AS part,
  start_ns - {start} AS start_ns, end_ns - {start} AS end_ns
FROM resolve_gpu_host
WHERE rank_key = {rank} AND kind <> 'annotation' AND start_ns < {end} AND end_ns > {start}
ORDER BY start_ns, record LIMIT {most}"""


def drawn(engine: Engine) -> Devices | None:
    """None where the case holds no profiler trace with work on a device."""
    if not engine.value("SELECT count(*) FROM gpu_trace"):
        return None
    told = devices(engine)
    if not told.idle.rows:
        return None
    steps = tuple(_drawn(engine, one) for one in engine.rows(_TYPICAL)[:_STEPS])
    return replace(told, drawn=steps)


def _drawn(engine: Engine, one: dict[str, Any]) -> DrawnStep:
    told = {
        "rank": one["rank_key"], "device": one["device"], "start": one["start_ns"],
        "end": one["end_ns"], "most": _EVENTS,
    }  # fmt: skip
    asked = [_WORK.format(**told), _HOST.format(**told)]
    parts = [engine.rows(sql) for sql in asked]
    rows = [row for part in parts for row in part]
    # An annotation's name can be long, and whoever reads wants the number of the step.
    name = str(one["name"] or f"step {one['step']}")
    title = f"{one['what'].capitalize()}: {name[:60]}, {one['place']}"
    if one["steps"] > 1:
        title += f", the typical of {one['steps']:,}"
    if any(len(part) == _EVENTS for part in parts):
        title += f"; only its first {_EVENTS:,} events on device or host"
    return DrawnStep(
        title=title,
        step_ns=one["step_ns"],
        rows=tuple(_cells(rows, one["end_ns"] - one["start_ns"])),
        events=len(rows),
        sql=";\n".join(asked),
    )


def _cells(rows: list[dict[str, Any]], length_ns: int) -> list[dict[str, Any]]:
    """Bars no finer than a picture shows: cells of equal work run together, shaded by how full."""
    busy: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    lanes: dict[str, float] = defaultdict(float)
    width = length_ns / _CELLS
    for row in rows:
        start, end = max(row["start_ns"], 0), min(row["end_ns"], length_ns)
        lanes[row["lane"]] += max(end - start, 0)
        first, last = int(start / width), min(int(end / width), _CELLS - 1)
        for at in range(first, last + 1):
            some = min(end, (at + 1) * width) - max(start, at * width)
            cell = busy[row["lane"]][at]
            cell[row["part"]] = cell.get(row["part"], 0.0) + max(some, 0)
    # The busiest streams; the host last.
    kept = sorted(lanes, key=lambda lane: (lane == "host", -lanes[lane], lane))
    if len(kept) > _LANES:
        kept = [*kept[: _LANES - 1], kept[-1]]
    return [bar for lane in kept for bar in _runs(lane, busy[lane], width)]


def _runs(lane: str, cells: dict[int, dict[str, float]], width: float) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for at in sorted(cells):
        part = max(cells[at], key=lambda name: (cells[at][name], name))
        full = min(sum(cells[at].values()) / width, 1)
        level = min(int(full * _LEVELS) + 1, _LEVELS) / _LEVELS
        start, end = round(at * width), round((at + 1) * width)
        last = out[-1] if out else None
        if last and last["end_ns"] == start and (last["part"], last["full"]) == (part, level):
            last["end_ns"] = end
        else:
            out.append(
                {"lane": lane, "part": part, "start_ns": start, "end_ns": end, "full": level}
            )
    return out
