"""Rows of the contract from decoded events of a chrome trace, a column at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import compress
from math import prod
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analyzer.contract.types import Problem
from analyzer.readers._gpu_rows import Extent
from analyzer.readers._kineto_events import (
    DEVICE,
    NO_ARGS,
    OTHER,
    Absolute,
    Event,
    Picked,
    Relative,
    kind_of,
    microseconds,
    useful,
)  # fmt: skip
from analyzer.readers._rows import COUNTS, clean
from analyzer.readers._times import DURATIONS, TIMES

NO_TIME = "an event without a time a trace can have"
STRANGE = "its duration is none a trace can have, and was left out"
_ON_DEVICE = frozenset(DEVICE.values())
_WORK = ("kernel", "memcpy", "memset")
_LABEL = re.compile(r"(.*\S)\s+(-?\d+)")
_BEYOND = Decimal(2**62)
_WHOLE = pa.int64()
_NOTHING = pa.scalar(None, _WHOLE)
_MOST_US = 7.3e15
"""Beyond any time a trace can have, and in nanoseconds within an int64."""


class _Kinds(dict[tuple[str, str], str | None]):
    """What the contract calls (category, name); there are few of them."""

    def __missing__(self, key: tuple[str, str]) -> str | None:
        kind = kind_of(*key)
        if len(self) < 100_000:
            self[key] = kind
        return kind


class Rows:
    """Collects events of one file until they are worth a table.

    ``base_ns`` is added to times that do not count from 1970; without it they stay as they are.
    ``sifted``: what is of no use was left out by its text already.
    """

    def __init__(self, base_ns: int | None, rank: int | None, *, sifted: bool) -> None:
        self.base_ns, self.rank, self.sifted = base_ns, rank, sifted
        self.wall = base_ns is not None
        self.seen: dict[str | None, Extent] = {}
        """By label, for traces that hold several ranks; else under None."""
        self.overhead_ns: int | None = None
        self.window: tuple[int, int] | None = None
        self.whole_us = True
        """No time had a fraction of a microsecond."""
        self.absolute: bool | None = None
        self._kinds = _Kinds()
        self._events: list[Event] = []
        self._records: list[int] = []
        self._odd: list[Event] = []
        self._odd_records: list[int] = []
        self.used = 0
        self.ignored: Counter[str] = Counter()
        self.problems: list[Problem] = []

    def take(self, picked: Picked, before: int) -> None:
        """Events of one chunk; ``before`` records stand before it."""
        self._events += picked.events
        self._records += [before + 1 + number for number in picked.numbers]
        self._odd += picked.odd
        self._odd_records += [before + 1 + number for number in picked.odd_numbers]

    def __len__(self) -> int:
        return len(self._events) + len(self._odd)

    def tables(self) -> list[pa.Table]:
        """The rows of what was collected, which is forgotten; the account is in the attributes."""
        some = ((self._events, self._records), (self._odd, self._odd_records))
        self._events, self._records, self._odd, self._odd_records = [], [], [], []
        found = []
        for events, records in some:
            kinds = [self._kinds[event.cat, event.name] for event in events]
            kept = self._sifted(events, records, kinds)
            if kept[0]:
                found.append(self._table(*kept))
        return found

    def _sifted(
        self, events: list[Event], records: list[int], kinds: list[str | None]
    ) -> tuple[list[Event], list[int], list[str | None]]:
        """Without what is no row: overheads, windows, instants and what is of no use."""
        if self.sifted:
            odd = [
                i for i, (kind, event) in enumerate(zip(kinds, events, strict=True))
                if kind is None or event.ph != "X" or event.ts is None
            ]  # fmt: skip
        else:
            odd = [
                i for i, (kind, event) in enumerate(zip(kinds, events, strict=True))
                if kind is None or event.ph != "X" or event.ts is None or not useful(event, kind)
            ]  # fmt: skip
        for i in odd:
            event, kind = events[i], kinds[i]
            if event.cat in ("overhead", "Trace") and event.ph == "X":
                self._fact(event)
                self.used += 1
            elif kind is None or event.ph != "X" or not useful(event, kind):
                self.ignored[OTHER] += 1
            else:
                self.problems.append(Problem(records[i], NO_TIME))
        if odd:
            keep = bytearray(b"\1") * len(events)
            for i in odd:
                keep[i] = 0
            events, records = list(compress(events, keep)), list(compress(records, keep))
            kinds = list(compress(kinds, keep))
        return events, records, kinds

    def _fact(self, event: Event) -> None:
        (start,), (dur,) = _starts([event]).to_pylist(), _durations([event]).to_pylist()
        if dur is None or dur not in DURATIONS:
            return
        if event.cat == "overhead":
            self.overhead_ns = (self.overhead_ns or 0) + dur
        elif start is not None:
            self.window = start, start + dur

    def _table(self, events: list[Event], records: list[int], kinds: list[str | None]) -> pa.Table:
        starts, durs = self._times(events, records)
        args = [event.args or NO_ARGS for event in events]
        on_device = [kind in _ON_DEVICE for kind in kinds]
        pids = [event.pid for event in events]
        labels = self._labels(pids)
        columns = {
            "record": pa.array(records, _WHOLE),
            "rank": self._ranks(labels, len(events)),
            "device": _whole(
                [
                    (a.device if a.device is not None else pid) if own else None
                    for a, pid, own in zip(args, pids, on_device, strict=True)
                ]
            ),
            "stream": _whole(
                [
                    (a.stream if a.stream is not None else event.tid) if own else None
                    for a, event, own in zip(args, events, on_device, strict=True)
                ]
            ),
            "kind": pa.array(kinds).dictionary_encode(),
            "name": _texts([event.name for event in events]),
            "start_ns": starts,
            "clock": _same("wall" if self.wall else "relative", len(events)),
            "dur_ns": durs,
            "correlation": _whole([a.correlation for a in args]),
            "graph_id": _whole([a.graph_id or None for a in args]),
            "graph_node": _whole([a.graph_node or None for a in args]),
            "pid": _whole([None if o else p for p, o in zip(pids, on_device, strict=True)]),
            "tid": _whole([None if o else e.tid for e, o in zip(events, on_device, strict=True)]),
            "external_id": _whole([a.external_id for a in args]),
            "bytes": _whole([a.bytes for a in args]),
            "grid_blocks": _volumes([a.grid for a in args]),
            "block_threads": _volumes([a.block for a in args]),
        }
        collectives = [a.collective for a in args]
        if collectives.count(None) != len(collectives):
            columns |= {
                "collective": _texts(collectives),
                "collective_elements": _whole([a.elements for a in args]),
                "collective_dtype": _texts([a.dtype for a in args]),
                "collective_group": _texts([a.group for a in args]),
                "collective_ranks": _whole([a.group_size for a in args]),
            }
        table = pa.table(columns)
        fits = pc.fill_null(_within(starts, TIMES if self.wall else DURATIONS), False)  # noqa: FBT003
        if not pc.all(fits).as_py():
            lost = table.filter(pc.invert(fits))["record"].to_pylist()
            self.problems += [Problem(record, NO_TIME) for record in lost]
            table = table.filter(fits)
            labels = [x for x, fit in zip(labels, fits.to_pylist(), strict=True) if fit]
        self._note(table, labels)
        strange = {problem.record for problem in self.problems if problem.reason == STRANGE}
        self.used += table.num_rows - len(strange.intersection(table["record"].to_pylist()))
        return table

    def _times(self, events: list[Event], records: list[int]) -> tuple[pa.Array, pa.Array]:
        starts = _starts(events)
        durs = _durations(events)
        if self.absolute is None:
            self.absolute = (pc.approximate_median(starts).as_py() or 0) >= TIMES.start
            self.wall = self.absolute or self.base_ns is not None
        if self.whole_us:
            self.whole_us = not pc.any(pc.not_equal(_rest(starts), 0)).as_py()
        if self.base_ns is not None and not self.absolute:
            known = pc.if_else(_within(starts, DURATIONS), starts, _NOTHING)
            starts = pc.add(known, self.base_ns)
        fits = _within(durs, DURATIONS)
        if pc.all(fits).as_py() is False:
            odd = [r for r, fit in zip(records, fits.to_pylist(), strict=True) if fit is False]
            self.problems += [Problem(record, STRANGE) for record in odd]
            durs = pc.if_else(fits, durs, _NOTHING)
        return starts, durs

    def _labels(self, pids: list[Any]) -> list[str | None]:
        """The rank label of each event of a merged trace; its pid takes the label's place."""
        if str not in set(map(type, pids)):
            return [None] * len(pids)
        labels: list[str | None] = []
        for i, pid in enumerate(pids):
            match = _LABEL.fullmatch(pid) if isinstance(pid, str) else None
            labels.append(match[1] if match else None)
            if match:
                pids[i] = int(match[2])
        return labels

    def _ranks(self, labels: list[str | None], count: int) -> pa.Array:
        for label in dict.fromkeys(labels):
            self.seen.setdefault(label, Extent())
        named = [label for label in self.seen if label is not None]
        if not named:
            return pa.array([self.rank] * count, _WHOLE)
        places = {label: self.rank_of(label, at) for at, label in enumerate(named)}
        return pa.array([places.get(label or "", self.rank) for label in labels], _WHOLE)

    @staticmethod
    def rank_of(label: str, place: int) -> int:
        """A merged trace's rank: the tensor-parallel one where the label tells no other."""
        numbers = {name.lower(): int(n) for name, n in re.findall(r"([A-Za-z]{2})-?(\d+)", label)}
        alone = "tp" in numbers and not any(numbers.get(one) for one in ("dp", "pp", "ep"))
        return numbers["tp"] if alone else place

    def _note(self, table: pa.Table, labels: Sequence[str | None]) -> None:
        ends = pc.add(table["start_ns"], pc.fill_null(table["dur_ns"], 0))
        several = len(self.seen) > 1
        for label, seen in self.seen.items():
            mine = pa.array([one == label for one in labels], pa.bool_()) if several else None
            some = table if mine is None else table.filter(mine)
            if not some.num_rows:
                continue
            begins = pc.min(some["start_ns"]).as_py()
            end = pc.max(ends if mine is None else ends.filter(mine)).as_py()
            seen.first = begins if seen.first is None else min(seen.first, begins)
            seen.last = end if seen.last is None else max(seen.last, end)
            counts = pc.value_counts(some["kind"].combine_chunks().dictionary_decode())
            seen.kinds.update({one["values"]: one["counts"] for one in counts.to_pylist()})


def device_work(kinds: Counter[str]) -> int:
    """Kernels, copies and sets."""
    return sum(kinds[kind] for kind in _WORK)


def _within(values: pa.Array, limits: Any) -> pa.Array:  # noqa: ANN401 - of either kind
    return pc.and_(pc.greater_equal(values, limits.start), pc.less_equal(values, limits.last))


def _rest(nanoseconds: pa.Array) -> pa.Array:
    """What is beyond whole microseconds."""
    return pc.subtract(nanoseconds, pc.multiply(pc.divide(nanoseconds, 1000), 1000))


def _starts(events: Sequence[Event]) -> pa.Array:
    kind = type(events[0]) if events else Event
    if kind is Relative:
        return _from_doubles([event.ts for event in events])
    if kind is Absolute:
        return pa.array([_exact(bytes(event.ts).decode()) for event in events], _WHOLE)
    return pa.array([_exact(event.ts) for event in events], _WHOLE)


def _durations(events: Sequence[Event]) -> pa.Array:
    kind = type(events[0]) if events else Event
    if kind is Event:
        return pa.array([_exact(event.dur) for event in events], _WHOLE)
    return _from_doubles([event.dur for event in events])


def _from_doubles(microseconds: list[Any]) -> pa.Array:
    """Exact while a double holds a thousandth of a microsecond: up to 101 days from the base."""
    some = pa.array(microseconds, pa.float64())
    # What no column takes becomes what no trace can have.
    some = pc.min_element_wise(
        pc.max_element_wise(some, -_MOST_US, skip_nulls=False), _MOST_US, skip_nulls=False
    )
    whole = pc.floor(some)
    rest = pc.round(pc.multiply(pc.subtract(some, whole), 1000.0))
    return pc.add(pc.multiply(whole.cast(_WHOLE), 1000), rest.cast(_WHOLE))


def _exact(value: Any) -> int | None:  # noqa: ANN401 - a number, or its text
    """Nanoseconds of microseconds with any number of digits."""
    if type(value) is str and value[-4:-3] == "." and (digits := value[:-4] + value[-3:]).isdigit():
        return int(digits) if len(digits) < 20 else int(_BEYOND)
    number = microseconds(value if isinstance(value, str) else str(value))
    if number is None:
        return None
    return int(max(-_BEYOND, min(_BEYOND, number * 1000)).to_integral_value())


def _whole(values: list[Any]) -> pa.Array:
    """Whole numbers; numbers as text are taken, hexadecimal ones too."""
    try:
        some = pa.array(values, _WHOLE)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        some = pa.array([_number(value) for value in values], _WHOLE)
    fits = _within(some, COUNTS)
    return some if pc.all(fits).as_py() is not False else pc.if_else(fits, some, _NOTHING)


def _number(value: Any) -> int | None:  # noqa: ANN401 - foreign JSON
    if isinstance(value, str):
        try:
            value = int(value, 0) if len(value) < 40 else None
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62
    return value if fits else None


def _volumes(axes: list[Any]) -> pa.Array:
    """Numbers of three axes, multiplied."""
    try:
        return _whole([prod(one) if one else None for one in axes])
    except TypeError:
        return _whole([_volume(one) for one in axes])


def _volume(axes: Any) -> Any:  # noqa: ANN401 - foreign JSON
    told = isinstance(axes, list) and all(type(one) is int for one in axes)
    return prod(axes) if told and axes else None


def _same(value: str, count: int) -> pa.Array:
    """One text for each row."""
    places = pa.repeat(pa.scalar(0, pa.int32()), count)
    return pa.DictionaryArray.from_arrays(places, pa.array([value]))


def _texts(values: list[Any]) -> pa.Array:
    """Names, each kept once."""
    try:
        return pa.array(values, pa.string()).dictionary_encode()
    except (pa.ArrowException, TypeError, ValueError, UnicodeError):
        some = [None if value is None else clean(str(value)) for value in values]
        return pa.array(some, pa.string()).dictionary_encode()
