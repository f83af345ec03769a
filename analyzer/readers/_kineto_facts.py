"""What a chrome trace of PyTorch says of itself: base of its times, rank, device, losses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from analyzer.readers._gpu_rows import Extent
from analyzer.readers._kineto_rows import Rows, device_work
from analyzer.readers._rows import clean, int_or_none
from analyzer.readers._times import DURATIONS, TIMES

_DROPPED = re.compile(r"[Dd]ropped\s+(\d{1,15})\s+activity records")
_EARLY = re.compile(r"CUPTI stopped early\? = ([01])")
_FULL = re.compile(
    r"(?:out of|insufficient) (?:buffer|memory|space)|buffer (?:is )?full", re.IGNORECASE
)
_RANK = re.compile(r"(?:^|[^a-z0-9])(rank|tp|dp|pp|ep)[-_]?(\d{1,5})(?!\d)", re.IGNORECASE)
_NS = 1_000_000_000
US, QUARTER_US = 1_000, 250


@dataclass(frozen=True)
class Rank:
    """Number of the process, of how many, and what told it."""

    number: int | None
    source: str | None
    world: int | None


def rank_of(facts: dict[str, Any], name: str) -> Rank:
    """From the trace, else from the name of its file."""
    told = facts.get("distributedInfo")
    info = told if isinstance(told, dict) else {}
    world = _count(info.get("world_size"))
    number = _count(info.get("rank"))
    if number is not None:
        return Rank(number, "trace", world)
    named = {key.lower(): int(n) for key, n in _RANK.findall(PurePosixPath(name).name)}
    if "rank" in named:
        return Rank(named["rank"], "file name", world)
    # A tensor-parallel rank is the process's only where nothing else divides the model.
    if "tp" in named and not any(named.get(one) for one in ("dp", "pp", "ep")):
        return Rank(named["tp"], "file name", world)
    return Rank(None, None, world)


def base_of(facts: dict[str, Any]) -> int | None:
    """Wall time that relative times count from."""
    base = int_or_none(facts.get("baseTimeNanoseconds"))
    return base if base in TIMES else None


def _count(value: Any) -> int | None:  # noqa: ANN401 - foreign JSON
    is_text = isinstance(value, str) and value.isdecimal() and len(value) < 10
    number = int_or_none(int(value) if is_text else value)
    return number if number is not None and 0 <= number < 10**9 else None


def trace_rows(
    facts: dict[str, Any], rank: Rank, rows: Rows, *, ended: bool, stacks: bool, long: bool
) -> list[dict[str, Any]]:
    """One row a rank. ``long``: times had more digits than a double holds."""
    common = _common(facts) | {
        "record": 1, "world_size": rank.world, "profiler": "kineto", "ended": ended,
        "stacks": stacks or bool(facts.get("with_stack")),
        "clock": "wall" if rows.wall else "relative",
        "base_ns": None if rows.absolute else rows.base_ns,
        "resolution_ns": _resolution(rows, long=long),
        "overhead_ns": rows.overhead_ns if rows.overhead_ns in DURATIONS else None,
    }  # fmt: skip
    labels = [label for label in rows.seen if label is not None]
    if not labels:
        seen = rows.seen.get(None, Extent())
        start, dur = _window(rows, seen)
        one = {"rank": rank.number, "rank_source": rank.source, "start_ns": start, "dur_ns": dur}
        return [common | _counts(seen) | one]
    found = []
    for place, label in enumerate(labels):
        seen = rows.seen[label]
        start, dur = _window(None, seen)
        number = Rows.rank_of(label, place)
        found.append(
            common | _counts(seen)
            | {"rank": number, "rank_source": "label", "rank_label": clean(label)}
            | {"start_ns": start, "dur_ns": dur}
        )  # fmt: skip
    return found


def _common(facts: dict[str, Any]) -> dict[str, Any]:
    devices = [one for one in _list(facts.get("deviceProperties")) if isinstance(one, dict)]
    names = {str(one["name"]) for one in devices if one.get("name")}
    logged = [str(one) for key in ("INFO", "WARNING", "ERROR") for one in _list(facts.get(key))]
    drops = [int(match[1]) for one in logged if (match := _DROPPED.search(one))]
    early = [match[1] == "1" for one in logged if (match := _EARLY.search(one))]
    full = any(_FULL.search(one) for one in logged)
    amd = any(key.startswith(("hip_", "roctracer_")) for key in facts)
    nvidia = any(key.startswith(("cuda_", "cupti_")) for key in facts)
    nvidia |= any(re.search(r"NVIDIA|Tesla|GeForce", name) for name in names)
    amd |= any(re.search(r"AMD|Instinct|Radeon", name) for name in names)
    return {
        "device_name": clean(", ".join(sorted(names)))[:200] or None,
        "devices": len(devices) or None,
        "vendor": "amd" if amd else "nvidia" if nvidia else None,
        "schema_version": _text(facts.get("schemaVersion")),
        "dropped_records": sum(drops) if drops else None,
        "stopped_early": (any(early) or full) if early or full else None,
        "errors": len(_list(facts["ERROR"])) if "ERROR" in facts else None,
        "runtime_version": _version(facts, "runtime"),
        "driver_version": _version(facts, "driver"),
    }  # fmt: skip


def _version(facts: dict[str, Any], what: str) -> str | None:
    return _text(facts.get(f"cuda_{what}_version", facts.get(f"hip_{what}_version")))


def _counts(seen: Extent) -> dict[str, Any]:
    graphs = seen.kinds["graph_launch"]
    return {
        "device_events": device_work(seen.kinds),
        "launches": seen.kinds["runtime"] + graphs,
        "graph_launches": graphs,
    }


def _window(rows: Rows | None, seen: Extent) -> tuple[int | None, int | None]:
    """What was recorded: the window the trace tells, or from the first event to the last end."""
    if rows is not None and rows.window is not None:
        first, last = rows.window
        if rows.base_ns is not None and not rows.absolute:
            first, last = first + rows.base_ns, last + rows.base_ns
        told = seen.first is None or (first <= seen.first and first < last)
        if told and (not rows.wall or first in TIMES):
            return first, _span(first, max(last, seen.last or last))
    if seen.first is None or seen.last is None:
        return None, None
    return seen.first, _span(seen.first, seen.last)


def _span(first: int, last: int) -> int | None:
    """None where a damaged time makes it longer than any trace."""
    return last - first if last - first in DURATIONS else None


def _resolution(rows: Rows, *, long: bool) -> int | None:
    if rows.absolute is None:
        return None
    if rows.whole_us:
        return US
    # Doubles since 1970 are a quarter of a microsecond apart.
    return QUARTER_US if rows.absolute and not long else 1


def _list(value: Any) -> list[Any]:  # noqa: ANN401 - foreign JSON
    return value if isinstance(value, list) else []


def _text(value: Any) -> str | None:  # noqa: ANN401 - foreign JSON
    told = isinstance(value, str | int | float) and not isinstance(value, bool)
    return clean(str(value))[:200] or None if told else None
