"""Scrapes as ``engine_sample`` rows: gauges as they are, counters by difference."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from analyzer.readers._jsonl import Bad, Sink
from analyzer.readers._prometheus import AT_FINISH, COUNTS, RATIOS, Slot
from analyzer.readers._rows import COUNTS as WHOLE
from analyzer.readers._times import DURATIONS, NS, TIMES

_MOST_POINTS = 200_000
_MEANS = ("ttft", "e2e", "queue", "prefill", "decode")
_SUMMED = {"running", "waiting", "swapped", "prompt", "cached", "generated", "computed", "made"}
_SUMMED |= {
    "queried",
    "hit",
    "preempted",
    "finished",
    *(f"{m}_{p}" for m in _MEANS for p in ("sum", "count")),
}
_COUNTERS = _SUMMED - {"running", "waiting", "swapped"}
_LATE = "SGLang and llama.cpp count tokens when a request is over: their throughputs lag by that"
_SPLIT = f"more than {_MOST_POINTS} points in one scrape: some rows tell only a part of their time"

_Key = tuple[str | None, str | None, str | None]


@dataclass
class _Point:
    """What one engine says at one moment."""

    record: int
    family: str
    values: dict[str, float] = field(default_factory=dict)


@dataclass
class _Before:
    """The counters of the engine's last scrape."""

    time_ns: int | None
    values: dict[str, float]


@dataclass
class Scrapes:
    """Collects the values of one scrape after another and makes rows of them."""

    time_ns: int | None = None
    points: dict[tuple[_Key, int | None], _Point] = field(default_factory=dict)
    capacity: dict[tuple[str | None, str | None], float] = field(default_factory=dict)
    seen: set[tuple[bytes, int | None]] = field(default_factory=set)
    before: dict[_Key, _Before] = field(default_factory=dict)
    timeless: bool = False

    def take(
        self, series: bytes, slot: Slot, value: float, own_ns: int | None, record: int, sink: Sink
    ) -> None:
        """One sample. A series that is told again begins the next scrape."""
        if (series, own_ns) in self.seen:
            self.flush(sink)
        elif len(self.seen) >= _MOST_POINTS:
            sink.assumed.add(_SPLIT)
            self.flush(sink, same_time=True)
        self.seen.add((series, own_ns))
        if slot.constant is not None:
            self.capacity[slot.place, slot.engine] = slot.constant
            value = slot.constant
        if math.isnan(value) or (slot.measures == ("prefix_hit_ratio",) and value == -1):
            return  # not told: V0 writes -1 where the cache is off
        _check(slot.measures, value)
        point = self.points.setdefault(
            ((slot.place, slot.engine, slot.model), own_ns), _Point(record, slot.family)
        )
        for measure in slot.measures:
            known = point.values.get(measure)
            if known is None:
                point.values[measure] = value
            else:
                add = measure in _SUMMED
                point.values[measure] = known + value if add else max(known, value)

    def at(self, time_ns: int, sink: Sink) -> None:
        """A time stands above the scrape that follows it."""
        self.flush(sink)
        self.time_ns = time_ns

    def flush(self, sink: Sink, *, same_time: bool = False) -> None:
        """Rows of the scrape that is over."""
        models = {(place, engine) for (place, engine, model), _ in self.points if model is not None}
        live = any("made" in point.values for point in self.points.values())
        ordered = sorted(self.points.items(), key=lambda one: (one[0][1] or 0, one[1].record))
        for (key, own_ns), point in ordered:
            place, engine, model = key
            if model is None and (place, engine) in models:
                continue  # its capacity alone, which stands in the rows of the models
            time_ns = own_ns if own_ns is not None else self.time_ns
            if time_ns is None:
                self.timeless = True
            if live and "made" not in point.values:
                # Told at once as well: what is counted when a request is over says it again.
                point.values.pop("prompt", None)
                point.values.pop("generated", None)
            self._row(key, time_ns, point, sink)
        self.points.clear()
        self.seen.clear()
        if not same_time:
            self.time_ns = None

    def _row(self, key: _Key, time_ns: int | None, point: _Point, sink: Sink) -> None:
        values = point.values
        before = self.before.get(key)
        past = before.values if before is not None else {}
        reset = any(values[m] < past[m] for m in _COUNTERS & values.keys() & past.keys())
        if reset:
            sink.add(
                "engine_event", point.record, time_ns=time_ns, engine=_engine(key), kind="restart"
            )
        interval = _interval(time_ns, before, None if reset else values.get("created"))
        grown = {m: values[m] - (0 if reset else past.get(m, 0)) for m in _COUNTERS & values.keys()}
        if before is not None and not reset:
            grown = {m: more for m, more in grown.items() if m in past}
        row = _gauges(values)
        if row.get("capacity_tokens") is None:
            row["capacity_tokens"] = _whole(self.capacity.get(key[:2]))
        row |= _changes(grown)
        if before is not None and not reset and interval:
            rates = _rates(grown, interval / NS)
            if late := point.family in AT_FINISH and "made" not in grown and bool(rates):
                sink.assumed.add(_LATE)
            row = rates | row if late else row | rates
        if any(value is not None for value in row.values()):
            sink.add(
                "engine_sample", point.record, time_ns=time_ns,
                clock="wall" if time_ns is not None else None, engine=_engine(key), model=key[2],
                interval_ns=interval if grown and not reset else None, **row,
            )  # fmt: skip
        counters = {m: values[m] for m in _COUNTERS & values.keys()}
        self.before[key] = _Before(time_ns, counters)


def _check(measures: tuple[str, ...], value: float) -> None:
    for measure in measures:
        if not 0 <= value < WHOLE.stop:
            raise Bad("a value that is negative or beyond any count")
        if measure in RATIOS and value > 1:
            raise Bad("a share above 1")
        if measure in COUNTS and not value.is_integer():
            raise Bad("a count that is no whole number")


def _engine(key: _Key) -> str | None:
    place, engine, _ = key
    return f"{place}/{engine}" if place is not None and engine is not None else place or engine


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _interval(time_ns: int | None, before: _Before | None, created: float | None) -> int | None:
    """How long counters have run: since the last scrape, else since they were made."""
    since = before.time_ns if before is not None else None
    if before is None and created is not None:
        since = int(created * NS)
        if since not in TIMES:
            return None
    if time_ns is None or since is None:
        return None
    return time_ns - since if 0 < time_ns - since < DURATIONS.stop else None


def _gauges(values: dict[str, float]) -> dict[str, Any]:
    row: dict[str, Any] = {name: _whole(values[name]) for name in COUNTS if name in values}
    row |= {name: values[name] for name in RATIOS if name in values}
    names = ("prompt_tokens_per_s", "generation_tokens_per_s")
    return row | {name: values[name] for name in names if name in values}


def _changes(grown: dict[str, float]) -> dict[str, Any]:
    """What counters say of the interval, however long it was."""
    row: dict[str, Any] = {}
    if "preempted" in grown:
        row["preemptions"] = _whole(grown["preempted"])
    if "finished" in grown or "e2e_count" in grown:
        row["finished"] = _whole(grown.get("finished", grown.get("e2e_count")))
    queried = grown.get("queried") or (grown.get("prompt") if "cached" in grown else None)
    hit = grown.get("hit", grown.get("cached"))
    if queried and hit is not None and hit <= queried:
        row["prefix_hit_ratio"] = round(hit / queried, 6)
    for name in _MEANS:
        total, count = grown.get(f"{name}_sum"), grown.get(f"{name}_count")
        if count and total is not None and (mean := round(total / count * NS)) in DURATIONS:
            row[f"{name}_mean_ns"] = mean
    return row


def _rates(grown: dict[str, float], seconds: float) -> dict[str, Any]:
    """Tokens a second. What came from a cache was not processed."""
    row: dict[str, Any] = {}
    computed = grown.get("computed")
    if computed is None and "prompt" in grown:
        computed = max(0.0, grown["prompt"] - grown.get("cached", 0))
    made = grown.get("made", grown.get("generated"))
    if computed is not None:
        row["prompt_tokens_per_s"] = round(computed / seconds, 6)
    if made is not None:
        row["generation_tokens_per_s"] = round(made / seconds, 6)
    return row
