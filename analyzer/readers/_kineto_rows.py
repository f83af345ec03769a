"""Rows of the contract from decoded events of a chrome trace."""

from __future__ import annotations

import re
from collections import Counter
from itertools import compress

import pyarrow as pa
import pyarrow.compute as pc

from analyzer.contract.types import Problem
from analyzer.readers._gpu_rows import Extent
from analyzer.readers._kineto_columns import (
    NOTHING,
    WHOLE,
    columns_of,
    fields_of,
    finished,
    nanoseconds,
    within,
)
from analyzer.readers._kineto_events import OTHER, Event, Picked, kind_of, useful
from analyzer.readers._times import DURATIONS, TIMES

NO_TIME = "an event without a time a trace can have"
STRANGE = "its duration is none a trace can have, and was left out"
_WORK = ("kernel", "memcpy", "memset")
_DIVIDED = re.compile(r"([A-Za-z]{2})-?(\d{1,5})(?!\d)")
"""What a label says of how the model is divided, such as TP-0."""
_PIECE_EVENTS = 1_000
"""So many stay in the processor's cache until their columns are made."""


class _Waiting:
    """Decoded events of one kind, and the columns of those before them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.records: list[int] = []
        self.columns: list[pa.Table] = []


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
        self._usual, self._odd = _Waiting(), _Waiting()
        self._count = 0
        self.used = 0
        self.ignored: Counter[str] = Counter()
        self.problems: list[Problem] = []

    def take(self, picked: Picked, before: int) -> None:
        """Events of one chunk; ``before`` records stand before it."""
        self._usual.events += picked.events
        self._usual.records += [before + 1 + number for number in picked.numbers]
        self._odd.events += picked.odd
        self._odd.records += [before + 1 + number for number in picked.odd_numbers]
        self._count += len(picked.events) + len(picked.odd)
        for waiting in (self._usual, self._odd):
            if len(waiting.events) >= _PIECE_EVENTS:
                self._settle(waiting)

    def __len__(self) -> int:
        return self._count

    def tables(self) -> list[pa.Table]:
        """The rows of what was collected, which is forgotten; the account is in the attributes."""
        found = []
        for waiting in (self._usual, self._odd):
            if waiting.events:
                self._settle(waiting)
            if waiting.columns:
                found.append(self._table(waiting.columns))
        self._usual, self._odd, self._count = _Waiting(), _Waiting(), 0
        return found

    def _settle(self, waiting: _Waiting) -> None:
        """Make columns of the events that wait."""
        events, records = waiting.events, waiting.records
        waiting.events, waiting.records = [], []
        kind, told = type(events[0]), fields_of(events)
        strange = any(kind_of(one, "") is None for one in set(told["cat"]))
        if strange or not self.sifted or set(told["ph"]) != {"X"}:
            events, records = self._sifted(events, records)
            if not events:
                return
            told = fields_of(events)
        waiting.columns.append(columns_of(told, records, kind))

    def _sifted(self, events: list[Event], records: list[int]) -> tuple[list[Event], list[int]]:
        """Without what is no row: overheads, windows, instants and what is of no use."""
        keep = bytearray(len(events))
        for i, event in enumerate(events):
            kind = kind_of(event.cat, event.name)
            if event.cat in ("overhead", "Trace") and event.ph == "X":
                self._fact(event)
                self.used += 1
            elif kind is None or event.ph != "X" or not (self.sifted or useful(event, kind)):
                self.ignored[OTHER] += 1
            else:
                keep[i] = 1
        return list(compress(events, keep)), list(compress(records, keep))

    def _fact(self, event: Event) -> None:
        start, dur = nanoseconds(event)
        if dur is None or dur not in DURATIONS:
            return
        if event.cat == "overhead":
            self.overhead_ns = (self.overhead_ns or 0) + dur
        elif start is not None:
            self.window = start, start + dur

    def _table(self, some: list[pa.Table]) -> pa.Table:
        told = finished(some)
        self._set_times(told)
        told["rank"] = self._ranks(told["label"])
        told["clock"] = _same("wall" if self.wall else "relative", len(told["record"]))
        table = pa.table(told)
        limits = TIMES if self.wall else DURATIONS
        fits = pc.fill_null(within(told["start_ns"], limits), False)  # noqa: FBT003
        if not pc.all(fits).as_py():
            lost = told["record"].filter(pc.invert(fits)).to_pylist()
            self.problems += [Problem(record, NO_TIME) for record in lost]
            table = table.filter(fits)
        self._note(table)
        strange = [problem.record for problem in self.problems if problem.reason == STRANGE]
        doubted = pc.is_in(table["record"], pa.array(strange, WHOLE))
        self.used += table.num_rows - pc.sum(doubted, min_count=0).as_py()
        return table.drop_columns(["label"])

    def _set_times(self, told: dict[str, pa.Array]) -> None:
        starts, durs = told["start_ns"], told["dur_ns"]
        if self.absolute is None:
            self.absolute = (pc.approximate_median(starts).as_py() or 0) >= TIMES.start
            self.wall = self.absolute or self.base_ns is not None
        if self.whole_us:
            self.whole_us = not pc.any(pc.not_equal(_rest(starts), 0)).as_py()
        if self.base_ns is not None and not self.absolute:
            known = pc.if_else(within(starts, DURATIONS), starts, NOTHING)
            told["start_ns"] = pc.add(known, self.base_ns)
        fits = within(durs, DURATIONS)
        if pc.all(fits).as_py() is False:
            odd = told["record"].filter(pc.invert(fits)).to_pylist()
            self.problems += [Problem(record, STRANGE) for record in odd]
            told["dur_ns"] = pc.if_else(fits, durs, NOTHING)

    def _ranks(self, labels: pa.Array) -> pa.Array:
        """By the label of a merged trace, else the file's."""
        for label in labels.unique().to_pylist():
            self.seen.setdefault(label, Extent())
        named = [label for label in self.seen if label is not None]
        places = {label: self.rank_of(label, at) for at, label in enumerate(named)}
        told = labels.dictionary_encode()
        ranks = pa.array([places[label] for label in told.dictionary.to_pylist()], WHOLE)
        return pc.coalesce(ranks.take(told.indices), pa.scalar(self.rank, WHOLE))

    @staticmethod
    def rank_of(label: str, place: int) -> int:
        """A merged trace's rank, or the tensor-parallel one where the label tells no other."""
        if (told := re.search(r"\brank (\d{1,5})$", label)) is not None:
            return int(told[1])
        numbers = {name.lower(): int(n) for name, n in _DIVIDED.findall(label)}
        alone = "tp" in numbers and not any(numbers.get(one) for one in ("dp", "pp", "ep"))
        return numbers["tp"] if alone else place

    def _note(self, table: pa.Table) -> None:
        for label, seen in self.seen.items():
            some = table
            if len(self.seen) > 1:
                same = pc.equal(table["label"], label)
                some = table.filter(pc.is_null(table["label"]) if label is None else same)
            if not some.num_rows:
                continue
            begins = pc.min(some["start_ns"]).as_py()
            end = pc.max(pc.add(some["start_ns"], pc.fill_null(some["dur_ns"], 0))).as_py()
            seen.first = begins if seen.first is None else min(seen.first, begins)
            seen.last = end if seen.last is None else max(seen.last, end)
            counts = pc.value_counts(some["kind"].combine_chunks().dictionary_decode())
            seen.kinds.update({one["values"]: one["counts"] for one in counts.to_pylist()})


def device_work(kinds: Counter[str]) -> int:
    """Kernels, copies and sets."""
    return sum(kinds[kind] for kind in _WORK)


def _rest(nanoseconds: pa.Array) -> pa.Array:
    """What is beyond whole microseconds."""
    return pc.subtract(nanoseconds, pc.multiply(pc.divide(nanoseconds, 1000), 1000))


def _same(value: str, count: int) -> pa.Array:
    """One text for each row."""
    places = pa.repeat(pa.scalar(0, pa.int32()), count)
    return pa.DictionaryArray.from_arrays(places, pa.array([value]))
